#pragma once

#include "engines/vllm/selector_input.h"

#include <cstdint>

namespace kernelpath::engines::vllm {

enum class AttentionPhase : std::uint8_t { kPrefill, kDecode };

// TRTLLM-gen (data-centre Blackwell, both phases) or XQA (decode). Source:
// utils/flashinfer.py, supports_trtllm_attention.
bool supports_trtllm(const SelectorContext& context, AttentionPhase phase);

// The same, unless the user forbade it or the heads do not divide.
bool can_use_trtllm(const SelectorContext& context, std::int64_t num_heads,
                    std::int64_t num_kv_heads, AttentionPhase phase);

}  // namespace kernelpath::engines::vllm
