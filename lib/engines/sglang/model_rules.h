#pragma once

#include "engines/sglang/launch.h"

#include <string_view>

namespace kernelpath::engines::sglang {

// A function of the engine that declares argument values for some architectures. It reads the
// launch as it is before any of them took effect, may log and may refuse.
// Source: sglang/srt/arg_groups/model_overrides/*.py, arg_groups/overrides.py.
using ModelRuleFunction = Declaration (*)(Launch&);

struct ModelRule {
  std::string_view name;  // of the engine's function: "_gpt_oss_overrides"
  std::string_view id;    // "SGL-MODEL-GPT-OSS"
  ModelRuleFunction function;
};

// Null pointer for a name that the build does not have.
const ModelRule* find_model_rule(std::string_view name);

// Applies the rules of the model's architecture.
void apply_model_rules(Launch& launch);

// "triton", or the default backend where extra buffers, speculation or a missing radix cache let
// TensorRT-LLM's kernels serve a hybrid model on SM100.
std::string hybrid_sm100_backend(const Launch& launch);

// model_rules_*.cpp
Declaration deepseek_family_rule(Launch& launch);
Declaration deepseek_v4_rule(Launch& launch);
Declaration kimi_k3_rule(Launch& launch);
Declaration kimi_k3_moe_rule(Launch& launch);
Declaration minimax_m2_rule(Launch& launch);
Declaration minimax_m3_rule(Launch& launch);
Declaration nemotron_h_rule(Launch& launch);
Declaration qwen3_5_hybrid_rule(Launch& launch);
Declaration qwen3_moe_family_rule(Launch& launch);
Declaration qwen3_vl_rule(Launch& launch);
Declaration qwen3_vl_hopper_rule(Launch& launch);
Declaration qwen4_exp_rule(Launch& launch);
Declaration gpt_oss_rule(Launch& launch);
Declaration llama4_rule(Launch& launch);
Declaration gemma2_gemma3_rule(Launch& launch);
Declaration gemma4_rule(Launch& launch);
Declaration embedding_gemma2_rule(Launch& launch);
Declaration exaone_rule(Launch& launch);
Declaration olmo2_rule(Launch& launch);
Declaration mimo_v2_rule(Launch& launch);
Declaration step3p_rule(Launch& launch);
Declaration inkling_rule(Launch& launch);
Declaration iquest_q1_rule(Launch& launch);
Declaration beam_rule(Launch& launch);
Declaration falcon_h1_jet_rule(Launch& launch);
Declaration granite_moe_hybrid_rule(Launch& launch);
Declaration lfm2_rule(Launch& launch);
Declaration minicpm_v4_6_rule(Launch& launch);
Declaration minicpm_sala_rule(Launch& launch);
Declaration moss_vl_rule(Launch& launch);
Declaration muse_glimmer_rule(Launch& launch);
Declaration muse_spark_rule(Launch& launch);
Declaration glm4_moe_rule(Launch& launch);
Declaration gigachat35_rule(Launch& launch);
Declaration bailing_moe_v3_rule(Launch& launch);
Declaration cohere2_moe_rule(Launch& launch);
Declaration ernie45_vl_rule(Launch& launch);
Declaration interns2_mobius_rule(Launch& launch);

}  // namespace kernelpath::engines::sglang
