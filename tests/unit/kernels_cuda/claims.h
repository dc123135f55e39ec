#pragma once

#include "attention/params.h"
#include "kernels/cuda/capabilities.h"
#include "kernels/cuda/gqa_decode.h"

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// What a row of the kernels' table claims, as calls: every pair of claimed values occurs in some
// call of a covering set.
namespace kernelpath::testing {

// The values that one row claims, by what they are about.
struct ClaimedValues {
  std::vector<attention::DataType> kv_types, query_types;
  std::vector<std::pair<std::int64_t, std::int64_t>> head_dims;  // of K and V
  std::vector<attention::KvLayout> layouts;
  std::vector<std::int64_t> page_sizes;
  std::vector<std::int64_t> queries;  // of the longest request
  std::vector<std::int64_t> groups;   // query heads of a KV head
};
ClaimedValues claimed_values(const kernels::cuda::KernelCapabilities& kernel);

// Which value of each factor a call has.
enum Factor : std::size_t {
  kKvType,
  kQueryType,
  kHeadDims,
  kLayout,
  kPageSize,
  kQueries,
  kGroup,
  kMask,  // of kMasks
  kSoftcap,
  kSinks,
  kLse,
  kHeadScales,
  kFactors
};
using Choice = std::array<std::size_t, kFactors>;

struct Mask {
  std::int64_t window = 0;
  std::int64_t chunk = 0;
  bool causal = true;
};
inline constexpr std::array kMasks{Mask{}, Mask{.causal = false}, Mask{.window = 37},
                                   Mask{.chunk = 48}, Mask{.window = 100, .chunk = 150}};

struct Call {
  attention::DataType kv_type = attention::DataType::kBf16;
  attention::DataType query_type = attention::DataType::kBf16;
  attention::KvLayout layout = attention::KvLayout::kNhd;
  attention::Geometry geometry = {};
  std::int64_t page_size = 0;
  std::int64_t queries = 0;
  bool sinks = false;
  bool lse = false;
  bool head_scales = false;

  [[nodiscard]] std::string text() const;
  // As the kernels see it; pointers that must be there point anywhere. Not to be launched.
  [[nodiscard]] kernels::cuda::DecodeParams params() const;
};

std::array<std::size_t, kFactors> value_counts(const ClaimedValues& values);
// Whether the table claims both values together: block-scaled caches take fewer head sizes.
bool goes_together(const kernels::cuda::KernelCapabilities& kernel, const ClaimedValues& values,
                   std::pair<Factor, std::size_t> a, std::pair<Factor, std::size_t> b);
std::vector<Choice> covering_choices(const kernels::cuda::KernelCapabilities& kernel,
                                     const ClaimedValues& values);
Call call_of(const ClaimedValues& values, const Choice& choice);

}  // namespace kernelpath::testing
