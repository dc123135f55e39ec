#pragma once

#include "context.h"
#include "engines/vllm/cudagraph.h"
#include "engines/vllm/kv_cache_plan.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

// A run whose layers are built, ready for the plan of its cache.
namespace kernelpath::engines::vllm {

struct CacheCase : Asked {
  explicit CacheCase(std::string_view version, int major = 9, int minor = 0)
      : Asked(version, major, minor) {
    model = {.head_size = 128, .num_kv_heads = 8, .num_heads = 32};
    settings.model = ModelFacts{.num_heads = 32, .num_kv_heads = 8, .head_size = 128};
    run.max_model_len = 4096;
    run.max_num_batched_tokens = 8192;
  }

  // Adds `count` attention layers of one backend; the last one is returned.
  BuiltLayer& attention(std::string_view member, int count = 1) {
    const BackendClass* backend = profile.find_member(member)->backend;
    for (int i = 0; i < count; ++i) {
      layers.push_back({.index = static_cast<std::int64_t>(layers.size()),
                        .backend = backend,
                        .reported_backend = backend->reported_name,
                        .class_name = backend->class_name,
                        .kv_dtype = run.cache_dtype,
                        .num_heads = 32,
                        .num_kv_heads = 8,
                        .head_size = 128});
    }
    return layers.back();
  }

  // Adds state layers with one state of so many bfloat16 elements.
  void states(std::int64_t elements, int count = 1) {
    for (int i = 0; i < count; ++i) {
      layers.push_back({.role = LayerRole::kState,
                        .index = static_cast<std::int64_t>(layers.size()),
                        .reported_backend = "MAMBA2_ATTN",
                        .class_name = "Mamba2AttentionBackend",
                        .state_kind = "mamba2",
                        .state_shapes = {{elements}},
                        .state_dtypes = {"bfloat16"}});
    }
    model.hybrid = true;
    if (!run.mamba_block_size) run.mamba_block_size = run.max_model_len;
  }

  KvCachePlan plan() { return plan_kv_cache(context(), model, layers, run); }

  GraphPlan graphs(const KvCachePlan& plan) { return resolve_graphs(context(), plan, layers, run); }

  CacheModel model;
  RunConfig run;
  std::vector<BuiltLayer> layers;
};

}  // namespace kernelpath::engines::vllm
