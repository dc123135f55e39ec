#pragma once

#include "engines/vllm/packages.h"
#include "hardware/device.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::vllm {

struct Profile;

// What one layer asks of the selector. Source: v1/attention/selector.py, AttentionSelectorConfig.
struct SelectorConfig {
  std::int64_t head_size = 0;
  std::string dtype = "bfloat16";
  std::string kv_dtype = "auto";
  std::optional<std::int64_t> block_size = {};  // the user's; nothing where he gave none
  bool use_mla = false;
  bool has_sink = false;
  bool use_sparse = false;
  bool use_mm_prefix = false;
  bool use_per_head_quant_scales = false;
  std::string attention_type = "decoder";
  bool has_sliding_window = false;  // the rest of this block is asked since 0.33 only
  bool use_pcp = false;
  bool use_dcp = false;
  bool use_adaptive_verification = false;
  bool use_rswa = false;
  bool use_non_causal = false;
  bool use_batch_invariant = false;
  bool use_kv_connector = false;

  friend bool operator==(const SelectorConfig&, const SelectorConfig&) = default;
};

// The fields of a model that rules look at. Nothing: the config has no such field.
struct ModelFacts {
  std::optional<std::int64_t> qk_nope_head_dim = {};
  std::optional<std::int64_t> qk_rope_head_dim = {};
  std::optional<std::int64_t> v_head_dim = {};
  std::optional<std::int64_t> kv_lora_rank = {};
  std::optional<std::int64_t> index_topk = {};
  bool index_topk_in_top_config = false;  // not only in a nested text config
  std::int64_t num_heads = 0;             // query heads of a rank
  std::int64_t num_kv_heads = 0;          // of a rank
  std::int64_t head_size = 0;             // of the model, whatever a layer has
  bool is_diffusion = false;
  bool is_mm_prefix_lm = false;
  bool has_softcap = false;  // attn_logit_softcapping
  std::optional<std::int64_t> rswa_window = {};
  double rotary_share = 1.0;  // partial_rotary_factor: of a head
};

// What the rules can see beside the layer's own question.
struct SelectorSettings {
  std::optional<std::int64_t> flash_attn_version = {};
  std::optional<bool> use_trtllm_attention = {};
  bool batch_invariant = false;
  std::optional<bool> batch_invariant_at_import = {};  // when modules were read; nothing: the same
  bool kv_connector = false;
  std::int64_t dcp = 1;
  std::int64_t pcp = 1;
  std::string run_kv_dtype = "auto";     // of the whole run; a layer may have another
  std::optional<ModelFacts> model = {};  // nothing: no model is known
};

struct Machine {
  hardware::Platform platform = hardware::Platform::kCuda;
  hardware::Capability capability = {};
  Packages packages = {};
  // AMD: the generation of data-centre (3 is MI300, 4 MI350) or of graphics processors.
  int cdna = 0;
  int rdna = 0;
  bool aiter_enabled = false;         // VLLM_ROCM_USE_AITER
  bool aiter_shuffled_cache = false;  // VLLM_ROCM_SHUFFLE_KV_CACHE_LAYOUT

  // Same major number: the engine's "family 90" is family(9).
  [[nodiscard]] bool family(int major) const { return capability.major == major; }
};

// Everything that a rule may look at.
struct SelectorContext {
  const Profile& profile;
  const Machine& machine;
  const SelectorSettings& settings;
};

// Why a backend cannot serve a layer; empty reasons: it can. `fault` is what the engine raises
// instead of giving reasons ("AttributeError: …").
struct Verdict {
  std::vector<std::string> reasons = {};
  std::string fault_type = {};
  std::string fault_text = {};
  [[nodiscard]] bool admitted() const { return reasons.empty() && fault_type.empty(); }
};

}  // namespace kernelpath::engines::vllm
