#include "kernels/cuda/prefill.h"

#include "base/assert.h"
#include "kernels/cuda/call.h"
#include "kernels/cuda/sm90/prefill/config.h"
#include "kernels/cuda/sm90/prefill/kernel.h"
#include "kernels/cuda/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace kernelpath::kernels::cuda {
namespace {

using attention::DataType;

#ifdef KERNELPATH_HAVE_SM90A
constexpr bool kHasSm90a = true;
#else
constexpr bool kHasSm90a = false;
#endif

// What the host needs to know of an instantiation.
struct Instantiation {
  DataType type = DataType::kBf16;
  int dim_k = 0;
  int dim_v = 0;
  int queries = 0;  // of a tile
  cudaError_t (*launch)(const sm90::PrefillKernelParams&, cudaStream_t) = nullptr;
};

template <DataType Type, int DimK, int DimV>
constexpr Instantiation instantiation() {
  return {.type = Type,
          .dim_k = DimK,
          .dim_v = DimV,
          .queries = sm90::PrefillConfig<Type, DimK, DimV>::kQueries,
          .launch = &sm90::launch_prefill_kernel<Type, DimK, DimV>};
}

// In the order of preference: the first that is large enough runs.
template <DataType Type>
constexpr std::array<Instantiation, 7> instantiations_of() {
  return {instantiation<Type, 64, 64>(),   instantiation<Type, 80, 80>(),
          instantiation<Type, 96, 96>(),   instantiation<Type, 128, 128>(),
          instantiation<Type, 192, 128>(), instantiation<Type, 192, 192>(),
          instantiation<Type, 256, 256>()};
}
// Its head sizes are multiples of 64.
constexpr std::array<Instantiation, 5> nvfp4_instantiations() {
  constexpr auto kType = DataType::kNvfp4;
  return {instantiation<kType, 64, 64>(), instantiation<kType, 128, 128>(),
          instantiation<kType, 192, 128>(), instantiation<kType, 192, 192>(),
          instantiation<kType, 256, 256>()};
}

constexpr auto kInstantiations = [] {
  std::array<Instantiation, 4 * 7 + 5> all{};
  std::size_t count = 0;
  const auto add = [&](const auto& some) {
    for (const Instantiation& one : some) all[count++] = one;
  };
  add(instantiations_of<DataType::kBf16>());
  add(instantiations_of<DataType::kF16>());
  add(instantiations_of<DataType::kFp8E4m3>());
  add(instantiations_of<DataType::kFp8E5m2>());
  add(nvfp4_instantiations());
  return all;
}();

const Instantiation* find_instantiation(const DecodeParams& params) {
  const auto* const found = std::ranges::find_if(kInstantiations, [&](const Instantiation& one) {
    return one.type == params.k.type && one.dim_k >= params.geometry.head_dim &&
           one.dim_v >= params.geometry.v_head_dim;
  });
  return found != kInstantiations.end() ? found : nullptr;
}

std::int64_t query_tiles(const DecodeParams& params, const Instantiation& kernel) {
  return (params.max_queries + kernel.queries - 1) / kernel.queries;
}

std::string name_of(const Instantiation& kernel) {
  return fmt::format("sm90_prefill<{}, {}, {}>", attention::data_type_name(kernel.type),
                     kernel.dim_k, kernel.dim_v);
}

}  // namespace

Result<void> check_prefill(const DecodeParams& params, const DeviceInfo& device) {
  constexpr std::int64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();
  Findings findings(kPrefillCapabilities.name);
  require_claimed(findings, kPrefillCapabilities, params, device);
  findings.require(kHasSm90a, "this build has no code for sm_90a; KERNELPATH_CUDA_ARCHS names it");
  const Instantiation* kernel = find_instantiation(params);
  findings.require(kernel == nullptr || query_tiles(params, *kernel) * params.batch.num_requests *
                                                params.geometry.num_heads <=
                                            kMostBlocks,
                   "{} requests of up to {} queries are more than a launch has blocks for",
                   params.batch.num_requests, params.max_queries);
  return findings.result();
}

Result<void> launch_prefill(const DecodeParams& params, const DeviceInfo& device,
                            StreamView stream) {
  KERNELPATH_CHECK_OK(check_prefill(params, device));
  const Instantiation* chosen = find_instantiation(params);
  KERNELPATH_ASSERT(chosen != nullptr);
  const attention::Geometry& geometry = params.geometry;
  const auto group = static_cast<std::int32_t>(geometry.num_heads / geometry.num_kv_heads);
  const sm90::PrefillKernelParams kernel{
      .shape = {.group = group,
                .num_kv_heads = static_cast<std::int32_t>(geometry.num_kv_heads),
                .window = static_cast<std::int32_t>(geometry.window),
                .chunk = static_cast<std::int32_t>(geometry.chunk),
                .causal = geometry.causal ? 1 : 0},
      .num_requests = static_cast<std::int32_t>(params.batch.num_requests),
      .query_tiles = static_cast<std::int32_t>(query_tiles(params, *chosen)),
      .num_heads = static_cast<std::int32_t>(geometry.num_heads),
      .head_dim = static_cast<std::int32_t>(geometry.head_dim),
      .v_head_dim = static_cast<std::int32_t>(geometry.v_head_dim),
      .query_is_bf16 = params.query_type == DataType::kBf16 ? 1 : 0,
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
  return check_status(chosen->launch(kernel, static_cast<cudaStream_t>(stream.handle)),
                      "the launch of prefill attention");
}

std::string prefill_kernel_name(const DecodeParams& params) {
  const Instantiation* kernel = find_instantiation(params);
  return kernel != nullptr ? name_of(*kernel) : "none";
}

std::vector<std::string> prefill_kernel_names() {
  std::vector<std::string> names;
  names.reserve(kInstantiations.size());
  for (const Instantiation& one : kInstantiations) names.push_back(name_of(one));
  return names;
}

}  // namespace kernelpath::kernels::cuda
