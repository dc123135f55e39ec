// What the loaders of tensors refuse by metadata alone. Source: llama.cpp 0c1e5709,
// src/models/*.cpp, each class's load_arch_tensors.
#include "engines/llamacpp/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr std::string_view kTokenTypes = "tokenizer.ggml.token_type_count";

void needs_token_types(Reader& reader) {
  const auto found = reader.metadata.find(kTokenTypes);
  const bool any = found != reader.metadata.end() && !found->second.integers.empty() &&
                   found->second.integers.front() != 0;
  if (any) return;
  reader.fail_with(reader.architecture.name + " model needs to define token type count");
}

void mamba_expands_twofold(Reader& reader) {
  if (2 * reader.hparams.n_embd == reader.hparams.ssm_d_inner) return;
  reader.fail_with("only an expansion factor of 2 is supported for now");
}

// `Name`: as the message spells the model.
template <const std::string_view& Name>
void needs_mla(Reader& reader) {
  if (reader.hparams.is_mla()) return;
  reader.fail_with(fmt::format("{} architecture requires MLA", Name));
}
constexpr std::string_view kGlmDsa = "GLM_DSA";
constexpr std::string_view kDeepseek32 = "DEEPSEEK32";
constexpr std::string_view kDots3note = "DOTS3NOTE";

void gemma4_heads(Reader& reader) {
  const Hparams& hparams = reader.hparams;
  if (hparams.n_embd_head_k_full != hparams.n_embd_head_v_full) {
    reader.fail_with("Gemma 4 requires n_embd_head_k == n_embd_head_v");
  } else if (hparams.n_embd_head_k_swa != hparams.n_embd_head_v_swa) {
    reader.fail_with("Gemma 4 requires n_embd_head_k_swa == n_embd_head_v_swa");
  }
}

void gemma4_assistant_heads(Reader& reader) {
  const Hparams& hparams = reader.hparams;
  if (hparams.n_embd_head_k_full != hparams.n_embd_head_v_full) {
    reader.fail_with("Gemma 4 assistant requires n_embd_head_k == n_embd_head_v");
  } else if (hparams.n_embd_head_k_swa != hparams.n_embd_head_v_swa) {
    reader.fail_with("Gemma 4 assistant requires n_embd_head_k_swa == n_embd_head_v_swa");
  } else if (hparams.n_embd_out_impl == 0) {
    reader.fail_with(
        "Gemma 4 assistant requires embedding_length_out to carry the target hidden size");
  }
}

void deepseek4_ratios(Reader& reader) {
  const Hparams& hparams = reader.hparams;
  for (std::int64_t layer = 0; layer < hparams.n_layer_all; ++layer) {
    const std::int64_t ratio = hparams.dsv4_compress_ratios[static_cast<std::size_t>(layer)];
    if (ratio == 0 || ratio == 4 || ratio == 128) continue;
    return reader.fail_with("DeepSeek-V4 loader only supports compression ratios 0, 4, and 128");
  }
}

struct TensorRule {
  std::string_view class_name;
  void (*check)(Reader&);
};

constexpr auto kRules = std::to_array<TensorRule>({
    {"llama_model_bert", needs_token_types},
    {"llama_model_deepseek32", needs_mla<kDeepseek32>},
    {"llama_model_deepseek4", deepseek4_ratios},
    {"llama_model_dots3note", needs_mla<kDots3note>},
    {"llama_model_gemma4", gemma4_heads},
    {"llama_model_gemma4_assistant", gemma4_assistant_heads},
    {"llama_model_glm_dsa", needs_mla<kGlmDsa>},
    {"llama_model_jina_bert_v3", needs_token_types},
    {"llama_model_mamba", mamba_expands_twofold},
    {"llama_model_nomic_bert", needs_token_types},
    {"llama_model_nomic_bert_moe", needs_token_types},
});

// A class whose layers need experts. `arch` in a message stands for the architecture's name.
struct ExpertRule {
  std::string_view class_name;
  bool after_dense_lead;  // only layers behind the leading dense ones need them
  std::string_view message;
};

constexpr auto kExpertRules = std::to_array<ExpertRule>({
    {"llama_model_bailingmoe", false, "n_expert must be > 0"},
    {"llama_model_cohere2moe", false, "n_expert must be > 0 for Cohere2Moe"},
    {"llama_model_dbrx", false, "DBRX model cannot have zero experts"},
    {"llama_model_deepseek", true, "n_expert must be > 0"},
    {"llama_model_deepseek2", true, "n_expert must be > 0"},
    {"llama_model_deepseek2ocr", true, "n_expert must be > 0"},
    {"llama_model_deepseek32", true, "n_expert must be > 0"},
    {"llama_model_dots1", true, "n_expert must be > 0"},
    {"llama_model_dots3note", true, "n_expert and n_expert_used must be > 0"},
    {"llama_model_exaone_moe", true, "n_expert must be > 0"},
    {"llama_model_glm_dsa", true, "n_expert must be > 0"},
    {"llama_model_grok", false, "arch model cannot have zero experts"},
    {"llama_model_hy_v4", true, "n_expert must be > 0"},
    {"llama_model_llama4", false, "arch model cannot have zero experts"},
    {"llama_model_maple", false, "n_expert must be > 0 for Maple"},
    {"llama_model_mellum", false, "n_expert must be > 0 for Mellum"},
    {"llama_model_olmoe", false, "n_expert must be > 0"},
    {"llama_model_qwen2moe", false, "n_expert must be > 0 for QWEN2MOE"},
    {"llama_model_qwen3moe", false, "n_expert must be > 0 for QWEN3MOE"},
    {"llama_model_qwen3next", false, "arch model cannot have zero experts"},
    {"llama_model_qwen3vlmoe", false, "n_expert must be > 0 for QWEN3MOE"},
    {"llama_model_rnd1", false, "n_expert must be > 0 for QWEN3MOE"},
});

void check_experts(Reader& reader, std::string_view class_name) {
  const auto* const rule = std::ranges::find(kExpertRules, class_name, &ExpertRule::class_name);
  if (rule == kExpertRules.end() || reader.hparams.n_expert > 0) return;
  if (rule->after_dense_lead && reader.hparams.n_layer_dense_lead >= reader.hparams.n_layer()) {
    return;
  }
  constexpr std::string_view kName = "arch";
  const bool named = rule->message.starts_with(kName);
  reader.fail_with(named
                       ? reader.architecture.name + std::string(rule->message.substr(kName.size()))
                       : std::string(rule->message));
}

}  // namespace

void check_tensor_rules(Reader& reader, std::string_view class_name) {
  const auto* const found = std::ranges::find(kRules, class_name, &TensorRule::class_name);
  if (found != kRules.end()) found->check(reader);
  if (!reader.failed()) check_experts(reader, class_name);
}

}  // namespace kernelpath::engines::llamacpp
