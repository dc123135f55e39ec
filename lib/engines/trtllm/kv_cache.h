#pragma once

#include "base/result.h"
#include "config/model_config.h"
#include "engines/resolution.h"
#include "engines/trtllm/fmha_libraries.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::engines::trtllm {

// What the KV cache of one rank is computed from.
struct KvGeometry {
  bool mla = false;                          // the config has the field kv_lora_rank
  std::optional<std::int64_t> kv_lora_rank;  // absent with mla: the field is null
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t head_dim = 0;
  std::int64_t num_layers = 0;                   // attention layers only, over all stages
  std::int64_t num_kv_heads = 0;                 // where the config states one number
  std::vector<std::int64_t> kv_heads_per_layer;  // where it states a list, one entry a layer
  DataType dtype = DataType::kBf16;              // of the cache
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t pp_rank = 0;
  bool attention_dp = false;
};

// Parallel sizes and cache dtype, as a deployment decides them.
struct KvDeployment {
  DataType dtype = DataType::kBf16;
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t pp_rank = 0;
  bool attention_dp = false;
};

// Reads the geometry out of a model. Error kConfigMissing names the field that is not there.
Result<KvGeometry> kv_geometry(const config::ModelConfig& model, const KvDeployment& deployment);

// Bytes of one token on one rank. The engine budgets with the estimate and allocates the other.
struct KvBytes {
  std::int64_t estimate_bytes = 0;
  std::int64_t runtime_data_bytes = 0;
  std::int64_t runtime_scale_bytes = 0;  // block scales of NVFP4
  bool kv_heads_replicated = false;      // tp > KV heads: the estimate is too small
  std::optional<EngineError> error;      // an assertion of the engine; then no runtime bytes
  [[nodiscard]] std::int64_t runtime_total_bytes() const {
    return runtime_data_bytes + runtime_scale_bytes;
  }
  [[nodiscard]] bool estimate_equals_runtime() const {
    return !error && estimate_bytes == runtime_total_bytes();
  }
};

// Source: pyexecutor/resource_manager.py (get_cache_size_per_token, get_cache_bytes_per_token).
// Errors: kConfigValue for sizes ≤ 0, kConfigOverflow.
Result<KvBytes> kv_bytes_per_token(const KvGeometry& geometry);
void append_steps(const KvBytes& bytes, std::vector<Step>& steps);

// Layers of pipeline stage `pp_rank`, [first, last): the first (layers mod stages) stages own one
// more. Empty where there are more stages than layers.
struct LayerRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  [[nodiscard]] std::int64_t size() const { return last - first; }
};
LayerRange pipeline_layers(std::int64_t num_layers, std::int64_t pp, std::int64_t pp_rank);

struct KvPoolRequest {
  std::int64_t total_bytes = 0;  // of the device
  std::int64_t peak_bytes = 0;  // in use at the peak of the profiling run: weights, activations …
  std::int64_t probe_bytes = 0;  // the KV cache that the profiling run itself had reserved
  double free_gpu_memory_fraction = 0.9;
  std::optional<std::int64_t> max_tokens;
  std::int64_t tokens_per_block = 32;
  std::int64_t estimate_bytes_per_token = 0;
  std::int64_t runtime_bytes_per_token = 0;
  std::size_t distinct_windows = 1;  // of max_attention_window
};

struct KvPool {
  std::int64_t budget_bytes = 0;
  std::int64_t tokens = 0;  // as budgeted; every rank takes the smallest of all ranks
  std::int64_t blocks = 0;
  std::int64_t pool_bytes = 0;  // what the blocks really take
  bool limited_by_max_tokens = false;
  bool several_windows = false;  // equal shares of the budget; max_tokens is ignored
  std::optional<EngineError> error;
};

// Source: pyexecutor/resource_manager.py and _util.py. Errors: kConfigValue for sizes ≤ 0.
Result<KvPool> kv_pool(const KvPoolRequest& request);
void append_steps(const KvPool& pool, std::vector<Step>& steps);

// The profiling run before the pool is sized is left out, and the pool committed first, for
// VANILLA, by the environment switch, and with context parallelism.
bool skips_profiling_run(std::string_view backend, bool skip_switch, std::int64_t cp);

}  // namespace kernelpath::engines::trtllm
