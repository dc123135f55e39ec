#include "kernels/cuda/gqa_decode.h"

#include "kernels/cuda/call.h"
#include "kernels/cuda/sm80/gqa/config.h"
#include "kernels/cuda/sm80/gqa/kernel.h"
#include "kernels/cuda/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cuda_runtime_api.h>
#include <utility>
#include <vector>

namespace kernelpath::kernels::cuda {
namespace {

using attention::DataType;

// What the host needs to know of an instantiation.
struct Instantiation {
  DataType type = DataType::kBf16;
  int dim = 0;
  int rows = 0;         // of a pass
  int step_tokens = 0;  // of a warp
  int warps = 0;
  int shared_bytes = 0;  // with one merge buffer
  int merge_bytes = 0;
  cudaError_t (*launch)(const sm80::DecodeKernelParams&, cudaStream_t) = nullptr;
};

template <DataType Type, int Dim, int RowTiles>
constexpr Instantiation instantiation() {
  using Config = sm80::DecodeConfig<Type, Dim, RowTiles>;
  return {.type = Type,
          .dim = Dim,
          .rows = Config::kRows,
          .step_tokens = Config::kTokens,
          .warps = Config::kWarps,
          .shared_bytes = Config::shared_bytes(1),
          .merge_bytes = Config::kMergeBytes,
          .launch = &sm80::launch_decode_kernel<Type, Dim, RowTiles>};
}

// In the order of preference: the first that is large enough runs. The last of a head size takes
// more rows by several passes.
template <DataType Type>
constexpr std::array<Instantiation, 8> instantiations_of() {
  return {instantiation<Type, 64, 1>(),  instantiation<Type, 64, 2>(),
          instantiation<Type, 64, 4>(),  instantiation<Type, 128, 1>(),
          instantiation<Type, 128, 2>(), instantiation<Type, 128, 4>(),
          instantiation<Type, 256, 1>(), instantiation<Type, 256, 2>()};
}

constexpr std::array kInstantiations{
    instantiations_of<DataType::kBf16>(), instantiations_of<DataType::kF16>(),
    instantiations_of<DataType::kFp8E4m3>(), instantiations_of<DataType::kFp8E5m2>(),
    instantiations_of<DataType::kNvfp4>()};

const Instantiation* find_instantiation(const DecodeParams& params) {
  const attention::Geometry& geometry = params.geometry;
  const std::int64_t dim = std::max(geometry.head_dim, geometry.v_head_dim);
  const std::int64_t rows =
      params.max_queries * (geometry.num_heads / std::max<std::int64_t>(geometry.num_kv_heads, 1));
  const Instantiation* best = nullptr;
  for (const auto& of_type : kInstantiations) {
    for (const Instantiation& one : of_type) {
      if (one.type != params.k.type || one.dim < dim) continue;
      if (best != nullptr && (best->dim < one.dim || best->rows >= rows)) break;
      best = &one;
    }
  }
  return best;
}

PlanShape shape_of(const DecodeParams& params, const DeviceInfo& device, const DecodeTuning& tuning,
                   const Instantiation& kernel) {
  const attention::Geometry& geometry = params.geometry;
  // Segments end at steps of a warp. A tile is a step of each warp, and where there is enough work
  // 256 tokens: the larger tile is 0.3 to 1 % faster, and no worker ends much later than the
  // others.
  constexpr std::int32_t kCoarseTokens = 256;
  const std::int32_t step = kernel.step_tokens;
  const std::int32_t coarse_tokens = kCoarseTokens / step * step;
  const std::int32_t round = std::min(step * kernel.warps, coarse_tokens);
  const std::int32_t tile =
      tuning.tile_tokens > 0 ? (tuning.tile_tokens + step - 1) / step * step : round;
  // Where a token is 8 bits or less an element, the ends of items are 3 to 10 % of a launch.
  constexpr std::int32_t kCutTokens = 1024;
  const bool is_small = attention::bits_of(params.k.type) <= 8;
  const std::int32_t cut_tokens = is_small && tuning.workers <= 0 ? kCutTokens : 0;
  return {.tile_tokens = tile,
          .coarse = tuning.tile_tokens > 0 ? 1 : coarse_tokens / round,
          .block_rows = kernel.rows,
          .group = static_cast<std::int32_t>(geometry.num_heads / geometry.num_kv_heads),
          .num_kv_heads = static_cast<std::int32_t>(geometry.num_kv_heads),
          .workers = tuning.workers > 0 ? tuning.workers : device.num_sms,
          .item_charge = std::max(tuning.item_charge, 0),
          .cut_tokens = cut_tokens,
          .window = static_cast<std::int32_t>(geometry.window),
          .chunk = static_cast<std::int32_t>(geometry.chunk),
          .causal = geometry.causal ? 1 : 0,
          .step_tokens = step,
          .first_pages = kernel.warps * step / kPageTokens};
}

// Offsets of a workspace's arrays; each begins at a multiple of 256 bytes.
struct WorkspaceLayout {
  std::int64_t requests = 0;
  std::int64_t workers = 0;
  std::int64_t first_pages = 0;
  std::int64_t marks = 0;
  std::int64_t partials = 0;
  std::int64_t num_partials = 0;
  std::int64_t bytes = 0;
};

WorkspaceLayout layout_of(const PlanShape& shape, std::int64_t num_requests, int dim) {
  WorkspaceLayout layout;
  const auto place = [&](std::int64_t& at, std::int64_t bytes) {
    at = layout.bytes;
    layout.bytes += (bytes + 255) / 256 * 256;
  };
  layout.num_partials = std::int64_t{2} * shape.workers * shape.block_rows * (dim / 2 + 1);
  place(layout.requests, num_requests * static_cast<std::int64_t>(sizeof(RequestPlan)));
  place(layout.workers, shape.workers * static_cast<std::int64_t>(sizeof(WorkerPlan)));
  place(layout.first_pages, std::int64_t{4} * shape.workers * shape.first_pages);
  place(layout.marks, std::int64_t{4} * shape.workers);
  place(layout.partials, layout.num_partials * static_cast<std::int64_t>(sizeof(sm80::MarkedPair)));
  return layout;
}

// See DecodeKernelParams.
bool tiles_are_runs(const DecodeParams& params, const Instantiation& kernel) {
  const auto side_is = [&](const attention::PagedRows& rows, std::int64_t dim) {
    // A block scale stands for 8 bytes of codes.
    const auto scales_at = [&](std::int64_t stride) {
      return rows.type != DataType::kNvfp4 || attention::data_bytes(rows.type, stride) % 128 == 0;
    };
    return dim == kernel.dim && rows.token_stride == dim && scales_at(rows.page_stride) &&
           scales_at(rows.head_stride) &&
           reinterpret_cast<std::uintptr_t>(rows.block_scales) % 16 == 0;
  };
  return params.batch.page_size % kPageTokens == 0 && side_is(params.k, params.geometry.head_dim) &&
         side_is(params.v, params.geometry.v_head_dim);
}

template <class T>
T* at(const DecodeWorkspace& workspace, std::int64_t offset) {
  return reinterpret_cast<T*>(workspace.data + offset);
}

}  // namespace

Result<void> check_decode(const DecodeParams& params, const DeviceInfo& device) {
  Findings findings(kDecodeCapabilities.name);
  require_claimed(findings, kDecodeCapabilities, params, device);
  const Instantiation* kernel = find_instantiation(params);
  if (kernel != nullptr) {
    findings.require(kernel->shared_bytes <= device.shared_bytes_per_block,
                     "the kernel needs {} bytes of shared memory and the device has {}",
                     kernel->shared_bytes, device.shared_bytes_per_block);
  }
  return findings.result();
}

std::int64_t decode_workspace_bytes(const DecodeParams& params, const DeviceInfo& device,
                                    const DecodeTuning& tuning) {
  const Instantiation* kernel = find_instantiation(params);
  if (kernel == nullptr) return 0;
  const PlanShape shape = shape_of(params, device, tuning, *kernel);
  return layout_of(shape, params.batch.num_requests, kernel->dim).bytes;
}

namespace {

// What both launches begin with.
struct Prepared {
  const Instantiation* kernel = nullptr;
  PlanShape shape = {};
  WorkspaceLayout layout = {};
};

Result<Prepared> prepare(const DecodeParams& params, const DeviceInfo& device,
                         const DecodeWorkspace& workspace, const DecodeTuning& tuning) {
  KERNELPATH_CHECK_OK(check_decode(params, device));
  Prepared prepared;
  prepared.kernel = find_instantiation(params);
  prepared.shape = shape_of(params, device, tuning, *prepared.kernel);
  prepared.layout = layout_of(prepared.shape, params.batch.num_requests, prepared.kernel->dim);
  if (workspace.data == nullptr || workspace.bytes < prepared.layout.bytes) {
    return fail({.code = ErrorCode::kResource,
                 .message = fmt::format("the decode workspace has {} bytes; this call needs {}",
                                        workspace.bytes, prepared.layout.bytes),
                 .hint = "allocate decode_workspace_bytes() for the largest batch"});
  }
  return prepared;
}

}  // namespace

Result<void> plan_decode(const DecodeParams& params, const DeviceInfo& device,
                         const DecodeWorkspace& workspace, StreamView stream,
                         const DecodeTuning& tuning) {
  KERNELPATH_TRY(prepared, prepare(params, device, workspace, tuning));
  const sm80::PlanKernelParams plan{
      .shape = prepared.shape,
      .num_requests = static_cast<std::int32_t>(params.batch.num_requests),
      .query_start = params.batch.query_start,
      .seq_lens = params.batch.seq_lens,
      .block_table = params.batch.block_table,
      .block_table_stride = params.batch.block_table_stride,
      .page_size = static_cast<std::int32_t>(params.batch.page_size),
      .requests = at<RequestPlan>(workspace, prepared.layout.requests),
      .workers = at<WorkerPlan>(workspace, prepared.layout.workers),
      .first_pages = at<std::int32_t>(workspace, prepared.layout.first_pages),
      .marks = at<std::uint32_t>(workspace, prepared.layout.marks),
      .partials = at<sm80::MarkedPair>(workspace, prepared.layout.partials),
      .num_partials = prepared.layout.num_partials,
      .overlap_launches = device.sm >= 90 ? 1 : 0};
  return check_status(sm80::launch_plan_kernel(plan, static_cast<cudaStream_t>(stream.handle)),
                      "the launch of the decode plan");
}

Result<void> launch_decode(const DecodeParams& params, const DeviceInfo& device,
                           const DecodeWorkspace& workspace, StreamView stream,
                           const DecodeTuning& tuning) {
  KERNELPATH_TRY(prepared, prepare(params, device, workspace, tuning));
  const attention::Geometry& geometry = params.geometry;
  const sm80::DecodeKernelParams kernel{
      .shape = prepared.shape,
      .requests = at<const RequestPlan>(workspace, prepared.layout.requests),
      .workers = at<const WorkerPlan>(workspace, prepared.layout.workers),
      .first_pages = at<const std::int32_t>(workspace, prepared.layout.first_pages),
      .k = side_of(params.k, geometry.head_dim, params.k_head_scales),
      .v = side_of(params.v, geometry.v_head_dim, params.v_head_scales),
      .block_table = params.batch.block_table,
      .block_table_stride = params.batch.block_table_stride,
      .tiles_are_runs = tiles_are_runs(params, *prepared.kernel) ? 1 : 0,
      .page_size = sm80::FastDivisor(static_cast<std::uint32_t>(params.batch.page_size)),
      .group = sm80::FastDivisor(static_cast<std::uint32_t>(prepared.shape.group)),
      .q = static_cast<const std::byte*>(params.q),
      .q_stride = stride_or(params.q_stride, geometry.num_heads, geometry.head_dim),
      .o = static_cast<std::byte*>(params.o),
      .o_stride = stride_or(params.o_stride, geometry.num_heads, geometry.v_head_dim),
      .lse = params.lse.data,
      .sinks = params.sinks,
      .num_heads = static_cast<std::int32_t>(geometry.num_heads),
      .head_dim = static_cast<std::int32_t>(geometry.head_dim),
      .v_head_dim = static_cast<std::int32_t>(geometry.v_head_dim),
      .query_is_bf16 = params.query_type == DataType::kBf16 ? 1 : 0,
      .softmax_scale = geometry.softmax_scale,
      .softcap = geometry.softcap,
      .merge_buffers = prepared.kernel->shared_bytes + prepared.kernel->merge_bytes <=
                               device.shared_bytes_per_block
                           ? 2
                           : 1,
      .overlap_launches = device.sm >= 90 ? 1 : 0,
      .partials = at<sm80::MarkedPair>(workspace, prepared.layout.partials),
      .marks = at<std::uint32_t>(workspace, prepared.layout.marks)};
  return check_status(prepared.kernel->launch(kernel, static_cast<cudaStream_t>(stream.handle)),
                      "the launch of decode attention");
}

namespace {

std::string name_of(const Instantiation& kernel) {
  return fmt::format("sm80_gqa<{}, {}, {}>", attention::data_type_name(kernel.type), kernel.dim,
                     kernel.rows);
}

}  // namespace

std::string decode_kernel_name(const DecodeParams& params) {
  const Instantiation* kernel = find_instantiation(params);
  return kernel != nullptr ? name_of(*kernel) : "none";
}

std::vector<std::string> decode_kernel_names() {
  std::vector<std::string> names;
  for (const auto& of_type : kInstantiations) {
    for (const Instantiation& one : of_type) names.push_back(name_of(one));
  }
  return names;
}

}  // namespace kernelpath::kernels::cuda
