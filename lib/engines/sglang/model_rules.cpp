#include "engines/sglang/model_rules.h"

#include "engines/sglang/rule_ids.h"

#include <algorithm>
#include <array>

namespace kernelpath::engines::sglang {
namespace {

// Sorted by name.
constexpr std::array kRules = {
    ModelRule{"_bailing_moe_v3_overrides", kModelBailingV3, bailing_moe_v3_rule},
    ModelRule{"_beam_overrides", kModelBeam, beam_rule},
    ModelRule{"_cohere2_moe_runner_overrides", kModelCohere2Moe, cohere2_moe_rule},
    ModelRule{"_deepseek_family_overrides", kModelDeepseek, deepseek_family_rule},
    ModelRule{"_deepseek_v4_overrides", kModelDeepseekV4, deepseek_v4_rule},
    ModelRule{"_embedding_gemma2_overrides", kModelEmbeddingGemma2, embedding_gemma2_rule},
    ModelRule{"_ernie45_vl_overrides", kModelErnie45Vl, ernie45_vl_rule},
    ModelRule{"_exaone_overrides", kModelExaone, exaone_rule},
    ModelRule{"_falcon_h1_jet_overrides", kModelFalconH1, falcon_h1_jet_rule},
    ModelRule{"_gemma2_gemma3_overrides", kModelGemma2Gemma3, gemma2_gemma3_rule},
    ModelRule{"_gemma4_overrides", kModelGemma4, gemma4_rule},
    ModelRule{"_gigachat35_overrides", kModelGigachat35, gigachat35_rule},
    ModelRule{"_glm4_moe_overrides", kModelGlm4Moe, glm4_moe_rule},
    ModelRule{"_gpt_oss_overrides", kModelGptOss, gpt_oss_rule},
    ModelRule{"_granite_moe_hybrid_overrides", kModelGraniteHybrid, granite_moe_hybrid_rule},
    ModelRule{"_inkling_overrides", kModelInkling, inkling_rule},
    ModelRule{"_interns2_mobius_baseline_overrides", kModelMobius, interns2_mobius_rule},
    ModelRule{"_iquest_q1_overrides", kModelIquestQ1, iquest_q1_rule},
    ModelRule{"_kimi_k3_moe_runner_overrides", kModelKimiK3Moe, kimi_k3_moe_rule},
    ModelRule{"_kimi_k3_overrides", kModelKimiK3, kimi_k3_rule},
    ModelRule{"_lfm2_overrides", kModelLfm2, lfm2_rule},
    ModelRule{"_llama4_overrides", kModelLlama4, llama4_rule},
    ModelRule{"_mimo_v2_overrides", kModelMimoV2, mimo_v2_rule},
    ModelRule{"_minicpm_sala_overrides", kModelMinicpm, minicpm_sala_rule},
    ModelRule{"_minicpm_v4_6_overrides", kModelMinicpmV, minicpm_v4_6_rule},
    ModelRule{"_minimax_m2_overrides", kModelMinimaxM2, minimax_m2_rule},
    ModelRule{"_minimax_m3_overrides", kModelMinimaxM3, minimax_m3_rule},
    ModelRule{"_moss_vl_overrides", kModelMossVl, moss_vl_rule},
    ModelRule{"_muse_glimmer_fp4_gemm_runner_overrides", kModelMuseGlimmer, muse_glimmer_rule},
    ModelRule{"_muse_spark_overrides", kModelMuseSpark, muse_spark_rule},
    ModelRule{"_nemotron_h_overrides", kModelNemotronH, nemotron_h_rule},
    ModelRule{"_olmo2_overrides", kModelOlmo2, olmo2_rule},
    ModelRule{"_qwen3_5_hybrid_overrides", kModelQwenHybrid, qwen3_5_hybrid_rule},
    ModelRule{"_qwen3_moe_family_overrides", kModelQwenMoe, qwen3_moe_family_rule},
    ModelRule{"_qwen3vl_hopper_serving_overrides", kModelQwenVlHopper, qwen3_vl_hopper_rule},
    ModelRule{"_qwen3vl_overrides", kModelQwenVl, qwen3_vl_rule},
    ModelRule{"_qwen4_exp_overrides", kModelQwen4, qwen4_exp_rule},
};

constexpr ModelRule kStep3p = {"_step3p_overrides", kModelStep3p, step3p_rule};

Declaration constant_values(const json::Value& row) {
  Declaration fields;
  for (const json::Member& member : row.members()) fields.emplace_back(member.key, member.value);
  return fields;
}

// Rules of the table, then those that ask for a part of the name.
std::vector<const ModelRule*> rules_of(const Launch& launch) {
  std::vector<const ModelRule*> rules;
  const std::string& architecture = launch.model().architecture();
  const auto found = launch.profile().overrides.find(architecture);
  if (found != launch.profile().overrides.end()) {
    for (const std::string& name : found->second) rules.push_back(find_model_rule(name));
  }
  const bool step = architecture.find("Step3p5ForCausalLM") != std::string::npos ||
                    architecture.find("Step3p7ForConditionalGeneration") != std::string::npos;
  if (step) rules.push_back(&kStep3p);
  return rules;
}

}  // namespace

const ModelRule* find_model_rule(std::string_view name) {
  const auto* const found = std::lower_bound(
      kRules.begin(), kRules.end(), name,
      [](const ModelRule& row, std::string_view wanted) { return row.name < wanted; });
  return found != kRules.end() && found->name == name ? &*found : nullptr;
}

void apply_model_rules(Launch& launch) {
  std::vector<std::pair<std::string_view, Declaration>> declarations;
  const auto constants = launch.profile().constant_overrides.find(launch.model().architecture());
  if (constants != launch.profile().constant_overrides.end()) {
    declarations.emplace_back(kModelConstant, constant_values(constants->second));
  }
  for (const ModelRule* rule : rules_of(launch)) {
    declarations.emplace_back(rule->id, rule->function(launch));
    if (launch.refused()) return;
  }
  for (auto& [id, fields] : declarations) launch.declare(id, std::move(fields));
}

}  // namespace kernelpath::engines::sglang
