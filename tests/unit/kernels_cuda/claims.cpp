#include "claims.h"

#include "kv/layout.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

namespace kernelpath::testing {

namespace cuda = kernels::cuda;
using attention::DataType;
using attention::KvLayout;

namespace {

constexpr std::size_t kUnset = SIZE_MAX;

// How many uncovered pairs a value makes with those that are chosen.
class Pairs {
 public:
  Pairs(const cuda::KernelCapabilities& kernel, const ClaimedValues& values)
      : kernel_(kernel), values_(values), counts_(value_counts(values)) {
    for (std::size_t a = 0; a < kFactors; ++a) {
      for (std::size_t b = 0; b < kFactors; ++b) {
        open_[a][b].assign(counts_[a] * counts_[b], a < b);
      }
    }
    for (std::size_t a = 0; a < kFactors; ++a) {
      for (std::size_t b = a + 1; b < kFactors; ++b) drop_unclaimed(a, b);
    }
  }

  [[nodiscard]] bool find_open(Choice& choice) const {
    for (std::size_t a = 0; a < kFactors; ++a) {
      for (std::size_t b = a + 1; b < kFactors; ++b) {
        for (std::size_t i = 0; i < open_[a][b].size(); ++i) {
          if (!open_[a][b][i]) continue;
          choice[a] = i / counts_[b];
          choice[b] = i % counts_[b];
          return true;
        }
      }
    }
    return false;
  }
  // The value of a factor that covers the most; ties are drawn.
  [[nodiscard]] std::size_t best_value(const Choice& choice, std::size_t factor,
                                       std::mt19937& random) const {
    std::size_t best = kUnset;
    std::int64_t most = -1;
    const std::size_t first = random() % counts_[factor];
    for (std::size_t i = 0; i < counts_[factor]; ++i) {
      const std::size_t value = (first + i) % counts_[factor];
      const std::int64_t gain = gain_of(choice, factor, value);
      if (gain <= most) continue;
      most = gain;
      best = value;
    }
    return best;
  }
  void close(const Choice& choice) {
    for (std::size_t a = 0; a < kFactors; ++a) {
      for (std::size_t b = a + 1; b < kFactors; ++b) {
        open_[a][b][choice[a] * counts_[b] + choice[b]] = false;
      }
    }
  }

 private:
  void drop_unclaimed(std::size_t a, std::size_t b) {
    for (std::size_t i = 0; i < open_[a][b].size(); ++i) {
      open_[a][b][i] = goes_together(kernel_, values_, {static_cast<Factor>(a), i / counts_[b]},
                                     {static_cast<Factor>(b), i % counts_[b]});
    }
  }
  // -1: the value does not go with one that is chosen.
  [[nodiscard]] std::int64_t gain_of(const Choice& choice, std::size_t factor,
                                     std::size_t value) const {
    std::int64_t gain = 0;
    for (std::size_t other = 0; other < kFactors; ++other) {
      if (other == factor || choice[other] == kUnset) continue;
      const std::size_t a = std::min(factor, other);
      const std::size_t b = std::max(factor, other);
      const std::size_t at_a = a == factor ? value : choice[a];
      const std::size_t at_b = b == factor ? value : choice[b];
      if (!goes_together(kernel_, values_, {static_cast<Factor>(a), at_a},
                         {static_cast<Factor>(b), at_b})) {
        return -1;
      }
      gain += open_[a][b][at_a * counts_[b] + at_b] ? 1 : 0;
    }
    return gain;
  }

  const cuda::KernelCapabilities& kernel_;
  const ClaimedValues& values_;
  std::array<std::size_t, kFactors> counts_;
  std::array<std::array<std::vector<bool>, kFactors>, kFactors> open_;
};

std::string_view yes_no(bool value) { return value ? "yes" : "no"; }

}  // namespace

ClaimedValues claimed_values(const cuda::KernelCapabilities& kernel) {
  ClaimedValues out;
  for (const DataType type : attention::kDataTypes) {
    if (kernel.row.kv_types.has(type)) out.kv_types.push_back(type);
    if (kernel.query_types.has(type)) out.query_types.push_back(type);
  }
  for (std::int64_t dim = kernel.row.min_head_dim; dim <= kernel.row.max_head_dim;
       dim += kernel.row.head_dim_multiple) {
    out.head_dims.emplace_back(dim, dim);
  }
  if (kernel.row.features.has(attention::Feature::kOtherVHeadDim)) {
    for (const auto& [k, v] :
         {std::pair{192, 128}, {128, 64}, {64, 128}, {80, 96}, {16, 256}, {256, 48}}) {
      out.head_dims.emplace_back(k, v);
    }
  }
  for (const KvLayout layout : {KvLayout::kNhd, KvLayout::kHnd}) {
    if (kernel.row.layouts.has(layout)) out.layouts.push_back(layout);
  }
  for (const std::int64_t size : {1, 5, 16, 48, 64, 1024}) {
    if (size % kernel.row.page_multiple == 0) out.page_sizes.push_back(size);
  }
  out.queries = {1, 2, 8, 130};
  out.groups = {1, 2, 5, 8};
  return out;
}

std::array<std::size_t, kFactors> value_counts(const ClaimedValues& values) {
  std::array<std::size_t, kFactors> counts{};
  counts.fill(2);  // what is there or not
  counts[kKvType] = values.kv_types.size();
  counts[kQueryType] = values.query_types.size();
  counts[kHeadDims] = values.head_dims.size();
  counts[kLayout] = values.layouts.size();
  counts[kPageSize] = values.page_sizes.size();
  counts[kQueries] = values.queries.size();
  counts[kGroup] = values.groups.size();
  counts[kMask] = kMasks.size();
  return counts;
}

bool goes_together(const cuda::KernelCapabilities& kernel, const ClaimedValues& values,
                   std::pair<Factor, std::size_t> a, std::pair<Factor, std::size_t> b) {
  if (a.first != kKvType || b.first != kHeadDims) return true;
  const DataType type = values.kv_types[a.second];
  const auto& [k, v] = values.head_dims[b.second];
  return kernel.has_head_dim(type, k) && kernel.has_head_dim(type, v);
}

std::vector<Choice> covering_choices(const cuda::KernelCapabilities& kernel,
                                     const ClaimedValues& values) {
  std::vector<Choice> out;
  Pairs pairs(kernel, values);
  std::mt19937 random(static_cast<unsigned>(values.head_dims.size()));  // the same every time
  while (true) {
    Choice choice;
    choice.fill(kUnset);
    if (!pairs.find_open(choice)) return out;
    for (std::size_t factor = 0; factor < kFactors; ++factor) {
      if (choice[factor] == kUnset) choice[factor] = pairs.best_value(choice, factor, random);
    }
    pairs.close(choice);
    out.push_back(choice);
  }
}

Call call_of(const ClaimedValues& values, const Choice& choice) {
  const auto& [k_dim, v_dim] = values.head_dims[choice[kHeadDims]];
  const Mask& mask = kMasks[choice[kMask]];
  return {.kv_type = values.kv_types[choice[kKvType]],
          .query_type = values.query_types[choice[kQueryType]],
          .layout = values.layouts[choice[kLayout]],
          .geometry = {.num_heads = 2 * values.groups[choice[kGroup]],
                       .num_kv_heads = 2,
                       .head_dim = k_dim,
                       .v_head_dim = v_dim,
                       .softmax_scale = 1.0F / std::sqrt(static_cast<float>(k_dim)),
                       .softcap = choice[kSoftcap] != 0 ? 3.0F : 0.0F,
                       .window = mask.window,
                       .chunk = mask.chunk,
                       .causal = mask.causal},
          .page_size = values.page_sizes[choice[kPageSize]],
          .queries = values.queries[choice[kQueries]],
          .sinks = choice[kSinks] != 0,
          .lse = choice[kLse] != 0,
          .head_scales = choice[kHeadScales] != 0};
}

std::string Call::text() const {
  return fmt::format(
      "{} cache, {} queries, {}, heads {}:2, head sizes {} and {}, pages of {}, {} queries, window "
      "{}, chunk {}, causal {}, soft cap {}, sinks {}, lse {}, head scales {}",
      attention::data_type_name(kv_type), attention::data_type_name(query_type),
      attention::kv_layout_name(layout), geometry.num_heads, geometry.head_dim, geometry.v_head_dim,
      page_size, queries, geometry.window, geometry.chunk, yes_no(geometry.causal),
      geometry.softcap, yes_no(sinks), yes_no(lse), yes_no(head_scales));
}

cuda::DecodeParams Call::params() const {
  alignas(256) static std::array<std::byte, 256> somewhere{};
  static float number = 1.0F;
  const auto side = [&](std::int64_t dim) {
    const kv::PageLayout pages{.order = layout,
                               .type = kv_type,
                               .page_size = page_size,
                               .num_heads = geometry.num_kv_heads,
                               .head_dim = dim};
    return kv::paged_rows(pages, somewhere.data(), somewhere.data());
  };
  cuda::DecodeParams out;
  out.geometry = geometry;
  out.batch = {.num_requests = 2, .block_table_stride = 1, .page_size = page_size};
  out.max_queries = queries;
  out.k = side(geometry.head_dim);
  out.v = side(geometry.v_head_dim);
  out.query_type = query_type;
  out.sinks = sinks ? &number : nullptr;
  out.lse.data = lse ? &number : nullptr;
  out.k_head_scales = out.v_head_scales = head_scales ? &number : nullptr;
  return out;
}

}  // namespace kernelpath::testing
