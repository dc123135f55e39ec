#pragma once

#include "engines/vllm/kv_cache_plan.h"
#include "engines/vllm/kv_spec.h"
#include "engines/vllm/selector_input.h"

#include <cstdint>
#include <string_view>

namespace kernelpath::engines::vllm {

// Fills in the shape of one attention layer's tensor, with `cache.kernel_block_size` tokens a
// block, and the order of its axes in memory under `layout`. `cache.spec` is set. Source:
// get_kv_cache_shape and get_kv_cache_stride_order of the backends (until 0.32);
// v1/kv_cache_interface.py, compute_layer_kv_cache_shape_bytes.
void fill_shape(const SelectorContext& context, const BackendClass* backend,
                std::string_view layout, LayerCache& cache);

}  // namespace kernelpath::engines::vllm
