#include "engines/deepinfer/variables.h"

#include "base/assert.h"
#include "base/text.h"
#include "engines/deepinfer/python.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::deepinfer {
namespace {

constexpr std::string_view kPrefix = "DEEPINFER_";

constexpr std::array kVariables = std::to_array<VariableInfo>({
    {"DEEPINFER_ACCELERATOR", VariableKind::kText, "nvidia",
     "folder of the extension and default of the Engram storage; does not choose the platform"},
    {"DEEPINFER_COMPUTE_SUM_SMALLER_PROBS", VariableKind::kBoolean, "0", "sampler statistics"},
    {"DEEPINFER_JIT_CACHE_DIR", VariableKind::kText, "", "overwrites three JIT folders"},
    {"DEEPINFER_NCCL_NUM_SMS", VariableKind::kInteger, "32", "SMs of collectives"},
    {"DEEPINFER_USERBUFFER_COMM_SMS", VariableKind::kInteger, "0", "0: computed from the device"},
    {"DEEPINFER_GLOO_TIMEOUT", VariableKind::kSeconds, "14400", "of host collectives"},
    {"DEEPINFER_REARRANGE_P2P_GROUPS", VariableKind::kInteger, "1", "expert rebalancing"},
    {"DEEPINFER_OVERRIDE_NUM_EXTRA_EXPERTS", VariableKind::kInteger, "0",
     "redundant experts, raised so that all divide by the expert-parallel size"},
    {"DEEPINFER_EXPERT_COUNT_WINDOW_SIZE", VariableKind::kInteger, "100", "expert statistics"},
    {"DEEPINFER_EXPERT_REARRANGEMENT_STEP_INTERVAL", VariableKind::kInteger, "0",
     "0: experts are never rebalanced"},
    {"DEEPINFER_REARRANGE_AFTER_PREFILL_IN_NORMAL_ENGINE", VariableKind::kBoolean, "0",
     "rebalance in prefill steps too"},
    {"DEEPINFER_MOE_LB_STAT_INTERVAL", VariableKind::kInteger, "128", "expert statistics"},
    {"DEEPINFER_FORCE_IMBALANCE_RATIO", VariableKind::kNumber, "0", "for measurements"},
    {"DEEPINFER_FORCE_LOAD_BALANCE", VariableKind::kBoolean, "0", "for measurements"},
    {"DEEPINFER_SHOW_EPLB_DETAIL", VariableKind::kBoolean, "0", "log"},
    {"DEEPINFER_PREFILL_MAX_SUM_SEQLEN_K", VariableKind::kInteger, "",
     "limit of a prefill step's keys; 0 and unset: 2^30"},
    {"DEEPINFER_INDEX_ATTN_MEMORY_LIMIT", VariableKind::kInteger, "10737418240",
     "bytes of index scores at a time"},
    {"DEEPINFER_USE_NEXTN_DECODE", VariableKind::kInteger, "5", "tokens drafted a step; 0: off"},
    {"DEEPINFER_ENABLE_MTP_VARLEN", VariableKind::kBoolean, "0", "drafts of varying length"},
    {"DEEPINFER_MAX_BACKTRACKING_TOKENS", VariableKind::kInteger, "",
     "tokens that a step may take back; at least draft length + 1"},
    {"DEEPINFER_DFLASH_CONFIDENCE_HEAD_TEMPERATURE", VariableKind::kTemperatures, "1.0",
     "one number, or one for each drafted token"},
    {"DEEPINFER_ENGRAM_PAD_TOKEN", VariableKind::kInteger, "2", "Engram"},
    {"DEEPINFER_ENGRAM_FORCE_GPU_STORAGE", VariableKind::kBoolean, "0",
     "Engram tables on the device; always so on Ascend"},
    {"DEEPINFER_SAMPLER_FORCE_TOPK", VariableKind::kInteger, "0", "sampler"},
    {"DEEPINFER_DECODE_TOKEN_BLACKLIST", VariableKind::kText, "", "sampler"},
    {"DEEPINFER_ENFORCE_EAGER", VariableKind::kBoolean, "0", "no graphs"},
    {"DEEPINFER_CUDAGRAPH_BATCH_SIZE_INTERVAL", VariableKind::kInteger, "8", "graph sizes"},
    {"DEEPINFER_DFLASH_ENFORCE_EAGER", VariableKind::kBoolean, "0", "no graph of the draft"},
    {"DEEPINFER_DFLASH_CUDAGRAPH_BATCH_SIZE_INTERVAL", VariableKind::kInteger, "8",
     "graph sizes of the draft"},
    {"DEEPINFER_DECODE_PERF_CACHE_DIR", VariableKind::kText, "", "measurements"},
    {"DEEPINFER_DECODE_PERF_CACHE_TTL_SEC", VariableKind::kInteger, "3600", "measurements"},
    {"DEEPINFER_NUM_STATE_SLOTS_RATIO", VariableKind::kNumber, "1.2", "state slots a sequence"},
    {"DEEPINFER_PREFILL_STORE_EXTRA_STATE", VariableKind::kBoolean, "0",
     "longer window rings, so that a prefix can be restored"},
    {"DEEPINFER_PREFILL_STORE_EXTRA_SIZE", VariableKind::kInteger, "128", "tokens of it"},
    {"DEEPINFER_XGRAMMAR_DEBUG", VariableKind::kBoolean, "0", "structured output"},
    {"DEEPINFER_XGRAMMAR_TIMEOUT", VariableKind::kNumber, "20", "structured output"},
    {"DEEPINFER_XGRAMMAR_DISABLE_CACHE", VariableKind::kBoolean, "0", "structured output"},
    {"DEEPINFER_XGRAMMAR_CACHE_LIMIT_BYTES", VariableKind::kInteger, "10737418240",
     "structured output"},
    {"DEEPINFER_SO_BUILDER_CPUS", VariableKind::kInteger, "4", "structured output"},
    {"DEEPINFER_PREFILL_ATTEMPT_INTERVAL", VariableKind::kInteger, "70", "scheduler; at least 1"},
    {"DEEPINFER_PREFILL_ANY_ATTEMPT_INTERVAL", VariableKind::kInteger, "100",
     "scheduler; at least 1"},
    {"DEEPINFER_ZERO_OVERHEAD_SCHEDULING", VariableKind::kBoolean, "",
     "overlap scheduling; by default off for PROMPT engines only"},
    {"DEEPINFER_LOGGING_INTERVAL_STEP", VariableKind::kInteger, "100", "log"},
    {"DEEPINFER_NCCL_MEMORY_SAMPLE_INTERVAL_STEPS", VariableKind::kInteger, "1000", "log"},
    {"DEEPINFER_RINGBUFFER_WARNING_INTERVAL", VariableKind::kInteger, "60", "log"},
    {"DEEPINFER_GC_INTERVAL_STEP", VariableKind::kInteger, "1000", "garbage collection"},
    {"DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE", VariableKind::kTruncationMode, "off",
     "prefill of the consumer layers: off, mask or compact"},
    {"DEEPINFER_YOCO_PREFILL_KEEP_TOKENS", VariableKind::kInteger, "0",
     "tokens that truncation keeps"},
    {"DEEPINFER_BATCH_INVARIANT", VariableKind::kBoolean, "0", "CUDA only"},
    {"DEEPINFER_DISABLE_SYNC_GUARD", VariableKind::kBoolean, "0", "debugging"},
    {"DEEPINFER_PROFILE_TORCH_CUDA_MEMORY", VariableKind::kText, "", "debugging"},
    {"DEEPINFER_ENABLE_MEMORY_TRACING", VariableKind::kBoolean, "0", "debugging"},
    {"DEEPINFER_PROFILE_HTTP_ENABLE", VariableKind::kBoolean, "0", "debugging"},
    {"DEEPINFER_PROFILE_HTTP_PORT_BASE", VariableKind::kInteger, "6070", "debugging"},
    {"DEEPINFER_TORCH_PROFILER_DIR", VariableKind::kText, "", "debugging"},
    {"DEEPINFER_USE_MULTIMODAL_POOL", VariableKind::kBoolean, "",
     "by default off for COMPLETION engines only"},
    {"DEEPINFER_MULTIMODAL_POOL_SIZE_GB", VariableKind::kInteger, "8", "multimodal"},
    {"DEEPINFER_MULTI_MODAL_BUFFER_SIZE", VariableKind::kInteger, "512", "multimodal"},
    {"DEEPINFER_MULTI_MODAL_WORKER_TIMEOUT", VariableKind::kInteger, "1800", "multimodal"},
    {"DEEPINFER_CPP_LOG_LEVEL", VariableKind::kText, "", "log of the C++ half"},
    {"CUDA_VISIBLE_DEVICES", VariableKind::kText, "",
     "must be set, integers with commas, on both platforms"},
    {"ASCEND_RT_VISIBLE_DEVICES", VariableKind::kText, "", "must equal CUDA_VISIBLE_DEVICES"},
    {"MASTER_ADDR", VariableKind::kText, "localhost", "rendezvous"},
    {"MASTER_PORT", VariableKind::kInteger, "23333", "rendezvous"},
});

const VariableInfo& variable_named(std::string_view short_name) {
  const auto* const row = std::ranges::find_if(kVariables, [&](const VariableInfo& info) {
    return info.name.starts_with(kPrefix) && info.name.substr(kPrefix.size()) == short_name;
  });
  KERNELPATH_ASSERT(row != kVariables.end());
  return *row;
}

Fault bad_value(std::string_view name, std::string_view stage, const std::string& what) {
  return {.stage = std::string(stage),
          .type = "ValueError",
          .text = fmt::format("{}: {}", name, what),
          .rule = "env-value"};
}

bool is_true(std::string_view text) {
  return !text.empty() && text != "0" && text != "false" && text != "False";
}

Checked<std::int64_t> read_integer(const VariableInfo& variable, std::string_view text,
                                   std::string_view stage) {
  if (const auto value = python_int(text)) return *value;
  return raise(
      bad_value(variable.name, stage,
                "invalid literal for int() with base 10: " + python_repr(std::string_view(text))));
}

Checked<double> read_number(const VariableInfo& variable, std::string_view text,
                            std::string_view stage) {
  if (const auto value = python_float(text)) return *value;
  return raise(
      bad_value(variable.name, stage, "could not convert string to float: " + python_repr(text)));
}

// str(datetime.timedelta(seconds=…)) for whole seconds below a day or above.
std::string duration_text(std::int64_t seconds) {
  const std::int64_t days = floor_divide(seconds, 86400);
  const std::int64_t rest = floor_remainder(seconds, 86400);
  std::string clock = fmt::format("{}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
  if (days == 0) return clock;
  return fmt::format("{} day{}, {}", days, days == 1 || days == -1 ? "" : "s", clock);
}

}  // namespace

std::span<const VariableInfo> variables() { return kVariables; }

const std::string* Variables::text(std::string_view name) const {
  const auto found =
      std::ranges::find_if(values_, [&](const auto& pair) { return pair.first == name; });
  return found == values_.end() ? nullptr : &found->second;
}

std::string_view Variables::text_or_default(std::string_view name) const {
  const VariableInfo& variable = variable_named(name);
  const std::string* stated = text(variable.name);
  return stated != nullptr ? std::string_view(*stated) : variable.fallback;
}

Checked<std::int64_t> Variables::integer(std::string_view name, std::string_view stage) const {
  return read_integer(variable_named(name), text_or_default(name), stage);
}

Checked<std::int64_t> Variables::count(std::string_view name, std::string_view stage) const {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  KERNELPATH_TRY(value, integer(name, stage));
  if (value >= -kMost && value <= kMost) return value;
  return raise({.stage = std::string(stage),
                .type = "OverflowError",
                .text = fmt::format("{}: {} is beyond {}", variable_named(name).name, value, kMost),
                .rule = "env-value"});
}

Checked<double> Variables::number(std::string_view name, std::string_view stage) const {
  return read_number(variable_named(name), text_or_default(name), stage);
}

bool Variables::flag(std::string_view name) const { return is_true(text_or_default(name)); }

std::optional<bool> Variables::stated_flag(std::string_view name) const {
  const std::string* stated = text(variable_named(name).name);
  if (stated == nullptr) return std::nullopt;
  return is_true(*stated);
}

Checked<std::string> Variables::truncation_mode(std::string_view stage) const {
  constexpr std::string_view kName = "YOCO_PREFILL_TRUNCATION_MODE";
  const std::string_view mode = text_or_default(kName);
  if (mode == "off" || mode == "mask" || mode == "compact") return std::string(mode);
  return raise(bad_value(variable_named(kName).name, stage,
                         python_repr(mode) + ", must be one of ('off', 'mask', 'compact')"));
}

Checked<std::int64_t> Variables::draft_length(std::string_view stage) const {
  return count("USE_NEXTN_DECODE", stage);
}

Checked<std::int64_t> Variables::backtracking_tokens(std::string_view stage) const {
  constexpr std::string_view kName = "MAX_BACKTRACKING_TOKENS";
  KERNELPATH_TRY(draft, draft_length(stage));
  if (text(variable_named(kName).name) == nullptr) return draft + 1;
  KERNELPATH_TRY(stated, count(kName, stage));
  return std::max(stated, draft + 1);
}

Checked<std::vector<double>> Variables::temperatures(std::string_view stage) const {
  constexpr std::string_view kName = "DFLASH_CONFIDENCE_HEAD_TEMPERATURE";
  const VariableInfo& variable = variable_named(kName);
  const std::string_view whole = text_or_default(kName);
  std::vector<double> out;
  for (const std::string_view part : split(whole, ',')) {
    KERNELPATH_TRY(value, read_number(variable, part, stage));
    out.push_back(value);
  }
  KERNELPATH_TRY(draft, draft_length(stage));
  if (out.size() == 1 || static_cast<std::int64_t>(out.size()) == draft) return out;
  return raise(bad_value(variable.name, stage,
                         fmt::format("has {} elements ({}) but DEEPINFER_USE_NEXTN_DECODE={}",
                                     out.size(), python_repr(whole), draft)));
}

Checked<json::Value> Variables::value(const VariableInfo& variable, std::string_view stage) const {
  const std::string* stated = text(variable.name);
  const bool named = variable.name.starts_with(kPrefix);
  const std::string_view name = named ? variable.name.substr(kPrefix.size()) : variable.name;
  if (name == "MAX_BACKTRACKING_TOKENS") {
    KERNELPATH_TRY(tokens, backtracking_tokens(stage));
    return json::Value::integer(tokens);
  }
  if (name == "ENGRAM_FORCE_GPU_STORAGE" && stated == nullptr) return json::Value::boolean(ascend_);
  if (stated == nullptr && variable.fallback.empty()) return json::Value::null();
  const std::string_view text = stated != nullptr ? std::string_view(*stated) : variable.fallback;
  switch (variable.kind) {
    case VariableKind::kBoolean:
      return json::Value::boolean(is_true(text));
    case VariableKind::kInteger: {
      KERNELPATH_TRY(number, read_integer(variable, text, stage));
      return json::Value::integer(number);
    }
    case VariableKind::kNumber: {
      KERNELPATH_TRY(number, read_number(variable, text, stage));
      return json::Value::number(number);
    }
    case VariableKind::kSeconds: {
      KERNELPATH_TRY(seconds, read_integer(variable, text, stage));
      return json::Value::string(duration_text(seconds));
    }
    case VariableKind::kTruncationMode: {
      KERNELPATH_TRY(mode, truncation_mode(stage));
      return json::Value::string(mode);
    }
    case VariableKind::kTemperatures: {
      KERNELPATH_TRY(numbers, temperatures(stage));
      std::vector<json::Value> items;
      items.reserve(numbers.size());
      for (const double number : numbers) items.push_back(json::Value::number(number));
      return items.size() == 1 ? items.front() : json::Value::array(std::move(items));
    }
    case VariableKind::kText:
      break;
  }
  return json::Value::string(std::string(text));
}

}  // namespace kernelpath::engines::deepinfer
