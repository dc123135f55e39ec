// Whole vLLM runs over every config of tests/data: a run may be refused, never be inconsistent.

#include "config/load.h"
#include "engines/vllm/run.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace kernelpath::engines::vllm {
namespace {

constexpr auto kCapabilities = std::to_array<hardware::Capability>({{.major = 8, .minor = 0},
                                                                    {.major = 8, .minor = 9},
                                                                    {.major = 9, .minor = 0},
                                                                    {.major = 10, .minor = 0},
                                                                    {.major = 12, .minor = 0}});
constexpr auto kVersions = std::to_array<std::string_view>({"0.25.1", "0.33.0"});
constexpr std::size_t kConfigs = 287;

struct NamedModel {
  std::string name;
  config::ModelConfig model;
};

const std::vector<NamedModel>& models() {
  static const std::vector<NamedModel> all = [] {
    std::vector<NamedModel> loaded;
    std::vector<std::filesystem::path> folders;
    for (const auto& entry : std::filesystem::directory_iterator(KERNELPATH_CONFIGS_DIR)) {
      if (std::filesystem::exists(entry.path() / "config.json")) folders.push_back(entry.path());
    }
    std::ranges::sort(folders);
    for (const std::filesystem::path& folder : folders) {
      auto model = config::load_model(folder.string());
      if (model) loaded.push_back({.name = folder.filename(), .model = std::move(*model)});
    }
    return loaded;
  }();
  return all;
}

RunResult answer(std::string_view version, const NamedModel& model, hardware::Capability capability,
                 const RunFlags& flags) {
  Machine machine;
  machine.capability = capability;
  return resolve_run({.profile = built_in_profile(version),
                      .registry = built_in_registry(version),
                      .machine = machine,
                      .model = model.model,
                      .flags = flags});
}

// What is wrong with one layer's cache; empty: nothing.
std::string layer_fault(const LayerCache& cache) {
  const KvSpec& spec = *cache.spec;
  if (cache.unpadded_page_bytes < 0 || cache.page_bytes < cache.unpadded_page_bytes) {
    return "a page is smaller than its content";
  }
  if (!cache.group) return "a cache without a group";
  if (spec.block_size <= 0) return "a block without tokens";
  if (spec.is_state()) return {};
  if (cache.kernel_block_size <= 0) return "no kernel block";
  if (spec.block_size % cache.kernel_block_size != 0) return "a kernel block does not divide";
  std::int64_t elements = 1;
  for (const ShapeAxis& axis : cache.shape) elements *= axis.value_or(1);
  if (elements < 0) return "a negative axis";
  if (!cache.stride_order) return {};
  std::vector<std::int64_t> order = *cache.stride_order;
  std::ranges::sort(order);
  std::vector<std::int64_t> expected(cache.shape.size());
  std::iota(expected.begin(), expected.end(), 0);
  return order == expected ? "" : "the order of axes is no permutation";
}

// Every layer with a cache is in exactly one group, and only those.
std::string group_fault(const KvCachePlan& plan) {
  std::map<std::size_t, int> grouped;
  for (const CacheGroup& group : plan.groups) {
    if (group.layers.empty()) return "an empty group";
    if (group.page_bytes < 0 || group.block_size <= 0) return "a group without pages";
    for (const std::size_t layer : group.layers) ++grouped[layer];
  }
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    const int times = grouped.contains(i) ? grouped.at(i) : 0;
    if (times != (plan.layers[i].spec ? 1 : 0)) return "a layer is not in one group";
  }
  return {};
}

std::string fault(const RunResult& result) {
  if (!result.cache || result.cache->layers.empty()) return {};
  if (result.cache->layers.size() != result.layers.size()) return "a layer without an answer";
  for (const LayerCache& cache : result.cache->layers) {
    std::string text = cache.spec ? layer_fault(cache) : "";
    if (!text.empty()) return text;
  }
  return group_fault(*result.cache);
}

TEST(VllmRunProperty, EveryConfigOnEveryDevice_IsConsistent) {
  EXPECT_EQ(models().size(), kConfigs);
  std::size_t with_cache = 0;
  for (const std::string_view version : kVersions) {
    for (const NamedModel& model : models()) {
      for (const hardware::Capability capability : kCapabilities) {
        const RunResult result = answer(version, model, capability, {});
        with_cache += result.cache && !result.cache->groups.empty() ? 1 : 0;
        EXPECT_EQ(fault(result), "")
            << version << ' ' << model.name << ' ' << capability.major << '.' << capability.minor;
      }
    }
  }
  // Most of the configs are generation models that both versions serve everywhere.
  EXPECT_GT(with_cache, models().size() * kCapabilities.size());
}

RunFlags arbitrary_flags() {
  RunFlags flags;
  flags.tp = *rc::gen::element<std::int64_t>(1, 2, 4, 8);
  flags.kv_cache_dtype = *rc::gen::element<std::string>(
      "auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "nvfp4", "int4_per_token_head",
      "int8_per_token_head", "turboquant_4bit_nc", "turboquant_k8v4", "fp8_ds_mla");
  if (*rc::gen::arbitrary<bool>()) {
    flags.block_size = *rc::gen::element<std::int64_t>(1, 16, 32, 48, 64, 128, 256, 1024);
  }
  if (*rc::gen::arbitrary<bool>()) {
    flags.attention_backend = *rc::gen::element<std::string>(
        "FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION", "TURBOQUANT", "HPC_ATTN",
        "FLASHMLA", "CUTLASS_MLA", "TRITON_MLA", "FLASHMLA_SPARSE");
  }
  flags.dcp = *rc::gen::element<std::int64_t>(1, 1, 2);
  flags.cp_interleave = *rc::gen::element<std::int64_t>(1, 1, 8);
  flags.speculative_tokens = *rc::gen::element<std::int64_t>(0, 0, 3);
  if (flags.speculative_tokens > 0) flags.speculative_method = "ngram";
  if (*rc::gen::arbitrary<bool>()) flags.skip_layers = {"0"};
  if (*rc::gen::arbitrary<bool>()) flags.enable_prefix_caching = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) flags.hybrid_manager_off = *rc::gen::arbitrary<bool>();
  flags.mamba_cache_mode = *rc::gen::element<std::string>("none", "align", "all");
  return flags;
}

RC_GTEST_PROP(VllmRunProperty, AnyFlags_LeaveARunConsistent, ()) {
  const auto index = *rc::gen::inRange<std::size_t>(0, models().size());
  const auto capability = *rc::gen::elementOf(kCapabilities);
  const auto version = *rc::gen::elementOf(kVersions);
  const RunResult result = answer(version, models()[index], capability, arbitrary_flags());
  const std::string found = fault(result);
  RC_LOG() << version << ' ' << models()[index].name << ": " << found;
  RC_ASSERT(found.empty());
}

}  // namespace
}  // namespace kernelpath::engines::vllm
