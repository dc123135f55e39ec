// Matrix products of every weight format on every instruction set, against float64 sums over
// values that dequantize_row gives one by one.
#include "kernels/cpu/matmul.h"

#include "base/float_types.h"
#include "kernels/cpu/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace kernelpath::kernels {
namespace {

// A matrix of random bytes that are finite values of the format, with its memory.
struct Sample {
  WeightMatrix w;
  std::vector<std::byte> data;
  std::vector<std::byte> scales;
};

struct Form {
  std::string name;
  WeightFormat format;
  ScaleFormat scale_format;
  std::int64_t block_rows;
  std::int64_t block_cols;  // 0: the whole row
};

std::vector<Form> forms() {
  return {{"f32", WeightFormat::kF32, ScaleFormat::kNone, 1, 1},
          {"bf16", WeightFormat::kBf16, ScaleFormat::kNone, 1, 1},
          {"f16", WeightFormat::kF16, ScaleFormat::kNone, 1, 1},
          {"fp8_tensor", WeightFormat::kFp8E4m3, ScaleFormat::kNone, 1, 0},
          {"fp8_channel", WeightFormat::kFp8E4m3, ScaleFormat::kBf16, 1, 0},
          {"fp8_block", WeightFormat::kFp8E4m3, ScaleFormat::kF32, 128, 128},
          {"nvfp4", WeightFormat::kE2m1, ScaleFormat::kE4m3, 1, 16},
          {"mxfp4", WeightFormat::kE2m1, ScaleFormat::kE8m0, 1, 32},
          {"q8_0", WeightFormat::kQ8_0, ScaleFormat::kF16, 1, 32},
          {"q4_0", WeightFormat::kQ4_0, ScaleFormat::kF16, 1, 32},
          {"q5_0", WeightFormat::kQ5_0, ScaleFormat::kNone, 1, 1},
          {"q4_k", WeightFormat::kQ4K, ScaleFormat::kNone, 1, 1},
          {"q5_k", WeightFormat::kQ5K, ScaleFormat::kNone, 1, 1},
          {"q6_k", WeightFormat::kQ6K, ScaleFormat::kNone, 1, 1}};
}

class Filler {
 public:
  explicit Filler(unsigned seed) : random_(seed) {}

  float value() { return std::uniform_real_distribution<float>(-1.0F, 1.0F)(random_); }

  template <class T>
  void put(std::vector<std::byte>& out, T code) {
    const std::size_t at = out.size();
    out.resize(at + sizeof(T));
    std::memcpy(out.data() + at, &code, sizeof(T));
  }

  void put_value(std::vector<std::byte>& out, WeightFormat format) {
    switch (format) {
      case WeightFormat::kF32:
        return put(out, value());
      case WeightFormat::kBf16:
        return put(out, f32_to_bf16(value()));
      case WeightFormat::kF16:
        return put(out, f32_to_f16(value()));
      case WeightFormat::kFp8E4m3:
        return put(out, f32_to_e4m3(value()));
      default:
        return put(out, static_cast<std::uint8_t>(random_()));
    }
  }

  void put_scale(std::vector<std::byte>& out, ScaleFormat format) {
    const float scale = 0.5F + 0.5F * std::abs(value());
    switch (format) {
      case ScaleFormat::kNone:
        return;
      case ScaleFormat::kF32:
        return put(out, scale);
      case ScaleFormat::kBf16:
        return put(out, f32_to_bf16(scale));
      case ScaleFormat::kF16:
        return put(out, f32_to_f16(scale));
      case ScaleFormat::kE4m3:
        return put(out, f32_to_e4m3(scale));
      case ScaleFormat::kE8m0:
        return put(out, static_cast<std::uint8_t>(120 + random_() % 8));
    }
  }

  // A block with inner scales: random bytes, but for small finite f16 numbers.
  void put_block(std::vector<std::byte>& out, WeightFormat format) {
    const std::int64_t bytes = weight_row_bytes(format, weight_block_cols(format));
    const std::size_t at = out.size();
    for (std::int64_t i = 0; i < bytes; ++i) put(out, static_cast<std::uint8_t>(random_()));
    const auto set = [&](std::int64_t offset, float number) {
      const std::uint16_t code = f32_to_f16(number);
      std::memcpy(out.data() + at + offset, &code, sizeof(code));
    };
    set(format == WeightFormat::kQ6K ? bytes - 2 : 0, 0.01F);
    if (format == WeightFormat::kQ4K || format == WeightFormat::kQ5K) set(2, 0.02F);
  }

 private:
  std::mt19937 random_;
};

Sample make_sample(const Form& form, std::int64_t rows, std::int64_t cols) {
  Sample s;
  Filler fill(7);
  s.w = {.format = form.format, .scale_format = form.scale_format, .rows = rows, .cols = cols};
  s.w.row_bytes = weight_row_bytes(form.format, cols);
  s.w.block_rows = form.block_rows;
  s.w.block_cols = form.block_cols == 0 ? cols : form.block_cols;
  s.w.scale = form.format == WeightFormat::kE2m1 ? 0.25F : 1.0F;
  for (std::int64_t r = 0; r < rows; ++r) {
    while (s.data.size() < static_cast<std::size_t>((r + 1) * s.w.row_bytes)) {
      if (has_inner_scales(form.format)) {
        fill.put_block(s.data, form.format);
      } else {
        fill.put_value(s.data, form.format);
      }
    }
  }
  const std::int64_t scale_rows = (rows + s.w.block_rows - 1) / s.w.block_rows;
  const std::int64_t scale_cols = (cols + s.w.block_cols - 1) / s.w.block_cols;
  for (std::int64_t i = 0; i < scale_rows * scale_cols; ++i) {
    fill.put_scale(s.scales, form.scale_format);
  }
  s.w.scale_row_bytes = scale_cols * scale_bytes(form.scale_format);
  s.w.data = s.data.data();
  s.w.scales = s.scales.empty() ? nullptr : s.scales.data();
  return s;
}

std::vector<float> random_floats(std::int64_t count) {
  Filler fill(11);
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(fill.value());
  return out;
}

std::vector<float> multiply(const WeightMatrix& w, const std::vector<float>& x, std::int64_t n,
                            cpu::CpuExecutor& executor) {
  std::vector<float> y(static_cast<std::size_t>(n * w.rows), -1.0F);
  const std::vector<float> bias = random_floats(w.rows);
  const std::array parts{MatmulPart{.w = w,
                                    .bias = bias.data(),
                                    .n = n,
                                    .x = x.data(),
                                    .x_stride = w.cols,
                                    .y = y.data(),
                                    .y_stride = w.rows}};
  executor.run([&](Ops& ops) { ops.matmul(parts); });
  return y;
}

std::int64_t columns_of(const Form& form, std::int64_t wish) {
  const std::int64_t block = std::max<std::int64_t>(
      weight_block_cols(form.format), form.format == WeightFormat::kE2m1 ? form.block_cols : 1);
  return (wish + block - 1) / block * block;
}

class Matmul : public testing::TestWithParam<cpu::Isa> {
 protected:
  void SetUp() override {
    if (!cpu::has_isa(GetParam())) GTEST_SKIP() << "this processor has no " << isa_name(GetParam());
  }
};

// What a sum of products may differ from float64 by, as a share of the sum of their magnitudes:
// float32 sums; with AMX also 2^-17 of each activation and of each weight that is not bfloat16.
// What codes of activations add is in rounding_of_codes().
double tolerance(cpu::Isa isa) { return isa == cpu::Isa::kAmx ? 1.6e-5 : 2e-6; }

// What a sum may differ by where activations are rounded to 32767 steps of the largest of their
// block of 32 columns: half a step each.
double rounding_of_codes(const Sample& s, const std::vector<float>& row, const float* token) {
  if (s.w.format != WeightFormat::kQ8_0 && s.w.format != WeightFormat::kQ4_0) return 0.0;
  double out = 0.0;
  for (std::size_t first = 0; first < row.size(); first += 32) {
    double largest = 0.0;
    double weights = 0.0;
    for (std::size_t c = first; c < first + 32; ++c) {
      largest = std::max(largest, std::abs(static_cast<double>(token[c])));
      weights += std::abs(static_cast<double>(row[c]));
    }
    out += weights * largest / 32767.0 / 2.0;
  }
  return out;
}

// Compares y = W x + bias of every row and token with float64 sums.
void expect_near_float64(const Sample& s, const std::vector<float>& x, std::int64_t tokens,
                         const std::vector<float>& y, double share) {
  const auto cols = static_cast<std::size_t>(s.w.cols);
  const std::vector<float> bias = random_floats(s.w.rows);
  std::vector<float> row(cols);
  for (std::int64_t r = 0; r < s.w.rows; ++r) {
    dequantize_row(s.w, r, row.data());
    for (std::int64_t i = 0; i < tokens; ++i) {
      const float* const token = x.data() + i * s.w.cols;
      double sum = bias[static_cast<std::size_t>(r)];
      double magnitude = std::abs(sum);
      for (std::size_t c = 0; c < cols; ++c) {
        const double term = static_cast<double>(row[c]) * static_cast<double>(token[c]);
        sum += term;
        magnitude += std::abs(term);
      }
      const double allowed = share * magnitude + rounding_of_codes(s, row, token) + 1e-7;
      ASSERT_NEAR(y[static_cast<std::size_t>(i * s.w.rows + r)], sum, allowed)
          << "row " << r << ", token " << i;
    }
  }
}

// 1 and 2 tokens are tiles of their own, 9 are a batch for some formats, 50 for all; 1100 columns
// are more than a block of them.
TEST_P(Matmul, EveryFormatAndShape_IsNearFloat64Sums) {
  cpu::CpuExecutor executor(1, GetParam());
  for (const Form& form : forms()) {
    for (const std::int64_t wish : {1, 17, 256, 300, 1100}) {
      const std::int64_t cols = columns_of(form, wish);
      const Sample s = make_sample(form, 133, cols);
      for (const std::int64_t tokens : {1, 2, 9, 50}) {
        SCOPED_TRACE(form.name + ", columns: " + std::to_string(cols));
        const std::vector<float> x = random_floats(tokens * cols);
        expect_near_float64(s, x, tokens, multiply(s.w, x, tokens, executor),
                            tolerance(GetParam()));
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Tokens that are multiplied together, and how many of them are multiplied on their own.
struct Batches {
  std::int64_t together = 0;
  std::int64_t alone = 0;
};

// A few tokens and many take different kernels, whose bits may differ; they do not between any two
// batches of one kernel. `reference` has only one, vectors have one from 32 tokens on, AMX up to
// three: from 8 or 16 tokens on, and from 96.
std::vector<Batches> batches_of_one_kernel(cpu::Isa isa) {
  switch (isa) {
    case cpu::Isa::kReference:
      return {{.together = 40, .alone = 1}};
    case cpu::Isa::kAmx:
      return {{.together = 7, .alone = 1},
              {.together = 95, .alone = 19},
              {.together = 300, .alone = 100}};  // more than a block of tokens
    default:
      return {{.together = 31, .alone = 1}, {.together = 300, .alone = 50}};
  }
}

TEST_P(Matmul, AnyBatchOfAKernel_GivesTheSameBits) {
  cpu::CpuExecutor executor(1, GetParam());
  for (const Form& form : forms()) {
    const std::int64_t cols = columns_of(form, 288);
    const Sample s = make_sample(form, 21, cols);
    for (const auto& [tokens, own] : batches_of_one_kernel(GetParam())) {
      const std::vector<float> x = random_floats(tokens * cols);
      const std::vector<float> together = multiply(s.w, x, tokens, executor);
      for (std::int64_t i = 0; i + own <= tokens; i += own) {
        const std::vector<float> few(x.begin() + i * cols, x.begin() + (i + own) * cols);
        const std::vector<float> alone = multiply(s.w, few, own, executor);
        ASSERT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + i * s.w.rows))
            << form.name << ", token " << i;
      }
    }
  }
}

TEST_P(Matmul, OneThreadOrMany_GiveTheSameBits) {
  cpu::CpuExecutor one(1, GetParam());
  cpu::CpuExecutor three(3, GetParam());
  for (const Form& form : forms()) {
    const std::int64_t cols = columns_of(form, 96);
    const Sample s = make_sample(form, 101, cols);
    for (const std::int64_t tokens : {1, 5, 55}) {
      const std::vector<float> x = random_floats(tokens * cols);
      EXPECT_EQ(multiply(s.w, x, tokens, one), multiply(s.w, x, tokens, three)) << form.name;
    }
  }
}

// Rows that the tiles read where they lie, and rows that are copied first.
TEST_P(Matmul, Bf16RowsOfWholeTiles_AreNearFloat64Sums) {
  cpu::CpuExecutor executor(1, GetParam());
  const Sample s = make_sample(forms()[1], 96, 64);
  for (const std::int64_t tokens : {1, 2, 3, 7, 8, 16, 17, 33, 100}) {
    const std::vector<float> x = random_floats(tokens * 64);
    expect_near_float64(s, x, tokens, multiply(s.w, x, tokens, executor), tolerance(GetParam()));
  }
}

TEST_P(Matmul, InfiniteAndNanActivations_StayInTheirTokens) {
  cpu::CpuExecutor executor(1, GetParam());
  const Sample s = make_sample(forms()[1], 32, 32);
  for (const std::int64_t tokens : {3, 12}) {
    std::vector<float> x = random_floats(tokens * 32);
    x[5] = std::numeric_limits<float>::infinity();
    x[32 + 7] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> y = multiply(s.w, x, tokens, executor);
    EXPECT_TRUE(std::isinf(y[3]));
    EXPECT_TRUE(std::isnan(y[32 + 3]));
    for (auto i = std::size_t{64}; i < y.size(); ++i) EXPECT_TRUE(std::isfinite(y[i]));
  }
}

// Blocks of codes: an infinity or a NaN is not a number in its token's sums, tiny numbers are 0,
// and a block of zeros adds nothing.
TEST_P(Matmul, OddActivationsOfQ8Blocks_StayInTheirTokens) {
  cpu::CpuExecutor executor(1, GetParam());
  const std::vector<Form> all = forms();
  const Form q8 = *std::ranges::find(all, WeightFormat::kQ8_0, &Form::format);
  const Sample s = make_sample(q8, 32, 64);
  for (const std::int64_t tokens : {4, 12}) {
    std::vector<float> x = random_floats(tokens * 64);
    x[5] = std::numeric_limits<float>::infinity();
    x[64 + 40] = std::numeric_limits<float>::quiet_NaN();
    std::fill_n(x.begin() + 2 * 64, 64, 0.0F);
    std::fill_n(x.begin() + 3 * 64, 64, 1e-40F);
    const std::vector<float> y = multiply(s.w, x, tokens, executor);
    EXPECT_FALSE(std::isfinite(y[3]));
    EXPECT_TRUE(std::isnan(y[32 + 3]));
    const std::vector<float> bias = random_floats(32);
    for (std::size_t r = 0; r < 32; ++r) {
      EXPECT_EQ(y[2 * 32 + r], bias[r]);
      EXPECT_EQ(y[3 * 32 + r], bias[r]);
    }
    for (auto i = std::size_t{4} * 32; i < y.size(); ++i) EXPECT_TRUE(std::isfinite(y[i]));
  }
}

TEST_P(Matmul, MixedParts_AreWhatEachIsAlone) {
  cpu::CpuExecutor executor(2, GetParam());
  const Sample a = make_sample(forms()[1], 70, 96);
  const Sample b = make_sample(forms()[0], 40, 96);
  constexpr std::int64_t kTokens = 20;
  const std::vector<float> x = random_floats(kTokens * 96);
  const std::vector<float> bias = random_floats(70);
  std::vector<float> y(kTokens * 110);
  const auto part = [&](const Sample& s, std::int64_t at) {
    return MatmulPart{.w = s.w,
                      .bias = bias.data(),
                      .n = kTokens,
                      .x = x.data(),
                      .x_stride = 96,
                      .y = y.data() + at,
                      .y_stride = 110};
  };
  const std::array parts{part(a, 0), part(b, 70)};
  executor.run([&](Ops& ops) { ops.matmul(parts); });
  const std::vector<float> a_alone = multiply(a.w, x, kTokens, executor);
  const std::vector<float> b_alone = multiply(b.w, x, kTokens, executor);
  for (std::int64_t i = 0; i < kTokens; ++i) {
    EXPECT_TRUE(
        std::equal(a_alone.begin() + i * 70, a_alone.begin() + (i + 1) * 70, y.begin() + i * 110));
    EXPECT_TRUE(std::equal(b_alone.begin() + i * 40, b_alone.begin() + (i + 1) * 40,
                           y.begin() + i * 110 + 70));
  }
}

TEST_P(Matmul, SeveralParts_ReadAndWriteTheRowsTheyName) {
  cpu::CpuExecutor executor(2, GetParam());
  const Sample a = make_sample(forms()[0], 5, 24);
  const Sample b = make_sample(forms()[0], 9, 24);
  const std::vector<float> x = random_floats(4 * 24);
  const std::vector<std::int32_t> from = {3, 0};
  const std::vector<std::int32_t> to = {1, 2};
  std::vector<float> y(3 * 14, 7.0F);
  const std::array parts{MatmulPart{.w = a.w,
                                    .n = 2,
                                    .x = x.data(),
                                    .x_stride = 24,
                                    .y = y.data(),
                                    .y_stride = 14,
                                    .x_rows = from.data(),
                                    .y_rows = to.data()},
                         MatmulPart{.w = b.w,
                                    .n = 2,
                                    .x = x.data(),
                                    .x_stride = 24,
                                    .y = y.data() + 5,
                                    .y_stride = 14,
                                    .x_rows = from.data(),
                                    .y_rows = to.data()}};
  executor.run([&](Ops& ops) { ops.matmul(parts); });
  for (std::size_t i = 0; i < 14; ++i) EXPECT_EQ(y[i], 7.0F) << "row 0 is nobody's";
  const auto expected = [&](const Sample& s, std::int64_t row, std::int32_t token) {
    std::vector<float> w(24);
    dequantize_row(s.w, row, w.data());
    double sum = 0.0;
    for (std::size_t c = 0; c < 24; ++c) {
      sum += static_cast<double>(w[c]) *
             static_cast<double>(x[static_cast<std::size_t>(token) * 24 + c]);
    }
    return sum;
  };
  EXPECT_NEAR(y[14 + 4], expected(a, 4, 3), 1e-5);
  EXPECT_NEAR(y[28 + 5], expected(b, 0, 0), 1e-5);
  EXPECT_NEAR(y[28 + 13], expected(b, 8, 0), 1e-5);
}

// A NaN of any bits, among them those that a rounding addition would turn into a number. An
// infinity times activations that are cut may become a NaN.
TEST_P(Matmul, InfiniteAndNanFloat32Weights_StayInTheirRows) {
  cpu::CpuExecutor executor(1, GetParam());
  const std::vector<Form> all = forms();
  Sample s = make_sample(*std::ranges::find(all, WeightFormat::kF32, &Form::format), 40, 64);
  const auto put = [&](std::size_t row, std::size_t column, std::uint32_t bits) {
    std::memcpy(s.data.data() + (row * 64 + column) * sizeof(bits), &bits, sizeof(bits));
  };
  put(2, 5, 0x7F800000);   // infinity
  put(3, 40, 0xFF800000);  // -infinity
  put(4, 7, 0x7FFFFFFF);   // NaN
  put(5, 63, 0xFFFFFFFF);
  put(6, 0, 0x7F800001);  // NaN that signals
  for (const std::int64_t tokens : {1, 8, 17, 40}) {
    const std::vector<float> y = multiply(s.w, random_floats(tokens * 64), tokens, executor);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t row = i % 40;
      const bool odd = row >= 2 && row <= 6;
      EXPECT_EQ(std::isfinite(y[i]), !odd) << "row " << row << " of " << tokens << " tokens";
    }
  }
}

TEST_P(Matmul, NanInFp8Weights_StaysNan) {
  cpu::CpuExecutor executor(1, GetParam());
  Sample s = make_sample(forms()[3], 4, 32);
  s.data[33] = std::byte{0xFF};  // row 1
  const std::vector<float> y = multiply(s.w, random_floats(32), 1, executor);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_FALSE(std::isnan(y[0]));
}

INSTANTIATE_TEST_SUITE_P(Isas, Matmul, testing::ValuesIn(cpu::kIsas),
                         [](const auto& tested) { return std::string(isa_name(tested.param)); });

}  // namespace
}  // namespace kernelpath::kernels
