#pragma once

#include "attention/backend_table.h"

#include <array>
#include <cstdint>
#include <string_view>

// Everything that the CUDA attention kernels can do, as one table: check_decode() and
// check_prefill() refuse by it and word their refusals from it, and the coverage test runs what it
// claims. No row of attention::kBackendTable has these kernels yet: what llm-run cannot run, no
// configuration resolves to.
namespace kernelpath::kernels::cuda {

struct KernelCapabilities {
  std::string_view name;    // "decode"
  std::int32_t min_sm = 0;  // compute capabilities times ten
  std::int32_t max_sm = 0;  // 0: every newer one
  // Of q and o. They may differ from the type of the cache.
  attention::DataTypeSet query_types = {};
  // Head sizes of a block-scaled cache are multiples of this one instead.
  std::int64_t nvfp4_head_dim_multiple = 1;
  std::int64_t max_stride_bytes = 0;  // between pages, tokens and heads
  // Masks, cache types, layouts, head sizes, pages, graphs and the base of the log-sum-exp, in the
  // words that every backend has for them.
  attention::BackendRow row = {};

  [[nodiscard]] constexpr std::int64_t head_dim_multiple(attention::DataType type) const {
    return type == attention::DataType::kNvfp4 ? nvfp4_head_dim_multiple : row.head_dim_multiple;
  }
  [[nodiscard]] constexpr bool has_head_dim(attention::DataType type, std::int64_t dim) const {
    return dim >= row.min_head_dim && dim <= row.max_head_dim && dim % head_dim_multiple(type) == 0;
  }
  [[nodiscard]] constexpr bool has_device(std::int32_t sm) const {
    return sm >= min_sm && (max_sm == 0 || sm <= max_sm);
  }
};

// What both kernels take: any number of queries a request, any order of pages, head and tensor
// scales.
inline constexpr attention::BackendRow kCudaAttention{
    .id = attention::BackendId::kFused,
    .name = "FUSED",
    .platform = hardware::Platform::kCuda,
    .kernels = "",
    .features = {attention::Feature::kSinks, attention::Feature::kWindow,
                 attention::Feature::kChunk, attention::Feature::kSoftcap,
                 attention::Feature::kNonCausal, attention::Feature::kOtherVHeadDim,
                 attention::Feature::kLse},
    .kv_types = {attention::DataType::kBf16, attention::DataType::kF16,
                 attention::DataType::kFp8E4m3, attention::DataType::kFp8E5m2,
                 attention::DataType::kNvfp4},
    .layouts = {attention::KvLayout::kNhd, attention::KvLayout::kHnd},
    .min_head_dim = 16,
    .max_head_dim = 256,
    .head_dim_multiple = 16,
    .page_multiple = 1,
    .graph_level = attention::GraphLevel::kAlways,
    .lse_base = attention::LogBase::kE};

constexpr attention::BackendRow named_kernels(std::string_view kernels) {
  attention::BackendRow row = kCudaAttention;
  row.kernels = kernels;
  return row;
}

inline constexpr KernelCapabilities kDecodeCapabilities{
    .name = "decode",
    .min_sm = 80,
    .query_types = {attention::DataType::kBf16, attention::DataType::kF16},
    .nvfp4_head_dim_multiple = 64,
    .max_stride_bytes = (std::int64_t{1} << 31) - 1,
    .row = named_kernels("sm80_gqa")};

inline constexpr KernelCapabilities kPrefillCapabilities{
    .name = "prefill",
    .min_sm = 90,
    .max_sm = 90,
    .query_types = {attention::DataType::kBf16, attention::DataType::kF16},
    .nvfp4_head_dim_multiple = 64,
    .max_stride_bytes = (std::int64_t{1} << 31) - 1,
    .row = named_kernels("sm90_prefill")};

inline constexpr std::array kKernelTable{kDecodeCapabilities, kPrefillCapabilities};

}  // namespace kernelpath::kernels::cuda
