#pragma once

#include "engines/vllm/block_size.h"

#include <span>

namespace kernelpath::engines::vllm {

// What both alignments look at. `backends`: the distinct ones of layers that are no states, in the
// layers' order; the first one decides.
struct AlignmentInput {
  const SelectorContext& context;
  const CacheModel& model;
  std::span<const BuiltLayer> layers;
  std::span<const BackendClass* const> backends;
};

// Attention pages of a hybrid model grow until they hold a state, and states are padded to the
// same page. Source: platforms/interface.py, _align_hybrid_block_size.
void align_states(const AlignmentInput& input, RunConfig& run, BlockSizeChoice& choice);

// Quantized pages grow until they hold those of the layers that stay unquantized.
// Source: platforms/interface.py, _align_heterogeneous_kv_block_size.
void align_mixed_types(const AlignmentInput& input, RunConfig& run, BlockSizeChoice& choice);

}  // namespace kernelpath::engines::vllm
