#include "engines/trtllm/model_defaults.h"

#include "engines/trtllm/rules_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::trtllm {
namespace {

constexpr std::string_view kBlockReuse = "kv_cache_config.enable_block_reuse";
constexpr std::string_view kTokensPerBlock = "kv_cache_config.tokens_per_block";
constexpr std::string_view kManagerV2 = "kv_cache_config.use_kv_cache_manager_v2";

// DeepseekV4ForCausalLM returns several cache fields as well; their values were not read, so no row
// stands here.
constexpr std::array kDefaults = {
    ModelDefault{"Gemma4ForCausalLM", "attn_backend", "FLASHINFER", "modeling_gemma4.py"},
    ModelDefault{"NemotronHForCausalLM", kBlockReuse, "false", "modeling_nemotron_h.py"},
    ModelDefault{"Qwen3NextForCausalLM", kBlockReuse, "false", "modeling_qwen3_next.py"},
    ModelDefault{"Qwen3_5ForCausalLM", kBlockReuse, "false", "modeling_qwen3_5.py"},
    ModelDefault{"Qwen3_5MoeForCausalLM", kBlockReuse, "false", "modeling_qwen3_5.py"},
    ModelDefault{"Qwen3_5ForConditionalGeneration", kBlockReuse, "false", "modeling_qwen3_5.py"},
    ModelDefault{"Qwen3_5MoeForConditionalGeneration", kBlockReuse, "false", "modeling_qwen3_5.py"},
    ModelDefault{"KimiK25ForConditionalGeneration", kManagerV2, "true", "modeling_kimi_k25.py"},
    ModelDefault{"KimiLinearForCausalLM", kBlockReuse, "false", "modeling_kimi_linear.py"},
    // 32-token blocks would push MLA decode of its 96 heads to a path that cannot serve them.
    ModelDefault{"KimiLinearForCausalLM", kTokensPerBlock, "64", "modeling_kimi_linear.py"},
    ModelDefault{"Glm5NextForConditionalGeneration", "allreduce_strategy", "ONESHOT",
                 "modeling_glm5_next.py"},
};

constexpr std::string_view kEngineBackend = "TRTLLM";

const ModelDefault* find_default(std::string_view architecture, std::string_view path) {
  const auto* row = std::find_if(kDefaults.begin(), kDefaults.end(), [&](const ModelDefault& d) {
    return d.architecture == architecture && d.path == path;
  });
  return row == kDefaults.end() ? nullptr : row;
}

}  // namespace

std::span<const ModelDefault> model_defaults() { return kDefaults; }

std::vector<MergedDefault> merge_model_defaults(
    std::string_view architecture, std::span<const std::pair<std::string, std::string>> user) {
  std::vector<MergedDefault> merged;
  for (const ModelDefault& row : kDefaults) {
    if (row.architecture != architecture) continue;
    const auto set = std::find_if(user.begin(), user.end(),
                                  [&](const auto& field) { return field.first == row.path; });
    const bool from_model = set == user.end();
    merged.push_back(MergedDefault{.path = std::string(row.path),
                                   .value = from_model ? std::string(row.value) : set->second,
                                   .from_model = from_model,
                                   .model_value = std::string(row.value),
                                   .file = std::string(row.file)});
  }
  return merged;
}

void append_steps(std::span<const MergedDefault> merged, std::vector<Step>& steps) {
  for (const MergedDefault& entry : merged) {
    append_step({.rule = entry.from_model ? "TRT-MODEL-DEFAULT" : "TRT-MODEL-DEFAULT-OVERRIDDEN",
                 .stage = Stage::kFinalValue,
                 .verdict = entry.from_model ? Verdict::kApplied : Verdict::kSkipped,
                 .candidate = entry.path,
                 .reason = entry.from_model
                               ? fmt::format("{}, a default of the model class", entry.value)
                               : fmt::format("{} as the user set it; the model class would say {}",
                                             entry.value, entry.model_value)},
                steps);
    steps.back().source.file = fmt::format("tensorrt_llm/_torch/models/{}", entry.file);
  }
}

json::Value deep_merge(const json::Value& user, const json::Value& defaults) {
  if (user.is_null()) return defaults;
  if (!user.is_object() || !defaults.is_object()) return user;
  std::vector<json::Member> members;
  for (const json::Member& member : user.members()) {
    const json::Value* fallback = defaults.find(member.key);
    members.push_back(json::Member{
        .key = member.key,
        .value = fallback == nullptr ? member.value : deep_merge(member.value, *fallback),
        .key_offset = 0});
  }
  for (const json::Member& member : defaults.members()) {
    if (user.find(member.key) == nullptr) members.push_back(member);
  }
  return json::Value::object(std::move(members));
}

BackendNameDecision effective_backend_name(std::string_view architecture,
                                           const std::string* user_backend) {
  if (user_backend != nullptr) return {*user_backend, false};
  const ModelDefault* row = find_default(architecture, "attn_backend");
  if (row != nullptr) return {std::string(row->value), true};
  return {std::string(kEngineBackend), false};
}

std::string_view flashinfer_kernel_of(std::string_view architecture) {
  return architecture == "Gemma4ForCausalLM" ? "trtllm-gen" : "fa2";
}

}  // namespace kernelpath::engines::trtllm
