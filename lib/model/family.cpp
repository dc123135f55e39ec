#include "model/family.h"

#include <algorithm>
#include <array>

namespace kernelpath::model {
namespace {

constexpr Family kLlama{.class_name = "LlamaForCausalLM", .mlp_bias = true};

constexpr Family kCohere2{.class_name = "Cohere2ForCausalLM",
                          .mlp_in = {},
                          .parallel = true,
                          .norm = kernels::NormKind::kLayer,
                          .eps_field = "layer_norm_eps",
                          .interleaved_rope = true,
                          .logit_scale_field = "logit_scale"};

constexpr Family kDeepseekV2{.class_name = "DeepseekV2ForCausalLM",
                             .interleaved_rope = true,
                             .router = RouterStyle::kDeepseekV2,
                             .shared_expert = "shared_experts"};

constexpr Family deepseek_v3(std::string_view class_name, bool interleaved_index = false) {
  Family family = kDeepseekV2;
  family.class_name = class_name;
  family.router = RouterStyle::kDeepseekV3;
  family.interleaved_index = interleaved_index;
  return family;
}

constexpr Family kGemma2{.class_name = "Gemma2ForCausalLM",
                         .attn_out = "post_attention_layernorm",
                         .mlp_in = "pre_feedforward_layernorm",
                         .mlp_out = "post_feedforward_layernorm",
                         .norm_offset = 1.0F,
                         .scaled_embedding = true,
                         .scale_field = "query_pre_attn_scalar",
                         .scale_power = -0.5,
                         .softcaps = true};

constexpr Family gemma3() {
  Family family = kGemma2;
  family.class_name = "Gemma3ForCausalLM";
  family.qk_norm = QkNorm::kPerHead;
  family.softcaps = false;
  family.final_softcap = true;
  return family;
}

constexpr Family kGlm4{.class_name = "Glm4ForCausalLM",
                       .attn_out = "post_self_attn_layernorm",
                       .mlp_out = "post_mlp_layernorm",
                       .biases = Biases::kFieldQkv,
                       .fused_gate_up = true,
                       .interleaved_rope = true};

constexpr Family kGlm4Moe{.class_name = "Glm4MoeForCausalLM",
                          .qk_norm = QkNorm::kPerHead,
                          .qk_norm_field = "use_qk_norm",
                          .biases = Biases::kFieldQkv,
                          .router = RouterStyle::kDeepseekV3,
                          .shared_expert = "shared_experts"};

constexpr Family kGptOss{.class_name = "GptOssForCausalLM",
                         .sinks = true,
                         .router = RouterStyle::kGptOss,
                         .router_name = "router",
                         .expert_names = ExpertNames::kStacked};

constexpr Family kGranite{.class_name = "GraniteForCausalLM",
                          .mlp_bias = true,
                          .scale_field = "attention_multiplier",
                          .logit_scale_field = "logits_scaling",
                          .logit_scale_divides = true,
                          .multipliers = true};

constexpr Family kKimiLinear{.class_name = "KimiLinearForCausalLM",
                             .mlp = "block_sparse_moe",
                             .mlp_alias = "mlp",
                             .router = RouterStyle::kDeepseekV3,
                             .expert_names = ExpertNames::kNumbers,
                             .shared_expert = "shared_experts"};

constexpr Family kLlama4{.class_name = "Llama4ForCausalLM",
                         .qk_norm = QkNorm::kAfterRope,
                         .qk_norm_field = "use_qk_norm",
                         .interleaved_rope = true,
                         .mlp = "feed_forward",
                         .router = RouterStyle::kLlama4,
                         .router_name = "router",
                         .expert_names = ExpertNames::kStacked,
                         .shared_expert = "shared_expert"};

constexpr Family kMistral{.class_name = "MistralForCausalLM", .biases = Biases::kNever};

constexpr Family kMixtral{.class_name = "MixtralForCausalLM",
                          .biases = Biases::kNever,
                          .mlp = "block_sparse_moe",
                          .router = RouterStyle::kNormalised,
                          .expert_names = ExpertNames::kNumbers};

constexpr Family kOlmo2{.class_name = "Olmo2ForCausalLM",
                        .attn_in = {},
                        .attn_out = "post_attention_layernorm",
                        .mlp_in = {},
                        .mlp_out = "post_feedforward_layernorm",
                        .qk_norm = QkNorm::kWhole};

constexpr Family olmo3() {
  Family family = kOlmo2;
  family.class_name = "Olmo3ForCausalLM";
  return family;
}

constexpr Family kPhi3{.class_name = "Phi3ForCausalLM",
                       .biases = Biases::kNever,
                       .fused_qkv = true,
                       .fused_gate_up = true,
                       .yarn_is_longrope = true};

constexpr Family kQwen2{.class_name = "Qwen2ForCausalLM", .biases = Biases::kQkv};

constexpr Family kQwen3{.class_name = "Qwen3ForCausalLM", .qk_norm = QkNorm::kPerHead};

constexpr Family qwen3_moe() {
  Family family = kQwen3;
  family.class_name = "Qwen3MoeForCausalLM";
  family.router = RouterStyle::kQwen;
  return family;
}

constexpr Family kSmolLm3{.class_name = "SmolLM3ForCausalLM", .mlp_bias = true};

constexpr std::array kFamilies{kCohere2,
                               kDeepseekV2,
                               deepseek_v3("DeepseekV32ForCausalLM"),
                               deepseek_v3("DeepseekV3ForCausalLM"),
                               kGemma2,
                               gemma3(),
                               kGlm4,
                               kGlm4Moe,
                               deepseek_v3("GlmMoeDsaForCausalLM", true),
                               kGptOss,
                               kGranite,
                               kKimiLinear,
                               kLlama4,
                               kLlama,
                               kMistral,
                               kMixtral,
                               kOlmo2,
                               olmo3(),
                               kPhi3,
                               kQwen2,
                               kQwen3,
                               qwen3_moe(),
                               kSmolLm3};

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family* find_family_of_class(std::string_view class_name) {
  const auto* const found = std::ranges::find(kFamilies, class_name, &Family::class_name);
  return found == kFamilies.end() ? nullptr : found;
}

}  // namespace kernelpath::model
