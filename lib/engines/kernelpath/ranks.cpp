#include "engines/kernelpath/ranks.h"

#include "engines/kernelpath/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace kernelpath::engines::kernelpath {
namespace {

// "16 heads and 4 KV heads": of the first layers with a cache.
std::string heads_of_rank(const Request& request, const Launch& launch,
                          const OwnModelLayers& layers) {
  const auto group = std::ranges::find_if(
      layers.groups, [](const OwnLayers& one) { return one.attention.has_value(); });
  if (group == layers.groups.end()) return "its part of the heads";
  const std::int64_t heads = group->attention->geometry.num_heads;
  if (group->attention->mla) return fmt::format("{} heads, and all of the latent cache", heads);
  std::string out = fmt::format("{} heads and {} KV heads", heads, group->kv_heads);
  const std::int64_t all = request.model.num_key_value_heads.value_or(0);
  if (all > 0 && all < launch.tp) {
    out += fmt::format(" (each KV head is kept by {} ranks)", launch.tp / all);
  }
  return out;
}

}  // namespace

void append_rank_steps(const Request& request, const Launch& launch, const OwnModelLayers& layers,
                       std::vector<Step>& steps) {
  if (launch.tp > 1) {
    append_step({.rule = "KP-TENSOR-PARALLEL",
                 .stage = Stage::kConstruction,
                 .verdict = Verdict::kApplied,
                 .candidate = fmt::format("tp {}", launch.tp),
                 .reason = fmt::format("a rank has {}, and 1/{} of inner widths and vocabulary",
                                       heads_of_rank(request, launch, layers), launch.tp)},
                steps);
  }
  if (launch.dcp > 1) {
    append_step(
        {.rule = "KP-CONTEXT-PARALLEL",
         .stage = Stage::kConstruction,
         .verdict = Verdict::kApplied,
         .candidate = fmt::format("dcp {}", launch.dcp),
         .reason = fmt::format("a rank keeps every {}th token of the cache and all weights of its "
                               "--tp part; outputs are merged by their log-sum-exps of base e",
                               launch.dcp)},
        steps);
  }
}

}  // namespace kernelpath::engines::kernelpath
