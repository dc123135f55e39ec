#include "gpu_case.h"

#include "base/float_types.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/reference/attention.h"
#include "kernels/cpu/team.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

namespace kernelpath::testing {

namespace cuda = kernels::cuda;
using attention::DataType;

void GpuTest::SetUp() {
  const auto count = cuda::device_count();
  if (!count || *count == 0) {
    GTEST_SKIP() << "no CUDA device: " << (count ? "none is visible" : count.error().message);
  }
  auto info = cuda::device_info();
  ASSERT_TRUE(info.has_value()) << info.error().text();
  device = *info;
}

namespace {

std::uint16_t narrow(float value, DataType type) {
  return type == DataType::kBf16 ? f32_to_bf16(value) : f32_to_f16(value);
}
float widen(std::uint16_t code, DataType type) {
  return type == DataType::kBf16 ? bf16_to_f32(code) : f16_to_f32(code);
}

}  // namespace

template <class T>
T* GpuCase::upload(const std::vector<T>& values) {
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
  auto buffer = cuda::Buffer::allocate(std::max<std::int64_t>(bytes, 16));
  expect_ok(buffer);
  expect_ok(cuda::copy_to_device(buffer->data(), values.data(), bytes));
  buffers_.push_back(std::move(*buffer));
  return reinterpret_cast<T*>(buffers_.back().data());
}

GpuCase::GpuCase(PagedCase& paged, const cuda::DeviceInfo& device, DataType query_type)
    : paged_(paged), device_(device) {
  std::vector<std::uint16_t> q;
  q.reserve(paged.q.size());
  for (float& value : paged.q) {
    q.push_back(narrow(value, query_type));
    value = widen(q.back(), query_type);
  }
  Output unused;
  const attention::AttentionParams host = paged.params(unused);
  rows_ = paged.query_start.back() * host.geometry.num_heads;

  std::vector<std::int32_t> table = paged.block_table;
  const std::int64_t pages = *std::max_element(table.begin(), table.end()) + 1;
  std::int64_t most = 1;
  for (std::size_t r = 0; r < paged.seq_lens.size(); ++r) {
    const std::int64_t used =
        (paged.seq_lens[r] + paged.storage.page_size - 1) / paged.storage.page_size;
    for (std::int64_t i = used; i < paged.block_table_stride; ++i) {
      table[r * static_cast<std::size_t>(paged.block_table_stride) + static_cast<std::size_t>(i)] =
          std::numeric_limits<std::int32_t>::max();
    }
    most = std::max<std::int64_t>(most, paged.query_start[r + 1] - paged.query_start[r]);
  }
  const auto side = [&](const attention::PagedRows& rows) {
    const auto copy = [&](const std::byte* data, std::int64_t bytes) {
      return upload(std::vector<std::byte>(data, data + bytes));
    };
    attention::PagedRows out = rows;
    out.data = copy(rows.data, pages * attention::data_bytes(rows.type, rows.page_stride));
    const std::int64_t scales = attention::block_scale_bytes(rows.type, rows.page_stride);
    out.block_scales = scales > 0 ? copy(rows.block_scales, pages * scales) : nullptr;
    return out;
  };
  params.geometry = host.geometry;
  params.batch = host.batch;
  params.batch.query_start = upload(paged.query_start);
  params.batch.seq_lens = upload(paged.seq_lens);
  params.batch.block_table = upload(table);
  params.max_queries = most;
  params.k = side(host.k);
  params.v = side(host.v);
  params.query_type = query_type;
  params.q = upload(q);
  params.sinks = paged.sinks.empty() ? nullptr : upload(paged.sinks);
  o_ = upload(std::vector<std::uint16_t>(static_cast<std::size_t>(rows_ * host.geometry.v_head_dim),
                                         0xFFFF));
  lse_ = upload(
      std::vector<float>(static_cast<std::size_t>(rows_), std::numeric_limits<float>::quiet_NaN()));
  params.o = o_;
  params.lse.data = lse_;
  // Twice what a tuning of more workers may need; never cleared, since plan_decode() must do.
  const std::int64_t bytes = 2 * cuda::decode_workspace_bytes(params, device);
  workspace = {
      .data = upload(std::vector<std::byte>(static_cast<std::size_t>(bytes), std::byte{0xA5})),
      .bytes = bytes};
}

void GpuCase::enqueue(cuda::StreamView stream, const cuda::DecodeTuning& tuning) {
  expect_ok(cuda::plan_decode(params, device_, workspace, stream, tuning));
  expect_ok(cuda::launch_decode(params, device_, workspace, stream, tuning));
}

void GpuCase::run(const cuda::DecodeTuning& tuning) {
  enqueue({}, tuning);
  expect_ok(cuda::synchronize());
}

void GpuCase::run_prefill() {
  expect_ok(cuda::launch_prefill(params, device_, {}));
  expect_ok(cuda::synchronize());
}

void GpuCase::poison_output() {
  expect_ok(cuda::fill(o_, 0xFF, rows_ * params.geometry.v_head_dim * 2, {}));
  expect_ok(cuda::fill(lse_, 0xFF, rows_ * static_cast<std::int64_t>(sizeof(float)), {}));
  expect_ok(cuda::synchronize());
}

void GpuCase::set_lengths(const std::vector<std::int32_t>& seq_lens) {
  expect_ok(cuda::copy_to_device(const_cast<std::int32_t*>(params.batch.seq_lens), seq_lens.data(),
                                 static_cast<std::int64_t>(seq_lens.size() * sizeof(seq_lens[0]))));
}

std::vector<std::uint16_t> GpuCase::bits() const {
  std::vector<std::uint16_t> out(static_cast<std::size_t>(rows_ * params.geometry.v_head_dim));
  expect_ok(cuda::copy_to_host(out.data(), o_, static_cast<std::int64_t>(out.size() * 2)));
  return out;
}

Output GpuCase::output() const {
  Output out;
  for (const std::uint16_t code : bits()) out.o.push_back(widen(code, params.query_type));
  out.lse.resize(static_cast<std::size_t>(rows_));
  expect_ok(
      cuda::copy_to_host(out.lse.data(), lse_, rows_ * static_cast<std::int64_t>(sizeof(float))));
  return out;
}

void GpuCase::set_head_scales(const std::vector<float>& k, const std::vector<float>& v) {
  k_head_scales_ = k;
  v_head_scales_ = v;
  params.k_head_scales = upload(k);
  params.v_head_scales = upload(v);
}

namespace {

// Multiplies rows of [tokens, num_heads, dim] by the scale of their KV head.
void scale_heads(std::vector<float>& rows, const std::vector<float>& scales, std::int64_t dim,
                 const attention::Geometry& geometry) {
  if (scales.empty()) return;
  const auto heads = static_cast<std::size_t>(geometry.num_heads);
  const auto group = heads / static_cast<std::size_t>(geometry.num_kv_heads);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] *= scales[i / static_cast<std::size_t>(dim) % heads / group];
  }
}

}  // namespace

Output GpuCase::reference() const {
  Output out;
  attention::AttentionParams call = paged_.params(out);
  const attention::Geometry& geometry = call.geometry;
  // Scaled keys make the scores of scaled queries.
  std::vector<float> q = paged_.q;
  scale_heads(q, k_head_scales_, geometry.head_dim, geometry);
  call.q = q.data();
  kernels::cpu::TeamPool pool(
      std::max(1, static_cast<int>(std::min(16U, std::thread::hardware_concurrency()))));
  pool.run([&](const kernels::cpu::Team& team) { kernels::cpu::reference_attention(team, call); });
  scale_heads(out.o, v_head_scales_, geometry.v_head_dim, geometry);
  return out;
}

float tolerance_of(DataType cache, DataType query) {
  // The weights are rounded to the type of the multiplication, the outputs to that of the queries;
  // over a bf16 cache, so are f16 queries.
  if (cache == DataType::kBf16) return query == DataType::kBf16 ? 6e-3F : 1e-2F;
  return query == DataType::kBf16 ? 6e-3F : 1e-3F;
}

void expect_close(const Output& got, const Output& wanted, float tolerance) {
  ASSERT_EQ(got.o.size(), wanted.o.size());
  ASSERT_EQ(got.lse.size(), wanted.lse.size());
  for (std::size_t i = 0; i < got.o.size(); ++i) {
    ASSERT_NEAR(got.o[i], wanted.o[i], tolerance * (1 + std::abs(wanted.o[i]))) << "o " << i;
  }
  for (std::size_t i = 0; i < got.lse.size(); ++i) {
    if (std::isinf(wanted.lse[i])) {
      ASSERT_EQ(got.lse[i], wanted.lse[i]) << "lse " << i;
    } else {
      ASSERT_NEAR(got.lse[i], wanted.lse[i], tolerance * (1 + std::abs(wanted.lse[i])))
          << "lse " << i;
    }
  }
}

void expect_equal_bits(GpuCase& on_gpu, void (*run)(GpuCase&)) {
  constexpr int kRuns = 20;
  run(on_gpu);
  const std::vector<std::uint16_t> first = on_gpu.bits();
  for (int i = 0; i < kRuns; ++i) {
    on_gpu.poison_output();
    run(on_gpu);
    ASSERT_EQ(on_gpu.bits(), first);
  }
}

void expect_reference(PagedCase& paged, const cuda::DeviceInfo& device, DataType query_type,
                      const cuda::DecodeTuning& tuning) {
  GpuCase on_gpu(paged, device, query_type);
  on_gpu.run(tuning);
  expect_close(on_gpu.output(), on_gpu.reference(), tolerance_of(paged.storage.type, query_type));
}

}  // namespace kernelpath::testing
