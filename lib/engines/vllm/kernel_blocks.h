#pragma once

#include "engines/vllm/backend_table.h"
#include "engines/vllm/kv_spec.h"
#include "engines/vllm/selector_input.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kernelpath::engines::vllm {

// Block sizes of a backend's kernels. Since 0.33 a layer's spec may narrow them; null pointer: no
// layer is known, and the model as a whole is asked.
std::vector<BlockSize> kernel_block_sizes_of(const SelectorContext& context,
                                             const BackendClass& backend, const KvSpec* spec);

// A backend of a group, with the spec of its layers.
struct KernelBlockAsker {
  const BackendClass* backend = nullptr;
  const KvSpec* spec = nullptr;
};

// The block that the kernels of a group read: the manager's own if every backend takes it, else the
// largest listed size that divides it and suits all; nothing where there is none (the engine's
// error). Source: v1/worker/utils.py, select_common_block_size.
std::optional<std::int64_t> common_kernel_block(const SelectorContext& context,
                                                std::int64_t block_size,
                                                std::span<const KernelBlockAsker> askers);

// The smallest size that one of the kernels takes; 0 for a backend without sizes.
std::int64_t smallest_kernel_block(const std::vector<BlockSize>& sizes);

}  // namespace kernelpath::engines::vllm
