#pragma once

#include "base/result.h"
#include "config/model_config.h"

#include <cstdint>

namespace kernelpath::memory {

struct StateOptions {
  std::int64_t tp = 1;
  std::int64_t conv_element_bytes = 2;  // of the convolution's window: the model's dtype
  std::int64_t state_element_bytes =
      4;  // of the recurrent state: float32 unless an engine says else
};

// Recurrent state of linear-attention and state-space layers: constant in the context's length.
struct StateBytes {
  std::int64_t layers = 0;              // that keep a state
  std::int64_t conv_bytes = 0;          // of one layer and one sequence, on one rank
  std::int64_t state_bytes = 0;         // the same, of the recurrent state
  std::int64_t bytes_per_sequence = 0;  // layers * (conv_bytes + state_bytes)
};

// For models without such layers all is 0. A rank holds ceil(heads / tp) heads and
// ceil(groups / tp) groups.
//   convolution  [conv_kernel - 1, num_heads * head_dim + 2 * num_groups * state_size]
//   state        [num_heads, head_dim, state_size]
// Mamba-1 has no groups: [conv_kernel - 1, width] and [width, state_size]; a short convolution
// keeps its window only; MiniMax-Text-01's lightning attention keeps [heads, head_dim, head_dim].
// Sources: vLLM, model_executor/layers/mamba/mamba_utils.py (MambaStateShapeCalculator); the
// reference implementations named in docs/memory.md.
// Errors: kUsage (tp < 1), kConfigOverflow.
Result<StateBytes> state_bytes(const config::ModelConfig& model, const StateOptions& options = {});

}  // namespace kernelpath::memory
