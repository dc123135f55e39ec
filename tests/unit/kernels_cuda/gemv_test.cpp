#include "kernels/cuda/gemv.h"

#include "base/float_types.h"
#include "gpu_case.h"
#include "kernels/cuda/sm80/gemv/kernel.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

// The matrix-vector kernel against sums in float64 of the values that are stored.
namespace kernelpath::testing {
namespace {

namespace cuda = kernels::cuda;
using attention::DataType;
using kernels::ScaleFormat;
using kernels::WeightFormat;
using kernels::WeightMatrix;

// A matrix on the host whose rows have more bytes than values: NaN, which must not be read into a
// sum.
struct HostMatrix {
  WeightMatrix w;
  std::vector<std::byte> data;
  std::vector<std::byte> scales;
};

struct Form {
  std::string name;
  WeightFormat format;
  ScaleFormat scales = ScaleFormat::kNone;
  std::int64_t block_rows = 1;
  std::int64_t block_cols = 0;  // 0: the whole row
  float scale = 1.0F;
};
const std::vector<Form> kForms = {
    {"bf16", WeightFormat::kBf16},
    {"f16", WeightFormat::kF16, ScaleFormat::kNone, 1, 0, 0.5F},
    {"fp8", WeightFormat::kFp8E4m3, ScaleFormat::kNone, 1, 0, 0.25F},
    {"fp8_channel", WeightFormat::kFp8E4m3, ScaleFormat::kF32, 1, 0},
    {"fp8_block", WeightFormat::kFp8E4m3, ScaleFormat::kF32, 128, 128},
    {"fp8_wide_block", WeightFormat::kFp8E4m3, ScaleFormat::kF32, 3, 192},
    {"nvfp4", WeightFormat::kE2m1, ScaleFormat::kE4m3, 1, 16, 0.125F},
};

const cuda::GemvFormat& format_of(const Form& form) {
  return *std::ranges::find_if(
      cuda::kGemvFormats, [&](const cuda::GemvFormat& one) { return one.weights == form.format; });
}

std::vector<std::byte> random_scales(ScaleFormat format, std::int64_t count, std::mt19937& random) {
  std::vector<std::byte> out;
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = std::ldexp(1.0F + static_cast<float>(random() % 8) / 8.0F,
                                   static_cast<int>(random() % 6) - 3);
    if (format == ScaleFormat::kE4m3) {
      out.push_back(std::byte{f32_to_e4m3(value)});
    } else {
      const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
      out.insert(out.end(), bytes, bytes + sizeof(value));
    }
  }
  return out;
}

// Every code of the format but NaN, and NaN behind the rows.
HostMatrix make_matrix(const Form& form, std::int64_t rows, std::int64_t cols,
                       std::mt19937& random) {
  HostMatrix out;
  WeightMatrix& w = out.w;
  w.format = form.format;
  w.rows = rows;
  w.cols = cols;
  w.scale = form.scale;
  w.block_rows = form.block_rows;
  w.block_cols = form.block_cols > 0 ? form.block_cols : cols;
  const std::int64_t used = kernels::weight_row_bytes(form.format, cols);
  w.row_bytes = used + 48;
  out.data.assign(static_cast<std::size_t>(w.row_bytes * rows), std::byte{0xFF});
  std::normal_distribution<float> normal(0, 1);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::byte* const at = out.data.data() + row * w.row_bytes;
    for (std::int64_t i = 0; i < used; ++i) {
      if (form.format == WeightFormat::kBf16 || form.format == WeightFormat::kF16) {
        const float value = normal(random);
        const std::uint16_t code =
            form.format == WeightFormat::kBf16 ? f32_to_bf16(value) : f32_to_f16(value);
        at[i] = std::byte{static_cast<std::uint8_t>(code)};
        at[++i] = std::byte{static_cast<std::uint8_t>(code >> 8U)};
        continue;
      }
      auto code = static_cast<std::uint8_t>(random());
      if (form.format == WeightFormat::kFp8E4m3 && (code & 0x7FU) == 0x7F) code = 0x7E;
      at[i] = std::byte{code};
    }
  }
  w.data = out.data.data();
  if (form.scales == ScaleFormat::kNone) return out;
  const std::int64_t across = (cols + w.block_cols - 1) / w.block_cols;
  w.scale_format = form.scales;
  w.scale_row_bytes = across * kernels::scale_bytes(form.scales);
  out.scales =
      random_scales(form.scales, across * ((rows + w.block_rows - 1) / w.block_rows), random);
  w.scales = out.scales.data();
  return out;
}

class CudaGemv : public GpuTest {
 protected:
  using GpuTest::upload;
  WeightMatrix upload(const HostMatrix& matrix) {
    WeightMatrix out = matrix.w;
    out.data = upload(matrix.data);
    if (!matrix.scales.empty()) out.scales = upload(matrix.scales);
    return out;
  }
  std::vector<std::uint16_t> download(const void* data, std::size_t count) {
    std::vector<std::uint16_t> out(count);
    expect_ok(cuda::copy_to_host(out.data(), data, static_cast<std::int64_t>(count * 2)));
    return out;
  }
  std::vector<std::uint16_t> activations(DataType type, std::int64_t count) {
    std::normal_distribution<float> normal(0, 1);
    std::vector<std::uint16_t> out(static_cast<std::size_t>(count));
    for (auto& code : out) {
      const float value = normal(random_);
      code = type == DataType::kBf16 ? f32_to_bf16(value) : f32_to_f16(value);
    }
    return out;
  }
  static float value_of(DataType type, std::uint16_t code) {
    return type == DataType::kBf16 ? bf16_to_f32(code) : f16_to_f32(code);
  }
  void compare(const Form& form, std::int64_t rows, std::int64_t cols, std::int64_t tokens);

  std::mt19937 random_{11};
};

// x and y have strides of their own: what lies between their rows is NaN and stays as it is.
void CudaGemv::compare(const Form& form, std::int64_t rows, std::int64_t cols,
                       std::int64_t tokens) {
  SCOPED_TRACE(form.name + " " + std::to_string(rows) + " x " + std::to_string(cols) + ", " +
               std::to_string(tokens) + " tokens");
  const HostMatrix matrix = make_matrix(form, rows, cols, random_);
  const DataType type = format_of(form).type;
  const std::int64_t x_stride = cols + 8;
  const std::int64_t y_stride = rows + 3;
  std::vector<std::uint16_t> x = activations(type, tokens * x_stride);
  for (std::int64_t i = 0; i < tokens * x_stride; ++i) {
    if (i % x_stride >= cols) x[static_cast<std::size_t>(i)] = 0xFFFF;
  }
  const std::vector<std::uint16_t> poison(static_cast<std::size_t>(tokens * y_stride), 0xFFFF);
  cuda::GemvParams params;
  params.weight = upload(matrix);
  params.num_tokens = tokens;
  params.x = upload(x);
  params.x_stride = x_stride;
  params.y = upload(poison);
  params.y_stride = y_stride;
  expect_ok(cuda::launch_gemv(params, device, {}));
  expect_ok(cuda::synchronize());
  const std::vector<std::uint16_t> y = download(params.y, poison.size());
  std::vector<float> row(static_cast<std::size_t>(cols));
  for (std::int64_t r = 0; r < rows; ++r) {
    kernels::dequantize_row(matrix.w, r, row.data());
    for (std::int64_t token = 0; token < tokens; ++token) {
      double sum = 0;
      double magnitude = 0;
      for (std::int64_t c = 0; c < cols; ++c) {
        const double product =
            double{row[static_cast<std::size_t>(c)]} *
            double{value_of(type, x[static_cast<std::size_t>(token * x_stride + c)])};
        sum += product;
        magnitude += std::abs(product);
      }
      const double got = value_of(type, y[static_cast<std::size_t>(token * y_stride + r)]);
      // The output is rounded to 8 (11) bits, the sums to float32.
      const double rounding = type == DataType::kBf16 ? 0x1p-8 : 0x1p-11;
      ASSERT_NEAR(got, sum, rounding * std::abs(sum) + 1e-5 * magnitude + 1e-7)
          << r << ", " << token;
    }
  }
  for (std::int64_t i = 0; i < tokens * y_stride; ++i) {
    if (i % y_stride < rows) continue;
    ASSERT_EQ(y[static_cast<std::size_t>(i)], 0xFFFF) << i;
  }
}

TEST_F(CudaGemv, EveryFormat_AtEveryNumberOfTokens) {
  for (const Form& form : kForms) {
    for (std::int64_t tokens = 1; tokens <= cuda::kGemvTokens; ++tokens) {
      compare(form, 48, 1152, tokens);
    }
  }
}

TEST_F(CudaGemv, RowsAndColumns_ThatFillNoTile) {
  for (const Form& form : kForms) {
    const std::int64_t unit = format_of(form).cols_multiple;
    for (const std::int64_t rows : {1, 15, 17, 129}) {
      for (const std::int64_t cols : {unit, 3 * unit, 33 * unit, 129 * unit}) {
        compare(form, rows, cols, 3);
      }
    }
  }
}

// More columns than all warps take in one turn.
TEST_F(CudaGemv, ManyTurns_AreSummed) {
  for (const Form& form : kForms) compare(form, 33, 32768, 2);
}

TEST_F(CudaGemv, NanWeights_AreNanInTheirRowAlone) {
  for (const Form& form : {kForms[0], kForms[1], kForms[4]}) {
    HostMatrix matrix = make_matrix(form, 20, 256, random_);
    const bool bytes = form.format == WeightFormat::kFp8E4m3;
    const std::size_t at = static_cast<std::size_t>(matrix.w.row_bytes * 5) + (bytes ? 77 : 154);
    matrix.data[at] = std::byte{bytes ? std::uint8_t{0x7F} : std::uint8_t{0xFF}};
    if (!bytes) matrix.data[at + 1] = std::byte{0x7F};
    cuda::GemvParams params;
    params.weight = upload(matrix);
    params.x = upload(activations(format_of(form).type, 256));
    params.y = upload(std::vector<std::uint16_t>(20));
    expect_ok(cuda::launch_gemv(params, device, {}));
    expect_ok(cuda::synchronize());
    const auto y = download(params.y, 20);
    for (std::size_t row = 0; row < y.size(); ++row) {
      EXPECT_EQ(std::isnan(value_of(format_of(form).type, y[row])), row == 5) << form.name << row;
    }
  }
}

// The same bits for the same token, whoever is beside it, and at every launch.
TEST_F(CudaGemv, Sums_DoNotDependOnTheOtherTokens) {
  for (const Form& form : kForms) {
    const HostMatrix matrix = make_matrix(form, 64, 4096, random_);
    cuda::GemvParams params;
    params.weight = upload(matrix);
    params.num_tokens = 8;
    params.x = upload(activations(format_of(form).type, std::int64_t{8} * 4096));
    params.y = upload(std::vector<std::uint16_t>(std::size_t{8} * 64));
    expect_ok(cuda::launch_gemv(params, device, {}));
    const auto together = download(params.y, std::size_t{8} * 64);
    params.num_tokens = 1;
    expect_ok(cuda::launch_gemv(params, device, {}));
    const auto alone = download(params.y, 64);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin())) << form.name;
  }
}

// A chain in a captured graph, each launch reading what the one before wrote, with weights read
// ahead: equal to the same chain without reading ahead.
TEST_F(CudaGemv, SettledWeights_WaitForTheActivations) {
  const Form form{"bf16", WeightFormat::kBf16, ScaleFormat::kNone, 1, 0, 0x1p-5F};
  const HostMatrix matrix = make_matrix(form, 1024, 1024, random_);
  const WeightMatrix weight = upload(matrix);
  const auto start = activations(DataType::kBf16, 1024);
  constexpr int kLaunches = 30;
  const auto chain = [&](bool settled) {
    std::vector<std::uint16_t*> vectors = {upload(start)};
    for (int i = 0; i < kLaunches; ++i) {
      vectors.push_back(upload(std::vector<std::uint16_t>(1024, 0xFFFF)));
    }
    auto stream = cuda::Stream::create();
    expect_ok(stream);
    auto graph = cuda::Graph::capture(stream->view(), [&]() -> Result<void> {
      for (int i = 0; i < kLaunches; ++i) {
        cuda::GemvParams params;
        params.weight = weight;
        params.x = vectors[static_cast<std::size_t>(i)];
        params.y = vectors[static_cast<std::size_t>(i) + 1];
        params.weights_are_settled = settled;
        KERNELPATH_CHECK_OK(cuda::launch_gemv(params, device, stream->view()));
      }
      return {};
    });
    expect_ok(graph);
    for (int replay = 0; replay < 3; ++replay) expect_ok(graph->replay(stream->view()));
    expect_ok(stream->wait());
    return download(vectors.back(), 1024);
  };
  const auto plain = chain(false);
  EXPECT_EQ(chain(true), plain);
  for (const std::uint16_t code : plain) EXPECT_TRUE(std::isfinite(bf16_to_f32(code)));
}

// What is refused needs no device.
const cuda::DeviceInfo kHopper{.name = "a device", .sm = 90, .num_sms = 132};

cuda::GemvParams good_call(WeightFormat format) {
  alignas(16) static std::byte somewhere{};
  cuda::GemvParams params;
  params.weight.format = format;
  params.weight.rows = 64;
  params.weight.cols = 256;
  params.weight.row_bytes = 512;
  params.weight.data = &somewhere;
  params.weight.scales = &somewhere;
  params.x = &somewhere;
  params.y = &somewhere;
  if (format == WeightFormat::kE2m1) {
    params.weight.scale_format = ScaleFormat::kE4m3;
    params.weight.scale_row_bytes = 16;
    params.weight.block_cols = 16;
  }
  return params;
}

std::string refusal(const cuda::GemvParams& params, const cuda::DeviceInfo& info = kHopper) {
  const Result<void> checked = cuda::check_gemv(params, info);
  return checked ? "" : checked.error().message;
}

TEST(CudaGemvCheck, FormatsOfTheTable_AreTaken) {
  for (const cuda::GemvFormat& format : cuda::kGemvFormats) {
    EXPECT_EQ(refusal(good_call(format.weights)), "") << format.name;
    EXPECT_NE(cuda::gemv_kernel_name(format.weights), "none");
  }
  cuda::GemvParams blocks = good_call(WeightFormat::kFp8E4m3);
  blocks.weight.scale_format = ScaleFormat::kF32;
  blocks.weight.scale_row_bytes = 8;
  blocks.weight.block_rows = 128;
  blocks.weight.block_cols = 128;
  EXPECT_EQ(refusal(blocks), "");
}

TEST(CudaGemvCheck, EverythingElse_IsRefusedWithWhatThereIs) {
  const auto changed = [](WeightFormat format, const auto& change) {
    cuda::GemvParams params = good_call(format);
    change(params);
    return refusal(params);
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(refusal(good_call(WeightFormat::kQ8_0)), "bf16, f16, fp8_e4m3, e2m1"));
  EXPECT_EQ(cuda::gemv_kernel_name(WeightFormat::kQ8_0), "none");
  EXPECT_TRUE(
      has(refusal(good_call(WeightFormat::kBf16), {.name = "old", .sm = 75}), "8.0 and newer"));
  using Params = cuda::GemvParams;
  EXPECT_TRUE(has(changed(WeightFormat::kBf16, [](Params& p) { p.num_tokens = 9; }), "1 to 8"));
  EXPECT_TRUE(
      has(changed(WeightFormat::kBf16, [](Params& p) { p.weight.cols = 252; }), "multiples of 8"));
  EXPECT_TRUE(
      has(changed(WeightFormat::kE2m1, [](Params& p) { p.weight.cols = 288; }), "multiples of 64"));
  EXPECT_TRUE(has(changed(WeightFormat::kBf16, [](Params& p) { p.weight.row_bytes = 520; }),
                  "520 bytes apart"));
  EXPECT_TRUE(
      has(changed(WeightFormat::kBf16, [](Params& p) { p.x_stride = 260; }), "260 elements apart"));
  EXPECT_TRUE(has(
      changed(WeightFormat::kE2m1, [](Params& p) { p.weight.scale_format = ScaleFormat::kE8m0; }),
      "e4m3 for 16 columns"));
  EXPECT_TRUE(has(changed(WeightFormat::kFp8E4m3,
                          [](Params& p) {
                            p.weight.scale_format = ScaleFormat::kF32;
                            p.weight.scale_row_bytes = 32;
                            p.weight.block_cols = 32;
                          }),
                  "multiple of 64 columns"));
}

TEST(CudaGemvWarps, Chosen_FillTheDeviceAndHaveWork) {
  using cuda::sm80::gemv_warps;
  EXPECT_EQ(gemv_warps(8192, 1024, 132), 8);   // 512 tiles
  EXPECT_EQ(gemv_warps(6144, 512, 132), 8);    // 384 tiles: three a multiprocessor
  EXPECT_EQ(gemv_warps(1024, 1024, 132), 16);  // 64 tiles
  EXPECT_EQ(gemv_warps(1024, 40, 132), 4);     // 5 turns
  EXPECT_EQ(gemv_warps(1, 1, 132), 4);
}

}  // namespace
}  // namespace kernelpath::testing
