#pragma once

#include "attention/data_type.h"
#include "attention/lse.h"
#include "attention/params.h"
#include "hardware/device.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

// The attention backends of this library and everything that one of them can do: one table, which
// the selector, construction, `--list`, the documentation and the coverage test read. What a row
// does not claim is refused with a reason, and what it claims runs on a real kernel in a test.
namespace kernelpath::attention {

enum class BackendId : std::uint8_t { kFused, kFlashInfer, kVanilla };

// What a layer may need beyond plain causal attention.
enum class Feature : std::uint8_t {
  kMla,              // one latent row for K and V: forward_mqa and forward_mha
  kSparse,           // selected positions only
  kSinks,            // one more logit in the denominator
  kWindow,           // sliding window
  kChunk,            // chunked attention
  kSoftcap,          // capped logits
  kNonCausal,        // every key of the request
  kOtherVHeadDim,    // V narrower or wider than K
  kLse,              // returns the log-sum-exp
  kContextParallel,  // the cache holds a shard of the positions
  kFusedRope,        // rotates Q and K itself
  kFusedQkv,         // takes Q, K and V as one row
};
inline constexpr std::array kFeatures{
    Feature::kMla,   Feature::kSparse,          Feature::kSinks,     Feature::kWindow,
    Feature::kChunk, Feature::kSoftcap,         Feature::kNonCausal, Feature::kOtherVHeadDim,
    Feature::kLse,   Feature::kContextParallel, Feature::kFusedRope, Feature::kFusedQkv};
std::string_view feature_name(Feature feature);  // "sliding window"

// A set of enumerators with less than 32 members.
template <class Enum>
struct EnumSet {
  std::uint32_t bits = 0;
  constexpr EnumSet() = default;
  constexpr EnumSet(std::initializer_list<Enum> members) {
    for (const Enum member : members) bits |= bit(member);
  }
  [[nodiscard]] constexpr bool has(Enum member) const { return (bits & bit(member)) != 0; }
  constexpr void set(Enum member, bool on) { bits = on ? bits | bit(member) : bits & ~bit(member); }
  friend constexpr bool operator==(EnumSet, EnumSet) = default;

 private:
  static constexpr std::uint32_t bit(Enum member) { return 1U << static_cast<unsigned>(member); }
};
using FeatureSet = EnumSet<Feature>;
using DataTypeSet = EnumSet<DataType>;
using LayoutSet = EnumSet<KvLayout>;

// Which steps may run from a captured CUDA graph.
enum class GraphLevel : std::uint8_t {
  kNever,
  kSingleTokenDecode,  // every request has one query
  kUniformBatch,       // every request has as many queries
  kAlways,
};
std::string_view graph_level_name(GraphLevel level);  // "uniform single-token decode"

// One backend on one platform.
struct BackendRow {
  BackendId id = BackendId::kVanilla;
  std::string_view name;
  hardware::Platform platform = hardware::Platform::kCpu;
  std::string_view kernels;  // what runs inside, for reports
  // Why this build cannot run it; empty: it can.
  std::string_view missing = {};
  FeatureSet features = {};
  DataTypeSet kv_types = {};
  LayoutSet layouts = {};
  std::int64_t min_head_dim = 1;
  std::int64_t max_head_dim = 0;
  std::int64_t head_dim_multiple = 1;
  std::int64_t page_multiple = 1;  // page sizes are multiples of it
  GraphLevel graph_level = GraphLevel::kNever;
  std::optional<LogBase> lse_base = {};
  // Requests with at most so many queries must come first in a batch; 0: any order.
  std::int64_t decode_first_queries = 0;
};

// Whether this build has FlashInfer's kernels; see KERNELPATH_FLASHINFER.
inline constexpr std::string_view kFlashInferMissing =
    "this build has no FlashInfer kernels, which take its headers and the CUDA toolkit";

// In the order of preference.
inline constexpr std::array<BackendRow, 3> kBackendTable{{
    {.id = BackendId::kFused,
     .name = "FUSED",
     .platform = hardware::Platform::kCpu,
     .kernels = "tiles of 256 keys, AVX-512 or AVX2",
     .features = {Feature::kMla, Feature::kSparse, Feature::kSinks, Feature::kWindow,
                  Feature::kChunk, Feature::kSoftcap, Feature::kNonCausal, Feature::kOtherVHeadDim,
                  Feature::kLse, Feature::kContextParallel},
     .kv_types = {DataType::kF32, DataType::kBf16, DataType::kF16, DataType::kFp8E4m3,
                  DataType::kFp8E5m2, DataType::kNvfp4},
     .layouts = {KvLayout::kNhd, KvLayout::kHnd},
     .max_head_dim = 1024,
     .lse_base = LogBase::kE},
    {.id = BackendId::kFlashInfer,
     .name = "FLASHINFER",
     .platform = hardware::Platform::kCuda,
     .kernels = "FlashInfer's batch decode and prefill",
     .missing = kFlashInferMissing,
     .features = {Feature::kWindow, Feature::kSoftcap, Feature::kNonCausal, Feature::kLse},
     .kv_types = {DataType::kBf16, DataType::kF16},
     .layouts = {KvLayout::kNhd, KvLayout::kHnd},
     .min_head_dim = 64,
     .max_head_dim = 256,
     .head_dim_multiple = 64,
     .graph_level = GraphLevel::kSingleTokenDecode,
     .lse_base = LogBase::k2,
     .decode_first_queries = 1},
    {.id = BackendId::kVanilla,
     .name = "VANILLA",
     .platform = hardware::Platform::kCpu,
     .kernels = "by definition, sums in float64",
     .features = {Feature::kMla, Feature::kSparse, Feature::kSinks, Feature::kWindow,
                  Feature::kChunk, Feature::kSoftcap, Feature::kNonCausal, Feature::kOtherVHeadDim,
                  Feature::kLse, Feature::kContextParallel},
     .kv_types = {DataType::kF32, DataType::kBf16, DataType::kF16, DataType::kFp8E4m3,
                  DataType::kFp8E5m2, DataType::kNvfp4},
     .layouts = {KvLayout::kNhd, KvLayout::kHnd},
     .max_head_dim = 4096,
     .lse_base = LogBase::kE},
}};

std::span<const BackendRow> backend_table();
const BackendRow& backend_row(BackendId id);

// Names of other engines' backends that configurations carry, and what runs in their place.
struct BackendAlias {
  std::string_view name;
  BackendId id = BackendId::kFused;
};
inline constexpr std::array<BackendAlias, 3> kBackendAliases{{
    {.name = "TRTLLM", .id = BackendId::kFused},
    {.name = "TRITON_ATTN", .id = BackendId::kFused},
    {.name = "FLASH_ATTN", .id = BackendId::kFused},
}};

// The shape of the cache of one layer as a backend reads it, K and V apart:
// "[num_pages, page_size, num_kv_heads, head_dim]".
std::string_view kv_shape(KvLayout layout);
// Where the dimensions of [num_pages, page_size, num_kv_heads, head_dim] lie in memory, outermost
// first.
constexpr std::array<int, 4> stride_order(KvLayout layout) {
  return layout == KvLayout::kNhd ? std::array{0, 1, 2, 3} : std::array{0, 2, 1, 3};
}
std::string_view kv_layout_name(KvLayout layout);  // "NHD"
std::string_view log_base_name(LogBase base);      // "e"

}  // namespace kernelpath::attention
