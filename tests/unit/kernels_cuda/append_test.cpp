#include "kernels/cuda/append.h"

#include "base/float_types.h"
#include "gpu_case.h"
#include "kernels/cpu/append.h"
#include "kernels/cpu/team.h"
#include "kv/layout.h"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

// The append kernel against the CPU's: equal bytes without rotation, and rotated rows against the
// definition of RoPE.
namespace kernelpath::testing {
namespace {

namespace cuda = kernels::cuda;
using attention::DataType;
using attention::KvLayout;

struct Shape {
  std::int64_t tokens = 37;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 128;
  std::int64_t v_head_dim = 128;
};

class CudaAppend : public GpuTest {
 protected:
  template <class T>
  std::vector<T> download(const T* data, std::size_t count) {
    std::vector<T> out(count);
    expect_ok(cuda::copy_to_host(out.data(), data, static_cast<std::int64_t>(count * sizeof(T))));
    return out;
  }
  std::vector<std::uint16_t> random_values(std::int64_t count, float spread) {
    std::normal_distribution<float> normal(0, spread);
    std::vector<std::uint16_t> out(static_cast<std::size_t>(count));
    for (auto& value : out) value = f32_to_bf16(normal(random_));
    return out;
  }
  // The kernel and the CPU's write equal bytes, also where nothing is to be written.
  void compare_with_cpu(DataType type, KvLayout layout, const Shape& shape);
  // Q and K are turned by the definition, V is as it was.
  void check_rotation(std::int64_t head_dim, std::int64_t rotary_dim, bool interleaved);

 private:
  std::mt19937 random_{7};
};

std::vector<float> widened(const std::vector<std::uint16_t>& codes) {
  std::vector<float> out;
  out.reserve(codes.size());
  for (const std::uint16_t code : codes) out.push_back(bf16_to_f32(code));
  return out;
}

void CudaAppend::compare_with_cpu(DataType type, KvLayout layout, const Shape& shape) {
  const std::int64_t page_size = 16;
  const std::int64_t pages = 5;
  const auto k = random_values(shape.tokens * shape.kv_heads * shape.head_dim, 300.0F);
  const auto v = random_values(shape.tokens * shape.kv_heads * shape.v_head_dim, 0.01F);
  std::vector<std::int64_t> slots(static_cast<std::size_t>(pages * page_size));
  std::iota(slots.begin(), slots.end(), 0);
  std::shuffle(slots.begin(), slots.end(), random_);
  slots.resize(static_cast<std::size_t>(shape.tokens));
  if (slots.size() > 3) slots[3] = -1;

  const auto layout_of = [&](std::int64_t dim) {
    return kv::PageLayout{.order = layout,
                          .type = type,
                          .page_size = page_size,
                          .num_heads = shape.kv_heads,
                          .head_dim = dim};
  };
  const auto pool = [&](std::int64_t bytes) {
    return std::vector<std::byte>(static_cast<std::size_t>(pages * bytes), std::byte{0x3C});
  };
  const kv::PageLayout k_layout = layout_of(shape.head_dim);
  const kv::PageLayout v_layout = layout_of(shape.v_head_dim);
  auto k_pool = pool(k_layout.page_data_bytes());
  auto v_pool = pool(v_layout.page_data_bytes());
  auto k_scales = pool(k_layout.page_scale_bytes() + 1);
  auto v_scales = pool(v_layout.page_scale_bytes() + 1);
  const float k_scale = 0.75F;
  const float v_scale = 1.0F;

  cuda::RopeAppendParams params;
  params.num_tokens = shape.tokens;
  params.num_kv_heads = shape.kv_heads;
  params.head_dim = shape.head_dim;
  params.v_head_dim = shape.v_head_dim;
  params.k = upload(k);
  params.v = upload(v);
  params.slot_mapping = upload(slots);
  params.page_size = page_size;
  params.k_rows = kv::paged_rows(k_layout, upload(k_pool), upload(k_scales), k_scale);
  params.v_rows = kv::paged_rows(v_layout, upload(v_pool), upload(v_scales), v_scale);
  expect_ok(cuda::launch_append(params, {}));
  expect_ok(cuda::synchronize());

  const auto k_floats = widened(k);
  const auto v_floats = widened(v);
  kernels::cpu::paged_append(
      kernels::cpu::Team{},
      {.num_tokens = shape.tokens,
       .num_kv_heads = shape.kv_heads,
       .head_dim = shape.head_dim,
       .v_head_dim = shape.v_head_dim,
       .k = k_floats.data(),
       .v = v_floats.data(),
       .slot_mapping = slots.data(),
       .page_size = page_size,
       .k_rows = kv::paged_rows(k_layout, k_pool.data(), k_scales.data(), k_scale),
       .v_rows = kv::paged_rows(v_layout, v_pool.data(), v_scales.data(), v_scale)});
  EXPECT_EQ(download(params.k_rows.data, k_pool.size()), k_pool);
  EXPECT_EQ(download(params.v_rows.data, v_pool.size()), v_pool);
  EXPECT_EQ(download(params.k_rows.block_scales, k_scales.size()), k_scales);
  EXPECT_EQ(download(params.v_rows.block_scales, v_scales.size()), v_scales);
}

TEST_F(CudaAppend, WithoutRotation_WritesWhatTheCpuWrites) {
  for (const DataType type : attention::kDataTypes) {
    for (const KvLayout layout : {KvLayout::kNhd, KvLayout::kHnd}) {
      for (const Shape& shape : {Shape{}, Shape{.head_dim = 64, .v_head_dim = 64},
                                 Shape{.kv_heads = 3, .head_dim = 192, .v_head_dim = 128},
                                 Shape{.tokens = 1, .head_dim = 80, .v_head_dim = 96},
                                 Shape{.head_dim = 256, .v_head_dim = 256}}) {
        SCOPED_TRACE(std::string(attention::data_type_name(type)) + " " +
                     std::to_string(shape.head_dim));
        compare_with_cpu(type, layout, shape);
      }
    }
  }
}

// The rotation by its definition.
std::vector<float> rotated(const std::vector<float>& rows, std::int64_t heads, std::int64_t dim,
                           const cuda::RopeAppendParams& params,
                           const std::vector<std::int32_t>& positions,
                           const std::vector<float>& cos_sin) {
  std::vector<float> out = rows;
  const std::int64_t half = params.rotary_dim / 2;
  for (std::size_t row = 0; row < rows.size() / static_cast<std::size_t>(dim); ++row) {
    const std::int64_t position = positions[row / static_cast<std::size_t>(heads)];
    for (std::int64_t i = 0; i < half; ++i) {
      const auto angle = static_cast<std::size_t>(position * params.rotary_dim + i);
      const float c = cos_sin[angle];
      const float s = cos_sin[angle + static_cast<std::size_t>(half)];
      const std::size_t base = row * static_cast<std::size_t>(dim);
      const std::size_t a = base + static_cast<std::size_t>(params.interleaved ? 2 * i : i);
      const std::size_t b =
          base + static_cast<std::size_t>(params.interleaved ? 2 * i + 1 : i + half);
      out[a] = rows[a] * c - rows[b] * s;
      out[b] = rows[b] * c + rows[a] * s;
    }
  }
  return out;
}

constexpr std::int64_t kPositions = 50;

// [kPositions, rotary_dim]: cosines, then sines.
std::vector<float> rotary_table(std::int64_t rotary_dim) {
  std::vector<float> cos_sin(static_cast<std::size_t>(kPositions * rotary_dim));
  for (std::int64_t p = 0; p < kPositions; ++p) {
    for (std::int64_t i = 0; i < rotary_dim / 2; ++i) {
      const double angle =
          static_cast<double>(p) *
          std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim));
      cos_sin[static_cast<std::size_t>(p * rotary_dim + i)] = static_cast<float>(std::cos(angle));
      cos_sin[static_cast<std::size_t>(p * rotary_dim + rotary_dim / 2 + i)] =
          static_cast<float>(std::sin(angle));
    }
  }
  return cos_sin;
}

void CudaAppend::check_rotation(std::int64_t head_dim, std::int64_t rotary_dim, bool interleaved) {
  const std::int64_t tokens = 21;
  const std::int64_t heads = 6;
  const std::int64_t kv_heads = 2;
  const auto q = random_values(tokens * heads * head_dim, 1.0F);
  const auto k = random_values(tokens * kv_heads * head_dim, 1.0F);
  const auto v = random_values(tokens * kv_heads * head_dim, 1.0F);
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> slots;
  for (std::int32_t t = 0; t < tokens; ++t) {
    positions.push_back(static_cast<std::int32_t>(t * 3 % kPositions));
    slots.push_back(tokens - 1 - t);
  }
  const std::vector<float> cos_sin = rotary_table(rotary_dim);
  const kv::PageLayout layout{
      .type = DataType::kF32, .page_size = 32, .num_heads = kv_heads, .head_dim = head_dim};
  const std::vector<std::byte> pool(static_cast<std::size_t>(layout.page_data_bytes()));
  cuda::RopeAppendParams params;
  params.num_tokens = tokens;
  params.num_heads = heads;
  params.num_kv_heads = kv_heads;
  params.head_dim = params.v_head_dim = head_dim;
  params.q = upload(q);
  params.k = upload(k);
  params.v = upload(v);
  params.rotary_dim = rotary_dim;
  params.interleaved = interleaved;
  params.cos_sin = upload(cos_sin);
  params.positions = upload(positions);
  params.slot_mapping = upload(slots);
  params.page_size = 32;
  params.k_rows = kv::paged_rows(layout, upload(pool));
  params.v_rows = kv::paged_rows(layout, upload(pool));
  expect_ok(cuda::launch_append(params, {}));
  expect_ok(cuda::synchronize());

  const auto got_q = widened(download(static_cast<std::uint16_t*>(params.q), q.size()));
  const auto want_q = rotated(widened(q), heads, head_dim, params, positions, cos_sin);
  for (std::size_t i = 0; i < q.size(); ++i) {
    ASSERT_NEAR(got_q[i], want_q[i], 5e-3F * (1 + std::abs(want_q[i]))) << i;
  }
  const auto want_k = rotated(widened(k), kv_heads, head_dim, params, positions, cos_sin);
  const auto want_v = widened(v);
  const auto row = static_cast<std::size_t>(kv_heads * head_dim);
  const auto got_k = download(reinterpret_cast<float*>(params.k_rows.data),
                              row * static_cast<std::size_t>(tokens));
  const auto got_v = download(reinterpret_cast<float*>(params.v_rows.data),
                              row * static_cast<std::size_t>(tokens));
  for (std::size_t i = 0; i < k.size(); ++i) {
    const std::size_t at = (static_cast<std::size_t>(tokens) - 1 - i / row) * row + i % row;
    ASSERT_NEAR(got_k[at], want_k[i], 1e-5F * (1 + std::abs(want_k[i]))) << i;
    ASSERT_EQ(got_v[at], want_v[i]) << i;
  }
}

TEST_F(CudaAppend, Rotation_TurnsQAndKAndLeavesV) {
  for (const std::int64_t head_dim : {64, 80, 96, 128, 192, 256}) {
    for (const bool interleaved : {false, true}) {
      for (const std::int64_t rotary_dim : {head_dim, std::int64_t{32}}) {
        if (rotary_dim % 16 != 0) continue;
        SCOPED_TRACE(std::to_string(head_dim) + " " + std::to_string(rotary_dim));
        check_rotation(head_dim, rotary_dim, interleaved);
      }
    }
  }
}

TEST_F(CudaAppend, Unsupported_IsRefused) {
  cuda::RopeAppendParams params;
  params.num_kv_heads = 1;
  params.head_dim = 72;
  params.v_head_dim = 64;
  params.page_size = 16;
  params.k_rows.type = params.v_rows.type = DataType::kNvfp4;
  const auto nvfp4 = cuda::check_append(params);
  ASSERT_FALSE(nvfp4.has_value());
  EXPECT_NE(nvfp4.error().message.find("multiples of 16"), std::string::npos);
  params.head_dim = 64;
  params.rotary_dim = 24;
  EXPECT_FALSE(cuda::check_append(params).has_value());
  params.rotary_dim = 32;
  EXPECT_TRUE(cuda::check_append(params).has_value());
}

}  // namespace
}  // namespace kernelpath::testing
