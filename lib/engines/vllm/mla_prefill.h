#pragma once

#include "engines/vllm/selector.h"

#include <optional>
#include <string>

namespace kernelpath::engines::vllm {

// Which backend runs the prefill of multi-head latent attention. `requested` is the name as the
// user wrote it, `dtype` the model's. The dimensions are those of the context's model; without one
// they count as zero and the data type as float32.
// Source: v1/attention/backends/mla/prefill/{selector,base}.py; since 0.33 also
// platforms/{interface,rocm,cpu}.py.
Selection select_mla_prefill(const SelectorContext& context,
                             const std::optional<std::string>& requested, const std::string& dtype);

}  // namespace kernelpath::engines::vllm
