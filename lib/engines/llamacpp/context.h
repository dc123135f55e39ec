#pragma once

#include "checkpoint/ggml_type.h"
#include "engines/llamacpp/load_model.h"

#include <cstdint>
#include <string>

namespace kernelpath::engines::llamacpp {

enum class FlashAttention : std::uint8_t { kAuto, kOn, kOff };

// What the user decides of a context; defaults are those of the command-line tools (common/arg.cpp,
// common/common.h). Source of the fields: include/llama.h, struct llama_context_params.
struct ContextParams {
  std::int64_t n_ctx = 0;  // 0: the model's
  std::int64_t n_batch = 2048;
  std::int64_t n_ubatch = 512;
  std::int64_t n_seq_max = 1;
  const checkpoint::GgmlType* type_k = checkpoint::find_ggml_type("f16");
  const checkpoint::GgmlType* type_v = checkpoint::find_ggml_type("f16");
  FlashAttention flash_attn = FlashAttention::kAuto;
  bool kv_unified = false;
  bool swa_full = false;
  std::int64_t n_rs_seq = 0;  // snapshots of the recurrent state
  bool tensor_split = false;  // --split-mode tensor
  // K, V and the layers are on devices that serve the attention operation; asked with kAuto only.
  bool flash_attn_supported = true;
};

// The sizes that a context gets.
struct ContextSizes {
  std::int64_t n_ctx = 0;
  std::int64_t n_ctx_seq = 0;  // cells of a sequence
  std::int64_t n_batch = 0;
  std::int64_t n_ubatch = 0;
  bool grown = false;  // n_ctx is not what was asked for, so that every sequence gets the same
};

// What flash attention ends up as, and by which rule.
enum class FlashRule : std::uint8_t {
  kAsked,          // on, never probed
  kGrok,           // the class has none
  kTensorSplit,    // auto became on
  kQuantizedV,     // auto became on
  kProbed,         // auto, every layer's operation is on that layer's device
  kProbedMissing,  // auto, one layer's operation is elsewhere
  kOff,
};

struct ContextPlan {
  std::string error = {};  // the engine's words, where it makes no context
  ContextSizes sizes = {};
  bool causal = true;
  bool flash_attn = false;
  bool v_transposed = false;  // the V cache is laid out for attention without flash attention
  FlashRule flash_rule = FlashRule::kOff;
};

inline constexpr std::int64_t kMaxSequences = 256;  // LLAMA_MAX_SEQ

// Source: llama.cpp 0c1e5709, src/llama-context.cpp (llama_init_from_model, the constructor).
ContextPlan plan_context(const LoadedModel& model, const ContextParams& params);

}  // namespace kernelpath::engines::llamacpp
