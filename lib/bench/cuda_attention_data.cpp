#include "bench/cuda_attention_data.h"

#include "base/checked.h"
#include "base/float_types.h"
#include "bench/matrix_data.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace kernelpath::bench {
namespace {

namespace cuda = kernels::cuda;
using attention::DataType;

// The largest power of two that divides both.
std::int64_t common_power(std::int64_t a, std::int64_t b) {
  const auto bits = static_cast<std::uint64_t>(a) | static_cast<std::uint64_t>(b);
  return std::int64_t{1} << std::countr_zero(bits);
}

// Bytes that follow each other and belong to one KV head.
std::int64_t head_run_bytes(const Shape& shape, std::int64_t head_dim) {
  const std::int64_t tokens =
      shape.layout == attention::KvLayout::kHnd ? shape.page_size : std::int64_t{1};
  return attention::data_bytes(shape.kv_type, tokens * head_dim);
}

// The pages of one side that a request has, one after the other, on the host.
struct HostSide {
  std::vector<std::byte> data;
  std::vector<std::byte> scales;
};

struct DeviceSide {
  const std::byte* data = nullptr;
  const std::byte* scales = nullptr;
  kv::PageLayout layout;
};

Result<HostSide> fetch_pages(const DeviceSide& side, std::span<const std::int32_t> pages) {
  HostSide out;
  const std::int64_t bytes = side.layout.page_data_bytes();
  const std::int64_t scale_bytes = side.layout.page_scale_bytes();
  out.data.resize(pages.size() * static_cast<std::size_t>(bytes));
  out.scales.resize(pages.size() * static_cast<std::size_t>(scale_bytes));
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    KERNELPATH_CHECK_OK(
        cuda::copy_to_host(out.data.data() + at * bytes, side.data + pages[i] * bytes, bytes));
    if (scale_bytes == 0) continue;
    KERNELPATH_CHECK_OK(cuda::copy_to_host(out.scales.data() + at * scale_bytes,
                                           side.scales + pages[i] * scale_bytes, scale_bytes));
  }
  return out;
}

// Outputs are rounded to 16 bits, probabilities on the way as well.
double bound_of(DataType query_type) { return query_type == DataType::kF16 ? 4e-3 : 1e-2; }

}  // namespace

std::vector<float> widened(DataType type, std::span<const std::uint16_t> codes) {
  std::vector<float> out;
  out.reserve(codes.size());
  for (const std::uint16_t code : codes) {
    out.push_back(type == DataType::kF16 ? f16_to_f32(code) : bf16_to_f32(code));
  }
  return out;
}

cuda::DecodeParams attention_params(const Shape& shape) {
  alignas(256) static std::byte somewhere{};
  const attention::Geometry& g = shape.geometry;
  cuda::DecodeParams out;
  out.geometry = g;
  out.batch.num_requests = shape.batch;
  out.batch.page_size = shape.page_size;
  out.batch.block_table_stride = 1;
  out.max_queries = shape.query_tokens;
  out.k = kv::paged_rows(page_layout(shape, g.head_dim), &somewhere, &somewhere);
  out.v = kv::paged_rows(page_layout(shape, g.v_head_dim), &somewhere, &somewhere);
  out.query_type = shape.dtype;
  return out;
}

Result<std::unique_ptr<CudaAttentionData>> CudaAttentionData::make(CudaMachine& machine,
                                                                   const Shape& shape, bool cold) {
  auto out = std::make_unique<CudaAttentionData>();
  const attention::Geometry& g = shape.geometry;
  const auto bytes = static_cast<std::int64_t>(work_of(shape).bytes);
  out->plan = plan_pages(shape, machine.copies(bytes, cold));
  out->state = machine.state(bytes, out->plan.copies);
  const kv::PageLayout k = page_layout(shape, g.head_dim);
  const kv::PageLayout v = page_layout(shape, g.v_head_dim);
  out->k_bytes = out->plan.pages * k.page_data_bytes();
  out->v_bytes = out->plan.pages * v.page_data_bytes();
  constexpr std::int64_t kLongestRun = 1 << 16;
  out->run_bytes =
      std::min(common_power(head_run_bytes(shape, g.head_dim), head_run_bytes(shape, g.v_head_dim)),
               kLongestRun);
  KERNELPATH_TRY(kv, machine.filled(out->k_bytes + out->v_bytes, pattern_of(shape.kv_type)));
  out->kv = std::move(kv);
  const BitPattern scales = scale_pattern(kernels::ScaleFormat::kE4m3);
  KERNELPATH_TRY(k_scales, machine.filled(out->plan.pages * k.page_scale_bytes(), scales));
  out->k_scales = std::move(k_scales);
  KERNELPATH_TRY(v_scales, machine.filled(out->plan.pages * v.page_scale_bytes(), scales));
  out->v_scales = std::move(v_scales);
  const std::int64_t rows = shape.batch * shape.query_tokens * g.num_heads;
  KERNELPATH_TRY(q, machine.filled(attention::data_bytes(shape.dtype, rows * g.head_dim),
                                   pattern_of(shape.dtype)));
  out->q = std::move(q);
  KERNELPATH_TRY(o, Buffer::allocate(attention::data_bytes(shape.dtype, rows * g.v_head_dim)));
  out->o = std::move(o);
  KERNELPATH_TRY(query_start, machine.copied(std::span<const std::int32_t>(out->plan.query_start)));
  out->query_start = std::move(query_start);
  KERNELPATH_TRY(seq_lens, machine.copied(std::span<const std::int32_t>(out->plan.seq_lens)));
  out->seq_lens = std::move(seq_lens);
  KERNELPATH_TRY(table, machine.copied(std::span<const std::int32_t>(out->plan.block_table)));
  out->block_table = std::move(table);
  const std::vector<float> ones(static_cast<std::size_t>(g.num_heads), 1.0F);
  KERNELPATH_TRY(sinks, machine.copied(std::span<const float>(ones)));
  out->sinks = std::move(sinks);
  return out;
}

void CudaAttentionData::fill(const Shape& shape, std::int64_t copy, cuda::DecodeParams& out) const {
  const auto integers = [](const Buffer& buffer) {
    return reinterpret_cast<const std::int32_t*>(buffer.data());
  };
  out.batch = {.num_requests = shape.batch,
               .query_start = integers(query_start),
               .seq_lens = integers(seq_lens),
               .block_table = integers(block_table) + copy * shape.batch * plan.stride,
               .block_table_stride = plan.stride,
               .page_size = shape.page_size};
  out.k.data = kv.data();
  out.v.data = kv.data() + k_bytes;
  out.k.block_scales = k_scales.data();
  out.v.block_scales = v_scales.data();
  out.q = q.data();
  out.o = o.data();
  if (shape.sinks) out.sinks = reinterpret_cast<const float*>(sinks.data());
}

Result<Check> CudaAttentionData::compare(CudaMachine& machine, const Shape& shape) const {
  const attention::Geometry& g = shape.geometry;
  const std::int64_t q_width = g.num_heads * g.head_dim;
  const std::int64_t o_width = g.num_heads * g.v_head_dim;
  const kv::PageLayout k_layout = page_layout(shape, g.head_dim);
  const kv::PageLayout v_layout = page_layout(shape, g.v_head_dim);
  const DeviceSide k_side{kv.data(), k_scales.data(), k_layout};
  const DeviceSide v_side{kv.data() + k_bytes, v_scales.data(), v_layout};
  const std::vector<float> ones(static_cast<std::size_t>(g.num_heads), 1.0F);
  const std::vector<CheckPoint> points = check_points(shape);
  Difference difference;
  for (const CheckPoint& point : points) {
    const std::int32_t* const table = plan.table_of(0) + point.request * plan.stride;
    const std::int64_t count = ceil_div(point.position + 1, shape.page_size);
    const std::span<const std::int32_t> pages(table, static_cast<std::size_t>(count));
    KERNELPATH_TRY(k_host, fetch_pages(k_side, pages));
    KERNELPATH_TRY(v_host, fetch_pages(v_side, pages));
    std::vector<std::uint16_t> codes(static_cast<std::size_t>(std::max(q_width, o_width)));
    const std::int64_t row = point.request * shape.query_tokens + point.query;
    KERNELPATH_CHECK_OK(
        cuda::copy_to_host(codes.data(), q.data() + row * q_width * 2, q_width * 2));
    const std::vector<float> q_row = widened(shape.dtype, codes);
    KERNELPATH_CHECK_OK(
        cuda::copy_to_host(codes.data(), o.data() + row * o_width * 2, o_width * 2));
    const std::vector<float> o_row = widened(shape.dtype, codes);
    // The pages lie one after the other on the host.
    std::vector<std::int32_t> order(pages.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
    PointBatch batch;
    batch.seq_lens = {static_cast<std::int32_t>(point.position + 1)};
    std::vector<float> reference(static_cast<std::size_t>(o_width));
    attention::AttentionParams params;
    params.geometry = g;
    params.batch = batch.view(order.data(), count, shape.page_size);
    params.k = kv::paged_rows(k_layout, k_host.data.data(), k_host.scales.data());
    params.v = kv::paged_rows(v_layout, v_host.data.data(), v_host.scales.data());
    params.q = q_row.data();
    params.o = reference.data();
    params.reference = true;
    if (shape.sinks) params.sinks = ones.data();
    machine.host().run([&](kernels::Ops& ops) { ops.attention(params); });
    for (std::size_t i = 0; i < reference.size(); ++i) difference.add(o_row[i], reference[i]);
  }
  return Check{.error = difference.relative(),
               .bound = bound_of(shape.dtype),
               .against = check_text(shape, points.size())};
}

Result<Buffer> CudaAttentionData::run_table(CudaMachine& machine, const Shape& shape) const {
  std::vector<std::int32_t> out;
  const std::int64_t k_page = page_layout(shape, shape.geometry.head_dim).page_data_bytes();
  const std::int64_t v_page = page_layout(shape, shape.geometry.v_head_dim).page_data_bytes();
  const auto append = [&](std::int64_t begin, std::int64_t page_bytes,
                          std::span<const std::int32_t> pages, std::int64_t head) {
    const std::int64_t head_bytes = page_bytes / shape.geometry.num_kv_heads;
    for (const std::int32_t page : pages) {
      const std::int64_t first = begin + page * page_bytes + head * head_bytes;
      for (std::int64_t at = 0; at < head_bytes; at += run_bytes) {
        out.push_back(static_cast<std::int32_t>((first + at) / run_bytes));
      }
    }
  };
  for (std::int64_t row = 0; row < plan.copies * shape.batch; ++row) {
    const std::int32_t* const table = plan.block_table.data() + row * plan.stride;
    const auto count = static_cast<std::size_t>(
        ceil_div(plan.seq_lens[static_cast<std::size_t>(row % shape.batch)], shape.page_size));
    for (std::int64_t head = 0; head < shape.geometry.num_kv_heads; ++head) {
      append(0, k_page, {table, count}, head);
      append(k_bytes, v_page, {table, count}, head);
    }
  }
  return machine.copied(std::span<const std::int32_t>(out));
}

}  // namespace kernelpath::bench
