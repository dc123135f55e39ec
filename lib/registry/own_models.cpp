#include "registry/own_models.h"

#include <algorithm>
#include <array>
#include <string>

namespace kernelpath::registry {
namespace {

constexpr auto kModels = std::to_array<OwnModel>({
    {"Cohere2ForCausalLM", "cohere2", "Cohere2ForCausalLM"},
    {"DeepseekV2ForCausalLM", "deepseek_v2", "DeepseekV2ForCausalLM"},
    {"DeepseekV32ForCausalLM", "deepseek_v32", "DeepseekV32ForCausalLM"},
    {"DeepseekV3ForCausalLM", "deepseek_v3", "DeepseekV3ForCausalLM"},
    {"Gemma2ForCausalLM", "gemma2", "Gemma2ForCausalLM"},
    {"Gemma3ForCausalLM", "gemma3", "Gemma3ForCausalLM"},
    {"Glm4ForCausalLM", "glm4", "Glm4ForCausalLM"},
    {"Glm4MoeForCausalLM", "glm4_moe", "Glm4MoeForCausalLM"},
    {"GlmMoeDsaForCausalLM", "glm_moe_dsa", "GlmMoeDsaForCausalLM"},
    {"GptOssForCausalLM", "gpt_oss", "GptOssForCausalLM"},
    {"GraniteForCausalLM", "granite", "GraniteForCausalLM"},
    {"KimiLinearForCausalLM", "kimi_linear", "KimiLinearForCausalLM"},
    {"Llama4ForCausalLM", "llama4", "Llama4ForCausalLM"},
    {"LlamaForCausalLM", "llama", "LlamaForCausalLM"},
    {"MistralForCausalLM", "mistral", "MistralForCausalLM"},
    {"MixtralForCausalLM", "mixtral", "MixtralForCausalLM"},
    {"Olmo2ForCausalLM", "olmo2", "Olmo2ForCausalLM"},
    {"Olmo3ForCausalLM", "olmo3", "Olmo3ForCausalLM"},
    {"Phi3ForCausalLM", "phi3", "Phi3ForCausalLM"},
    {"Qwen2ForCausalLM", "qwen2", "Qwen2ForCausalLM"},
    {"Qwen3ForCausalLM", "qwen3", "Qwen3ForCausalLM"},
    {"Qwen3MoeForCausalLM", "qwen3_moe", "Qwen3MoeForCausalLM"},
    {"SmolLM3ForCausalLM", "smollm3", "SmolLM3ForCausalLM"},
});

StaticIndex make_index() {
  StaticIndex index;
  index.package = kOwnPackage;
  for (const OwnModel& model : kModels) {
    index.architectures.add(std::string(model.architecture), std::string(model.module));
    index.classes.add(std::string(model.class_name), std::string(model.module));
  }
  return index;
}

}  // namespace

std::span<const OwnModel> own_models() { return kModels; }

bool is_own_class(std::string_view class_name) {
  return std::ranges::find(kModels, class_name, &OwnModel::class_name) != kModels.end();
}

const StaticIndex& own_index() {
  static const StaticIndex index = make_index();
  return index;
}

FunctionLoader own_loader() {
  FunctionLoader loader;
  for (const OwnModel& model : kModels) {
    loader.add(own_index().full_name(model.module),
               [&model](Registrar& registrar) -> std::optional<Failure> {
                 registrar.model_class(std::string(model.architecture),
                                       std::string(model.class_name));
                 return std::nullopt;
               });
  }
  return loader;
}

}  // namespace kernelpath::registry
