#include "kernels/cuda/prefill.h"

#include "kernels/cuda/call.h"
#include "kernels/cuda/sm90/prefill/kernel.h"
#include "kernels/cuda/status.h"

#include <algorithm>
#include <limits>

namespace kernelpath::kernels::cuda {
namespace {

using attention::DataType;

constexpr std::int64_t kDim = 128;
constexpr std::int64_t kTileQueries = 128;

#ifdef KERNELPATH_HAVE_SM90A
constexpr bool kHasSm90a = true;
#else
constexpr bool kHasSm90a = false;
#endif

std::int64_t query_tiles(const DecodeParams& params) {
  return (params.max_queries + kTileQueries - 1) / kTileQueries;
}

void check_types(Findings& findings, const DecodeParams& params) {
  findings.require(params.k.type == DataType::kBf16 || params.k.type == DataType::kF16,
                   "the KV cache is {}; bfloat16 and float16 are supported",
                   attention::data_type_name(params.k.type));
  findings.require(params.k.type == params.v.type && params.k.type == params.query_type,
                   "queries are {}, K is {} and V is {}; they must be of one type",
                   attention::data_type_name(params.query_type),
                   attention::data_type_name(params.k.type),
                   attention::data_type_name(params.v.type));
}

}  // namespace

Result<void> check_prefill(const DecodeParams& params, const DeviceInfo& device) {
  const attention::Geometry& geometry = params.geometry;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  Findings findings("prefill");
  findings.require(device.sm == 90, "the device is sm_{}; sm_90 is supported", device.sm);
  findings.require(kHasSm90a, "this build has no code for sm_90a; KERNELPATH_CUDA_ARCHS names it");
  findings.require(geometry.head_dim == kDim && geometry.v_head_dim == kDim,
                   "the head sizes of K and V are {} and {}; {} is supported", geometry.head_dim,
                   geometry.v_head_dim, kDim);
  check_types(findings, params);
  check_side(findings, "K", params.k, geometry.head_dim);
  check_side(findings, "V", params.v, geometry.v_head_dim);
  findings.require(geometry.num_kv_heads > 0 && geometry.num_heads > 0 &&
                       geometry.num_heads % std::max<std::int64_t>(geometry.num_kv_heads, 1) == 0,
                   "{} query heads do not divide among {} KV heads", geometry.num_heads,
                   geometry.num_kv_heads);
  findings.require(params.batch.page_size > 0, "the page size is {}; 1 or more is supported",
                   params.batch.page_size);
  findings.require(geometry.window >= 0 && geometry.window <= kMost && geometry.chunk >= 0 &&
                       geometry.chunk <= kMost,
                   "window {} and chunk {}; 0 to {} are supported", geometry.window, geometry.chunk,
                   kMost);
  findings.require(query_tiles(params) * params.batch.num_requests * geometry.num_heads <= kMost,
                   "{} requests of up to {} queries are more than a launch has blocks for",
                   params.batch.num_requests, params.max_queries);
  return findings.result();
}

Result<void> launch_prefill(const DecodeParams& params, const DeviceInfo& device,
                            StreamView stream) {
  KERNELPATH_CHECK_OK(check_prefill(params, device));
  const attention::Geometry& geometry = params.geometry;
  const auto group = static_cast<std::int32_t>(geometry.num_heads / geometry.num_kv_heads);
  const sm90::PrefillKernelParams kernel{
      .shape = {.group = group,
                .num_kv_heads = static_cast<std::int32_t>(geometry.num_kv_heads),
                .window = static_cast<std::int32_t>(geometry.window),
                .chunk = static_cast<std::int32_t>(geometry.chunk),
                .causal = geometry.causal ? 1 : 0},
      .num_requests = static_cast<std::int32_t>(params.batch.num_requests),
      .query_tiles = static_cast<std::int32_t>(query_tiles(params)),
      .num_heads = static_cast<std::int32_t>(geometry.num_heads),
      .query_start = params.batch.query_start,
      .seq_lens = params.batch.seq_lens,
      .block_table = params.batch.block_table,
      .block_table_stride = params.batch.block_table_stride,
      .page_size = sm80::FastDivisor(static_cast<std::uint32_t>(params.batch.page_size)),
      .group = sm80::FastDivisor(static_cast<std::uint32_t>(group)),
      .k = side_of(params.k, geometry.head_dim, params.k_head_scales),
      .v = side_of(params.v, geometry.v_head_dim, params.v_head_scales),
      .q = static_cast<const std::byte*>(params.q),
      .q_stride = stride_or(params.q_stride, geometry.num_heads, geometry.head_dim),
      .o = static_cast<std::byte*>(params.o),
      .o_stride = stride_or(params.o_stride, geometry.num_heads, geometry.v_head_dim),
      .lse = params.lse.data,
      .sinks = params.sinks,
      .score_scale = geometry.softmax_scale * params.k.scale,
      .softcap = geometry.softcap};
  return check_status(sm90::launch_prefill_kernel(kernel, params.query_type == DataType::kBf16,
                                                  static_cast<cudaStream_t>(stream.handle)),
                      "the launch of prefill attention");
}

}  // namespace kernelpath::kernels::cuda
