#pragma once

#include "engines/vllm/backend_table.h"
#include "engines/vllm/selector_input.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::vllm {

// One question to one class: its table's value, or its rule.
bool asks(const SelectorContext& context, const BackendClass& backend, Question question);
bool takes_dtype(const SelectorContext& context, const BackendClass& backend,
                 std::string_view dtype);
bool takes_kv_dtype(const SelectorContext& context, const BackendClass& backend,
                    std::string_view kv_dtype);
bool takes_head_size(const SelectorContext& context, const BackendClass& backend,
                     std::int64_t head_size);
bool takes_capability(const SelectorContext& context, const BackendClass& backend);

// The block sizes of its kernels, in tokens.
std::vector<BlockSize> kernel_block_sizes(const SelectorContext& context,
                                          const BackendClass& backend);
// A given size of the cache's blocks: as a rule a multiple of a kernel's size will do.
bool takes_block_size(const SelectorContext& context, const BackendClass& backend,
                      std::int64_t block_size);
// The size that the engine takes where the user gives none.
std::int64_t preferred_block_size(const SelectorContext& context, const BackendClass& backend,
                                  std::int64_t default_size);

// The KV layouts that it takes, best first; nothing: any.
std::optional<std::vector<std::string>> layouts_of(const SelectorContext& context,
                                                   const BackendClass& backend);
// The layouts that all of them take, best first; empty where there is none (the engine's error).
// Source: v1/attention/backends/utils.py of 0.33, get_supported_kv_cache_layouts.
std::vector<std::string> common_layouts(const SelectorContext& context,
                                        std::span<const BackendClass* const> backends);

// Every reason why `backend` cannot serve `config`, in the engine's order.
// Source: v1/attention/backend.py, validate_configuration.
Verdict validate(const SelectorContext& context, const BackendClass& backend,
                 const SelectorConfig& config);

}  // namespace kernelpath::engines::vllm
