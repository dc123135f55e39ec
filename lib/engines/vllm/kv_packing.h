#pragma once

#include "engines/vllm/backend_table.h"
#include "engines/vllm/kv_spec.h"
#include "engines/vllm/selector_input.h"

#include <string_view>

namespace kernelpath::engines::vllm {

// Null pointer for a name that this build does not know.
PackingRule find_packing_rule(std::string_view name);

// The spec as the backend's kernels read it (since 0.33; older versions leave it as it is): the
// packing of a slot, and what the distance between blocks must be a multiple of.
// Source: v1/worker/utils.py, customize_attention_spec.
void customize_spec(const SelectorContext& context, const BackendClass& backend, KvSpec& spec);

// The same without the alignment. Source: v1/attention/backend.py, customize_spec.
void pack_spec(const SelectorContext& context, const BackendClass& backend, KvSpec& spec);

}  // namespace kernelpath::engines::vllm
