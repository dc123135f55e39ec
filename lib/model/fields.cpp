#include "model/fields.h"

#include "json/document.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace kernelpath::model {
namespace {

struct Default {
  std::string_view class_name;  // empty: every class that has no row of its own
  std::string_view field;
  double value;
};

constexpr std::string_view kV2 = "DeepseekV2ForCausalLM";
constexpr std::string_view kV3 = "DeepseekV3ForCausalLM";
constexpr std::string_view kV32 = "DeepseekV32ForCausalLM";
constexpr std::string_view kGlmDsa = "GlmMoeDsaForCausalLM";
constexpr std::string_view kGlm4Moe = "Glm4MoeForCausalLM";
constexpr std::string_view kKimi = "KimiLinearForCausalLM";
constexpr std::string_view kGptOss = "GptOssForCausalLM";
constexpr std::string_view kLlama4 = "Llama4ForCausalLM";

// transformers 5.23.0, models/*/configuration_*.py.
constexpr auto kDefaults = std::to_array<Default>({
    {"MixtralForCausalLM", "rms_norm_eps", 1e-5},
    {"Phi3ForCausalLM", "rms_norm_eps", 1e-5},
    {"Glm4ForCausalLM", "rms_norm_eps", 1.5625e-07},
    {kGlm4Moe, "rms_norm_eps", 1e-5},
    {kGlmDsa, "rms_norm_eps", 1e-5},
    {kGptOss, "rms_norm_eps", 1e-5},
    {kKimi, "rms_norm_eps", 1e-5},
    {kLlama4, "rms_norm_eps", 1e-5},
    {"Olmo2ForCausalLM", "rms_norm_eps", 1e-5},
    {"Olmo3ForCausalLM", "rms_norm_eps", 1e-5},
    {"", "rms_norm_eps", 1e-6},
    {"", "layer_norm_eps", 1e-5},
    {"Glm4ForCausalLM", "attention_bias", 1},
    {kGptOss, "attention_bias", 1},
    {kV3, "norm_topk_prob", 1},
    {kV32, "norm_topk_prob", 1},
    {kGlmDsa, "norm_topk_prob", 1},
    {kGlm4Moe, "norm_topk_prob", 1},
    {kKimi, "norm_topk_prob", 1},
    {kV2, "routed_scaling_factor", 1},
    {kV3, "routed_scaling_factor", 2.5},
    {kV32, "routed_scaling_factor", 2.5},
    {kGlmDsa, "routed_scaling_factor", 2.5},
    {kGlm4Moe, "routed_scaling_factor", 1},
    {kKimi, "routed_scaling_factor", 2.446},
    {kV3, "n_group", 8},
    {kV32, "n_group", 8},
    {"", "n_group", 1},
    {kV3, "topk_group", 4},
    {kV32, "topk_group", 4},
    {"", "topk_group", 1},
    {kGlmDsa, "index_n_heads", 32},
    {"", "index_n_heads", 64},
    {"", "index_head_dim", 128},
    {"", "index_topk", 2048},
    {"", "rope_interleave", 1},
    {"", "query_pre_attn_scalar", 256},
    {"Gemma2ForCausalLM", "attn_logit_softcapping", 50},
    {"Gemma2ForCausalLM", "final_logit_softcapping", 30},
    {"", "logit_scale", 0.0625},
    {"", "embedding_multiplier", 1},
    {"", "residual_multiplier", 1},
    {"", "attention_multiplier", 1},
    {"", "logits_scaling", 1},
    {kLlama4, "use_qk_norm", 1},
    {kLlama4, "attn_temperature_tuning", 1},
    {"", "floor_scale", 8192},
    {"", "attn_scale", 0.1},
    {"", "swiglu_limit", 7},
    {"", "swiglu_alpha", 1.702},
    {"", "short_conv_kernel_size", 4},
});

}  // namespace

double class_default(std::string_view class_name, std::string_view field) {
  double common = 0.0;
  for (const Default& row : kDefaults) {
    if (row.field != field) continue;
    if (row.class_name == class_name) return row.value;
    if (row.class_name.empty()) common = row.value;
  }
  return common;
}

Result<double> number_at(const json::Value& value, const std::string& where) {
  if (value.is_number() && std::isfinite(value.as_double())) return value.as_double();
  if (value.is_number()) {
    return fail(Error{.code = ErrorCode::kConfigValue,
                      .message = "a finite number is needed",
                      .where = where,
                      .value = value.brief()});
  }
  if (value.is_bool()) return value.as_bool() ? 1.0 : 0.0;
  return fail(Error{.code = ErrorCode::kConfigType,
                    .message = fmt::format("must be a number, found {}", type_name(value.type())),
                    .where = where,
                    .value = value.brief()});
}

Fields::Fields(const config::ModelConfig& config, const Family& family)
    : config_(config),
      family_(family),
      root_(json::resolve_pointer(config.file, config.text_pointer)) {}

const json::Value* Fields::find(std::string_view name) const {
  return root_ == nullptr ? nullptr : root_->find_non_null(name);
}

std::string Fields::pointer(std::string_view name) const {
  return fmt::format("{}/{}", config_.text_pointer, name);
}

Result<double> Fields::number(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    const json::Value* const stated = root_ == nullptr ? nullptr : root_->find(name);
    if (stated == nullptr) continue;
    if (stated->is_null()) return 0.0;
    return number_at(*stated, pointer(name));
  }
  return class_default(family_.class_name, *names.begin());
}

Result<std::int64_t> Fields::integer(std::initializer_list<std::string_view> names) const {
  KERNELPATH_TRY(value, number(names));
  constexpr double kLargest = 9007199254740992.0;  // 2^53
  if (std::abs(value) > kLargest || std::trunc(value) != value) {
    return fail(Error{.code = ErrorCode::kConfigValue,
                      .message = "must be a whole number",
                      .where = pointer(*names.begin()),
                      .value = fmt::format("{}", value)});
  }
  return static_cast<std::int64_t>(value);
}

Result<bool> Fields::flag(std::string_view name) const {
  KERNELPATH_TRY(value, number({name}));
  return value != 0.0;
}

Result<double> Fields::positive(std::string_view name) const {
  KERNELPATH_TRY(value, number({name}));
  if (value > 0) return value;
  return fail(Error{.code = ErrorCode::kConfigValue,
                    .message = "must be greater than 0",
                    .where = pointer(name),
                    .value = fmt::format("{}", value)});
}

Result<std::string> Fields::text(std::initializer_list<std::string_view> names,
                                 std::string_view otherwise) const {
  for (const std::string_view name : names) {
    const json::Value* const stated = find(name);
    if (stated == nullptr) continue;
    if (stated->is_string()) return stated->as_string();
    return fail(
        Error{.code = ErrorCode::kConfigType,
              .message = fmt::format("must be a string, found {}", type_name(stated->type())),
              .where = pointer(name),
              .value = stated->brief()});
  }
  return std::string(otherwise);
}

}  // namespace kernelpath::model
