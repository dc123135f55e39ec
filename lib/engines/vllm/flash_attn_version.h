#pragma once

#include "engines/vllm/selector_input.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace kernelpath::engines::vllm {

// What is known where the version is asked. Every rule asks with what it knows, so that two
// questions about one layer may get different answers.
struct FlashAttnQuestion {
  std::optional<std::int64_t> head_size = {};
  std::optional<std::int64_t> head_size_v = {};
  bool requires_alibi = false;
  bool has_sinks = false;
  bool requires_softcap = false;
  std::optional<std::int64_t> kv_block_size = {};
  bool supports_hd256 = false;  // the caller can use the kernel for head size 256 (since 0.33)
};

// Whether this build and device have FlashAttention 2, 3 or 4.
// Source: vllm_flash_attn/flash_attn_interface.py.
bool flash_attn_supported(const Machine& machine, int version);

// Why version 4 is missing, in the engine's words; empty if it is not.
std::string_view flash_attn_4_missing(const Machine& machine);

// The version that the engine resolves, nothing where none is usable.
// Source: v1/attention/backends/fa_utils.py, get_flash_attn_version.
std::optional<int> flash_attn_version(const SelectorContext& context,
                                      const FlashAttnQuestion& question = {});

// Tokens of a page of FlashAttention 4's own kernel for head size 256 (since 0.33).
inline constexpr std::int64_t kHd256PageSize = 128;

// Whether a head of this size runs on that kernel.
bool uses_hd256_kernel(const Machine& machine, std::optional<std::int64_t> head_size,
                       std::optional<std::int64_t> head_size_v);

// Whether FlashAttention can keep a quantized cache of this type (since 0.33).
bool flash_attn_takes_kv_dtype(const SelectorContext& context, std::string_view kv_dtype,
                               const FlashAttnQuestion& question = {});

// Hopper with FlashAttention 3.
bool flash_attn_supports_mla(const Machine& machine);

}  // namespace kernelpath::engines::vllm
