#include "engines/deepinfer/run_checks.h"

#include "base/text.h"
#include "engines/deepinfer/python.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace kernelpath::engines::deepinfer {
namespace {

Fault fault(std::string_view stage, std::string_view type, std::string text,
            std::string rule = {}) {
  return {.stage = std::string(stage),
          .type = std::string(type),
          .text = std::move(text),
          .rule = std::move(rule)};
}

// A value as the caller spelt it: -1 stays "-1", 1.1 is "1.1".
std::string spelt(const json::Value& stated, std::string_view key) {
  const json::Value* value = stated.find(key);
  return value != nullptr ? python_repr(*value) : "None";
}

bool is_int32(std::int64_t value) { return value <= std::numeric_limits<std::int32_t>::max(); }

// "hc_attn_norm" in "layers.0.hc_attn_norm.weight".
bool is_separate_norm(std::string_view tensor) {
  return std::ranges::any_of(split(tensor, '.'), [](const std::string& part) {
    return part.starts_with("hc_") && part.ends_with("_norm");
  });
}

std::string python_list(const std::set<std::string>& names) {
  std::vector<std::string> parts;
  parts.reserve(names.size());
  for (const std::string& name : names) parts.push_back(python_repr(name));
  return "[" + join(parts, ", ") + "]";
}

}  // namespace

Checked<std::int64_t> check_rebalancing(const Variables& variables) {
  constexpr std::string_view kStage = "eplb";
  KERNELPATH_TRY(window, variables.integer("EXPERT_COUNT_WINDOW_SIZE", kStage));
  KERNELPATH_TRY(interval, variables.integer("EXPERT_REARRANGEMENT_STEP_INTERVAL", kStage));
  KERNELPATH_TRY(statistics, variables.integer("MOE_LB_STAT_INTERVAL", kStage));
  if (window < 0) {
    return raise(
        fault(kStage, "ValueError",
              fmt::format("DEEPINFER_EXPERT_COUNT_WINDOW_SIZE={} must be non-negative", window)));
  }
  if (interval != 0 && (window < 1 || window > interval)) {
    return raise(fault(
        kStage, "ValueError",
        fmt::format("DEEPINFER_EXPERT_COUNT_WINDOW_SIZE={} must be between 1 and "
                    "DEEPINFER_EXPERT_REARRANGEMENT_STEP_INTERVAL={} when rearrangement is enabled",
                    window, interval)));
  }
  if (statistics <= 0) {
    return raise(
        fault(kStage, "ValueError",
              fmt::format("DEEPINFER_MOE_LB_STAT_INTERVAL={} must be positive", statistics)));
  }
  return interval;
}

Checked<SamplingParameters> check_sampling(SamplingParameters parameters,
                                           const json::Value& stated) {
  constexpr std::string_view kStage = "sampling";
  const auto bad = [&](std::string_view text, std::string_view key) {
    return raise(fault(kStage, "ValueError", fmt::format("{}, got {}.", text, spelt(stated, key))));
  };
  if (!parameters.seed_is_integer) return raise(fault(kStage, "TypeError", ""));
  if (parameters.max_tokens == 0) parameters.max_tokens = 1;
  if (parameters.temperature < 0) return bad("temperature must be non-negative", "temperature");
  if (!(parameters.top_p > 0 && parameters.top_p <= 1)) {
    return bad("top_p must be in (0, 1]", "top_p");
  }
  if (parameters.top_k < -1 || parameters.top_k == 0 || !is_int32(parameters.top_k)) {
    return bad("top_k must be -1 (disable), or between 1 and int32 max", "top_k");
  }
  if (parameters.max_tokens < 1 || !is_int32(parameters.max_tokens)) {
    return bad("max_tokens must be >= 1 and in range of int32", "max_tokens");
  }
  if (parameters.top_logprobs < 0 || parameters.top_logprobs > 1000) {
    return bad("top_logprobs must be in [0, 1000]", "top_logprobs");
  }
  constexpr double kLeastTemperature = 1e-5;
  if (parameters.temperature < kLeastTemperature) {
    parameters.temperature = kLeastTemperature;
    parameters.top_p = 1.0;
    parameters.top_k = -1;
  }
  return parameters;
}

Checked<bool> check_tokenizer(const json::Value* config, std::string_view folder,
                              std::span<const std::string> files) {
  constexpr std::string_view kStage = "tokenizer";
  const json::Value* stated = config != nullptr ? config->find("tokenizer_compatibility") : nullptr;
  const std::string mode = stated == nullptr     ? "'release'"
                           : stated->is_string() ? python_repr(stated->as_string())
                                                 : python_repr(*stated);
  if (mode != "'release'" && mode != "'native'") {
    return raise(
        fault(kStage, "ValueError", fmt::format("Unsupported tokenizer_compatibility: {}", mode)));
  }
  for (const std::string_view file : {"tokenizer.json", "tokenizer_config.json"}) {
    if (std::ranges::find(files, file) != files.end()) continue;
    return raise(fault(kStage, "FileNotFoundError",
                       fmt::format("HF tokenizer file not found: {}/{}", folder, file)));
  }
  return true;
}

Checked<bool> check_weight_index(const WeightIndex& index, std::string_view folder) {
  constexpr std::string_view kStage = "weights";
  if (!index.found) {
    return raise(fault(kStage, "FileNotFoundError",
                       "[Errno 2] No such file or directory: " +
                           python_repr(fmt::format("{}/model.safetensors.index.json", folder))));
  }
  std::set<std::string> missing;
  std::set<std::string> separate;
  std::set<std::string> names;
  for (const auto& [tensor, shard] : index.shard_of) {
    names.insert(tensor);
    if (std::ranges::find(index.shards_present, shard) == index.shards_present.end()) {
      missing.insert(shard);
    }
    if (is_separate_norm(tensor)) separate.insert(tensor);
  }
  if (!missing.empty()) {
    return raise(
        fault(kStage, "FileNotFoundError",
              fmt::format("HF checkpoint {} is missing shards: {}", folder, python_list(missing))));
  }
  if (!separate.empty()) {
    return raise(fault(kStage, "ValueError",
                       "HF requires folded HC weights; separate HC norm tensors are unsupported: " +
                           python_list(separate)));
  }
  if (std::ranges::any_of(
          names, [&](const std::string& name) { return names.contains("model." + name); })) {
    return raise(
        fault(kStage, "ValueError", "HF index contains ambiguous model.-prefixed aliases"));
  }
  if (index.shard_of.empty()) return true;
  return raise(
      fault(kStage, "ValueError",
            fmt::format("HF shard is unreadable: {}/{}", folder, index.shard_of.front().second)));
}

Checked<std::string> visible_devices(const Variables& variables, const Machine& machine) {
  const std::string* cuda = variables.text("CUDA_VISIBLE_DEVICES");
  const std::string* ascend = variables.text("ASCEND_RT_VISIBLE_DEVICES");
  const std::string visible = cuda != nullptr ? *cuda : "";
  if (machine.platform != Platform::kAscend || ascend == nullptr) return visible;
  if (cuda == nullptr) return *ascend;
  if (*cuda == *ascend) return visible;
  return raise(fault("platform", "RuntimeError",
                     fmt::format("CUDA_VISIBLE_DEVICES ({}) must match ASCEND_RT_VISIBLE_DEVICES "
                                 "({})",
                                 python_repr(*cuda), python_repr(*ascend)),
                     "visible-devices-differ"));
}

Checked<std::int64_t> check_scheduler_limits(const Arguments& arguments,
                                             const Variables& variables) {
  constexpr std::string_view kStage = "scheduler";
  constexpr std::int64_t kUnlimited = std::int64_t{1} << 30;
  if (arguments.engine_type == EngineType::kCompletion && !arguments.stop_preempted_request) {
    return raise(fault(kStage, "RuntimeError",
                       "COMPLETION engine cannot recompute preempted requests (no prefill "
                       "channel); it must be deployed with stop_preempted_request=true "
                       "(--stop-preempted-request)"));
  }
  KERNELPATH_TRY(limits, resolve_limits(arguments, variables));
  const bool stated = variables.text("DEEPINFER_PREFILL_MAX_SUM_SEQLEN_K") != nullptr;
  std::int64_t limit = 0;
  if (stated) {
    KERNELPATH_TRY(value, variables.integer("PREFILL_MAX_SUM_SEQLEN_K", kStage));
    limit = value;
  }
  if (limit == 0) limit = kUnlimited;
  const std::int64_t prompt_limit =
      arguments.chunked_prefill ? limits.max_model_len
                                : std::min(limits.max_model_len, limits.max_num_batched_tokens);
  if (limit < prompt_limit) {
    return raise(fault(kStage, "RuntimeError",
                       fmt::format("prefill_max_sum_seqlen_k={} too small, prompt_limit={}", limit,
                                   prompt_limit)));
  }
  constexpr std::int64_t kLeastBatch = 128;
  if (limits.max_num_batched_tokens < kLeastBatch) {
    return raise(fault(kStage, "RuntimeError",
                       fmt::format("max_num_batched_tokens={} is below {}",
                                   limits.max_num_batched_tokens, kLeastBatch)));
  }
  return limit;
}

Checked<bool> check_engine_init(const Arguments& arguments, const Variables& variables,
                                bool unset) {
  constexpr std::string_view kStage = "engine";
  constexpr std::string_view kName = "CUDA_VISIBLE_DEVICES";
  if (unset) return raise(fault(kStage, "KeyError", python_repr(kName)));
  if (const std::string* devices = variables.text(kName)) {
    for (const std::string& device : split(*devices, ',')) {
      if (python_int(device)) continue;
      return raise(fault(
          kStage, "ValueError",
          "invalid literal for int() with base 10: " + python_repr(std::string_view(device))));
    }
  }
  if (arguments.context_parallel_size > 1 && arguments.engine_type == EngineType::kCompletion) {
    return refuse(std::string(kStage), "");
  }
  return true;
}

}  // namespace kernelpath::engines::deepinfer
