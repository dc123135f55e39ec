#pragma once

#include "engines/sglang/platform.h"
#include "engines/sglang/profile.h"
#include "json/value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::sglang {

enum class AttentionArch : std::uint8_t { kMha, kMla, kSsm };
std::string_view attention_arch_name(AttentionArch arch);  // "MHA"

// Which linear-attention family a hybrid model is of. Source: configs/hybrid_arch.py.
enum class LinearKind : std::uint8_t {
  kNone,
  kGdn,
  kMamba2,
  kKimi,
  kGlm5,
  kLightning,
  kRegistered
};
std::string_view linear_kind_name(LinearKind kind);  // "hybrid_gdn"

// What the engine's ModelConfig derives from a checkpoint. Source: configs/model_config.py.
struct ModelFacts {
  std::vector<std::string> architectures = {};  // after the engine's renames
  std::string stated_architecture = {};         // of the file, where it was renamed
  std::string model_type = {};
  std::string text_model_type = {};
  AttentionArch attention_arch = AttentionArch::kMha;
  std::int64_t head_dim = 0;
  std::int64_t v_head_dim = 0;
  std::int64_t swa_head_dim = 0;
  std::int64_t swa_v_head_dim = 0;
  std::optional<std::int64_t> kv_lora_rank = {};
  std::optional<std::int64_t> qk_rope_head_dim = {};
  std::optional<std::int64_t> qk_nope_head_dim = {};
  std::optional<std::int64_t> index_head_dim = {};
  std::int64_t context_len = 0;
  std::int64_t derived_context_len = 0;  // what the configuration allows
  std::string dtype = {};                // "bfloat16"
  std::string quantization = {};         // empty: none
  std::optional<std::int64_t> sliding_window_size = {};
  std::optional<std::int64_t> attention_chunk_size = {};
  std::int64_t num_attention_heads = 0;
  std::int64_t num_kv_heads = 0;      // over all ranks
  std::int64_t num_swa_kv_heads = 0;  // of sliding layers, over all ranks
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_layers = 0;
  bool is_generation = true;
  bool is_multimodal = false;
  bool multimodal_breakable_graph = false;
  bool multimodal_chunked_prefill = true;
  bool is_encoder_decoder = false;
  bool is_local_attention = false;
  bool is_hybrid_swa = false;
  bool has_attention_sinks = false;
  bool is_embedding_gemma = false;
  std::optional<std::vector<std::int64_t>> swa_layers = {};
  std::optional<std::vector<std::int64_t>> full_layers = {};
  LinearKind linear_kind = LinearKind::kNone;
  bool short_conv = false;  // Mamba-2 interface over a short convolution: LFM2, Zaya
  std::vector<std::int64_t> full_attention_layers = {};  // of a hybrid model
  bool uses_kda = false;
  std::optional<std::int64_t> mamba_chunk_size = {};

  // DeepSeek sparse attention and its relatives.
  bool is_dsa = false;
  std::optional<std::int64_t> index_topk = {};
  std::int64_t index_kpool = 1;
  bool learnable_sink = false;
  bool shares_topk_indices = false;
  bool is_deepseek_v4 = false;
  bool is_minimax_sparse = false;
  bool is_qwen_qsa = false;
  bool has_minicpm_sparse = false;
  bool has_minicpm_lightning = false;
  bool has_sliding_window_pattern = false;  // Exaone: sliding_window_pattern is not null
  bool prefix_lm = true;                    // HRM-Text

  // Of quantization_config.
  std::string quant_method = {};  // as stated; empty: none
  std::string quant_algo = {};
  bool is_fp4_experts = false;
  bool has_nvfp4_moe = false;    // hybrid FP8 and NVFP4 experts
  bool is_int4_group32 = false;  // Kimi's compressed-tensors recipe
  bool w4a16_experts = false;
  bool mxfp4_pack_quantized = false;
  bool nvfp4_pack_quantized = false;
  bool minimax_nvfp4 = false;
  std::string kv_cache_quant_algo = {};
  std::optional<std::int64_t> canvas_length = {};  // DiffusionGemma

  [[nodiscard]] const std::string& architecture() const { return architectures.front(); }
  [[nodiscard]] bool is(std::string_view name) const { return architecture() == name; }
  [[nodiscard]] bool has_asymmetric_kv() const {
    return head_dim != v_head_dim || swa_head_dim != swa_v_head_dim;
  }
  [[nodiscard]] std::int64_t kv_heads_per_rank(std::int64_t tensor_parallel) const;
};

// What the launch says about the reading of a checkpoint.
struct ModelOptions {
  std::string dtype = "auto";
  std::string quantization = {};
  std::optional<std::int64_t> context_length = {};
  std::optional<bool> enable_multimodal = {};
  bool is_embedding = false;
  bool language_model_only = false;
  bool disable_hybrid_swa_memory = false;
  bool transformers_implementation = false;  // model_impl transformers
  bool allow_longer_context = false;         // SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN
  bool draft = false;
  std::string speculative_algorithm = {};
};

struct ModelMessage {
  bool warning = false;
  std::string rule;
  std::string text;
};

// A checkpoint that the engine's ModelConfig refuses.
struct ModelRefusal {
  std::string type;
  std::string rule;
  std::string text;
};

struct ModelReading {
  ModelFacts facts = {};
  std::vector<ModelMessage> messages = {};
  std::optional<ModelRefusal> refusal = {};
};

// Reads config.json (an object) as ModelConfig does; `quant_config` is the file beside it, or null.
ModelReading read_model(const Profile& profile, const Platform& platform, const json::Value& config,
                        const json::Value& quant_config, const ModelOptions& options);

}  // namespace kernelpath::engines::sglang
