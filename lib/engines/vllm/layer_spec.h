#pragma once

#include "engines/vllm/backend_table.h"
#include "engines/vllm/kv_spec.h"
#include "engines/vllm/run_plan.h"
#include "engines/vllm/selector_input.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kernelpath::engines::vllm {

// The class that a layer's kernels belong to: the selected one, or one that model code gives.
// Null pointer where the tables have none.
const BackendClass* backend_of(const SelectorContext& context, const BuiltLayer& layer);

// What an element of a cache of this type is stored as: the model's type for "auto".
std::string storage_dtype(const SelectorContext& context, std::string_view kv_dtype,
                          std::string_view model_dtype);
// "NONE", "FP8_PER_TENSOR", …
std::string quant_mode(const SelectorContext& context, std::string_view kv_dtype);

// A plain cache of keys and values: what sizes are compared by before layers are asked.
struct PlainCache {
  std::int64_t block_size = 1;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_size = 0;
  std::string_view kv_dtype = "auto";
  std::string_view model_dtype = "bfloat16";
};
KvSpec plain_spec(const SelectorContext& context, const PlainCache& cache);

// What a layer keeps, after the block size is final; nothing for a layer without a cache.
// `skip_page`: the page that layers with an unquantized cache are padded to, where the others are
// quantized. Source: get_kv_cache_spec of layers/attention/*.py, layers/mamba/abstract.py and the
// models' own caches; v1/worker/gpu_model_runner.py.
std::optional<KvSpec> layer_spec(const SelectorContext& context, const RunConfig& run,
                                 const BuiltLayer& layer, std::optional<std::int64_t> skip_page);

}  // namespace kernelpath::engines::vllm
