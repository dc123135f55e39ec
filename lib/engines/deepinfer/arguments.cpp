#include "engines/deepinfer/arguments.h"

#include "engines/answer_fields.h"
#include "engines/deepinfer/python.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::deepinfer {
namespace {

constexpr std::string_view kStage = "configs";

constexpr std::array kArguments = std::to_array<ArgumentInfo>({
    {"chunked_prefill", "bool", "False", "", "prompts longer than a step are cut"},
    {"context_parallel_size", "int", "1", "--cp", "ranks that share a prompt's prefill"},
    {"data_parallel_size", "int", "0", "--dp", "0: expert over context parallel size"},
    {"engine_rank", "int", "0", "", "which of the data-parallel engines this is"},
    {"engine_type", "str", "NORMAL", "",
     "NORMAL, PROMPT (prefill only) or COMPLETION (decode only)"},
    {"engram_parallel_size", "int", "0", "", "0: context times data parallel size"},
    {"expert_parallel_size", "int", "1", "--ep", "ranks that share the experts"},
    {"gpu_memory_utilization", "float", "0.9", "", "at most 1.0"},
    {"load_format", "str", "auto", "", "auto or dummy"},
    {"max_model_len", "int", "None", "--max-model-len", "None: 4096, whatever the model says"},
    {"max_num_batched_tokens", "int", "None", "", "tokens of a step"},
    {"max_num_seqs", "int", "256", "--batch-size", "sequences of a step"},
    {"stop_preempted_request", "bool", "True", "", "must stay on for COMPLETION engines"},
    {"tokens_per_block", "int", "-1", "--page-size", "-1 or 128"},
});

std::optional<EngineType> parse_engine_type(std::string_view name) {
  for (const EngineType type :
       {EngineType::kNormal, EngineType::kPrompt, EngineType::kCompletion}) {
    if (name == engine_type_name(type)) return type;
  }
  return std::nullopt;
}

// str(float) of a value that came as JSON: 2 stays "2", 2.0 is "2.0".
std::string number_text(const json::Value& value) {
  if (value.is_integer()) return value.number_text();
  const std::string text = fmt::format("{}", value.as_double());
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string first_unknown(const json::Value& flags) {
  if (!flags.is_object()) return {};
  for (const json::Member& member : flags.members()) {
    const bool known = std::ranges::any_of(
        kArguments, [&](const ArgumentInfo& info) { return info.name == member.key; });
    if (!known) return member.key;
  }
  return {};
}

// Lengths may go far beyond what models have; counts are multiplied with each other.
std::string first_too_large(const json::Value& flags) {
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 53;
  constexpr std::int64_t kMostCount = std::int64_t{1} << 31;
  if (!flags.is_object()) return {};
  for (const json::Member& member : flags.members()) {
    if (!member.value.is_integer()) continue;
    const bool length = member.key == "max_model_len" || member.key == "max_num_batched_tokens";
    const std::int64_t most = length ? kMostTokens : kMostCount;
    const std::int64_t value = member.value.as_integer();
    if (value < -most || value > most) return member.key;
  }
  return {};
}

Checked<bool> check_sizes(const Arguments& arguments) {
  if (arguments.too_large.empty()) return true;
  return raise({.stage = std::string(kStage),
                .type = "OverflowError",
                .text = fmt::format("{} is beyond any deployment", arguments.too_large),
                .rule = "argument-too-large"});
}

}  // namespace

std::string_view engine_type_name(EngineType type) {
  switch (type) {
    case EngineType::kNormal:
      return "NORMAL";
    case EngineType::kPrompt:
      return "PROMPT";
    case EngineType::kCompletion:
      return "COMPLETION";
  }
  return "";
}

std::span<const ArgumentInfo> argument_table() { return kArguments; }

Result<Arguments> read_arguments(const json::Value& flags, const std::string& pointer) {
  AnswerFields fields(flags, pointer);
  Arguments out;
  out.unknown = first_unknown(flags);
  out.load_format = fields.text("load_format", out.load_format);
  out.max_model_len = fields.optional_integer("max_model_len");
  out.max_num_batched_tokens = fields.optional_integer("max_num_batched_tokens");
  out.max_num_seqs = fields.integer("max_num_seqs", out.max_num_seqs);
  out.gpu_memory_utilization = fields.number("gpu_memory_utilization", out.gpu_memory_utilization);
  const json::Value* utilization = fields.raw("gpu_memory_utilization");
  if (utilization != nullptr && utilization->is_number()) {
    out.gpu_memory_utilization_text = number_text(*utilization);
  }
  out.tokens_per_block = fields.integer("tokens_per_block", out.tokens_per_block);
  out.chunked_prefill = fields.boolean("chunked_prefill", out.chunked_prefill);
  out.stop_preempted_request = fields.boolean("stop_preempted_request", out.stop_preempted_request);
  const std::string type = fields.text("engine_type", "NORMAL");
  if (const auto parsed = parse_engine_type(type)) {
    out.engine_type = *parsed;
  } else {
    fields.refuse("engine_type", "must be NORMAL, PROMPT or COMPLETION");
  }
  out.data_parallel_size = fields.integer("data_parallel_size", out.data_parallel_size);
  out.context_parallel_size = fields.integer("context_parallel_size", out.context_parallel_size);
  out.expert_parallel_size = fields.integer("expert_parallel_size", out.expert_parallel_size);
  out.engram_parallel_size = fields.integer("engram_parallel_size", out.engram_parallel_size);
  out.engine_rank = fields.integer("engine_rank", out.engine_rank);
  out.too_large = first_too_large(flags);
  KERNELPATH_CHECK_OK(fields.status());
  return out;
}

bool overlap_scheduling(const Arguments& arguments, const Variables& variables) {
  return variables.stated_flag("ZERO_OVERHEAD_SCHEDULING")
      .value_or(arguments.engine_type != EngineType::kPrompt);
}

bool multimodal_pool(const Arguments& arguments, const Variables& variables) {
  return variables.stated_flag("USE_MULTIMODAL_POOL")
      .value_or(arguments.engine_type != EngineType::kCompletion);
}

Checked<Limits> resolve_limits(const Arguments& arguments, const Variables& variables) {
  KERNELPATH_CHECK_OK(check_sizes(arguments));
  Limits out;
  KERNELPATH_TRY(draft, variables.draft_length(kStage));
  out.draft_length = draft;
  out.max_model_len = arguments.max_model_len.value_or(4096);
  out.max_num_decoding_tokens = arguments.max_num_seqs * (1 + draft);
  if (arguments.max_num_batched_tokens) {
    out.max_num_batched_tokens = *arguments.max_num_batched_tokens;
    if (out.max_num_batched_tokens < out.max_num_decoding_tokens) {
      return refuse(std::string(kStage), "batched-tokens-below-decoding-tokens");
    }
  } else {
    out.max_num_batched_tokens =
        std::max({out.max_model_len, std::int64_t{4096}, out.max_num_decoding_tokens});
  }
  out.runtime_model_len = out.max_model_len + 2 * draft;
  if (overlap_scheduling(arguments, variables)) out.runtime_model_len += draft + 1;
  return out;
}

Checked<ParallelSizes> resolve_parallel_sizes(const Arguments& arguments) {
  KERNELPATH_CHECK_OK(check_sizes(arguments));
  const std::string stage(kStage);
  ParallelSizes out;
  out.context = arguments.context_parallel_size;
  out.expert = arguments.expert_parallel_size;
  out.data = arguments.data_parallel_size;
  out.data_rank = arguments.engine_rank;
  if (out.data == 0) {
    if (out.context == 0) {
      return raise({.stage = stage,
                    .type = "ZeroDivisionError",
                    .text = "integer division or modulo by zero",
                    .rule = "cp-zero-division"});
    }
    out.data = std::max<std::int64_t>(1, floor_divide(out.expert, out.context));
  }
  const std::int64_t ranks = out.context * out.data;
  out.engram = arguments.engram_parallel_size == 0 ? ranks : arguments.engram_parallel_size;
  out.world = std::max(ranks, out.engram);
  if (out.expert <= 0) return refuse(stage, "ep-not-positive");
  if (floor_remainder(ranks, out.expert) != 0) return refuse(stage, "cp-x-dp-not-divisible-by-ep");
  if (out.engram <= 0) return refuse(stage, "engram-size-not-positive");
  // A size of 0 beside an Engram size is a division by zero in the engine's own test.
  if (ranks == 0) {
    return raise({.stage = stage,
                  .type = "ZeroDivisionError",
                  .text = "integer modulo by zero",
                  .rule = "cp-zero-division"});
  }
  if (floor_remainder(out.world, ranks) != 0)
    return refuse(stage, "world-not-divisible-by-cp-x-dp");
  if (floor_remainder(out.world, out.engram) != 0) {
    return refuse(stage, "world-not-divisible-by-engram");
  }
  const std::int64_t engines = floor_divide(out.world, out.context);
  if (out.data_rank < 0 || out.data_rank >= engines)
    return refuse(stage, "engine-rank-out-of-range");
  return out;
}

std::int64_t redundant_experts(std::int64_t routed, std::int64_t wanted,
                               std::int64_t expert_parallel) {
  return wanted + floor_remainder(-(routed + wanted), expert_parallel);
}

}  // namespace kernelpath::engines::deepinfer
