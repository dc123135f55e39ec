#include "engines/trtllm/arguments.h"

#include "base/assert.h"
#include "base/text.h"
#include "base/units.h"
#include "engines/trtllm/dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::trtllm {
namespace {

using enum SettingType;

constexpr std::array kTable = {
    ArgumentInfo{"attn_backend", kText, "TRTLLM", "--backend",
                 "attention backend; the engine does not check the name"},
    ArgumentInfo{"max_seq_len", kInteger, "", "--max-model-len",
                 "longest sequence; inferred from the model where None"},
    ArgumentInfo{"max_batch_size", kInteger, "2048", "", "most requests in one step"},
    ArgumentInfo{"max_num_tokens", kInteger, "8192", "", "most tokens in one step"},
    ArgumentInfo{"max_beam_width", kInteger, "1", "", "beams of a request"},
    ArgumentInfo{"tensor_parallel_size", kInteger, "1", "--tp", "tensor-parallel ranks"},
    ArgumentInfo{"pipeline_parallel_size", kInteger, "1", "--pp", "pipeline stages"},
    ArgumentInfo{"context_parallel_size", kInteger, "1", "--cp", "context-parallel ranks"},
    ArgumentInfo{"moe_expert_parallel_size", kInteger, "1", "--ep", "expert-parallel ranks"},
    ArgumentInfo{"enable_attention_dp", kBool, "false", "",
                 "attention replicated over the tensor-parallel ranks"},
    ArgumentInfo{"dtype", kText, "auto", "--dtype", "dtype of what is not quantised"},
    ArgumentInfo{"kv_cache_config.dtype", kText, "auto", "--kv", "dtype of the KV cache"},
    ArgumentInfo{"kv_cache_config.tokens_per_block", kInteger, "32", "--page-size",
                 "tokens of a KV block"},
    ArgumentInfo{"kv_cache_config.free_gpu_memory_fraction", kNumber, "0.9", "",
                 "share of the free device memory that the KV pool takes"},
    ArgumentInfo{"kv_cache_config.max_tokens", kInteger, "", "", "upper limit of the KV pool"},
    ArgumentInfo{"kv_cache_config.enable_block_reuse", kBool, "true", "",
                 "blocks of earlier requests are reused"},
    ArgumentInfo{"kv_cache_config.use_kv_cache_manager_v2", kText, "auto", "",
                 "true, false or auto"},
    ArgumentInfo{"enable_chunked_prefill", kBool, "false", "", "long prompts are cut in chunks"},
    ArgumentInfo{"sparse_attention_config.algorithm", kText, "", "",
                 "rocket, dsa, deepseek_v4, skip_softmax, minimax_m3, qsa, glm_kpool, csa2"},
    ArgumentInfo{"sparse_attention_config.implementation", kText, "triton", "",
                 "minimax_m3 only: triton or msa"},
    ArgumentInfo{"speculative_config.decoding_type", kText, "", "--speculative",
                 "Eagle, Eagle3, MTP, NGram, DraftTarget …"},
    ArgumentInfo{"speculative_config.max_draft_len", kInteger, "", "--draft-tokens",
                 "draft tokens of a step"},
    ArgumentInfo{"enable_mla_skip_correction", kBool, "false", "",
                 "MLA skips rescaling while the maximum grows little"},
    ArgumentInfo{"mla_skip_correction_threshold", kNumber, "8.0", "",
                 "in (0, 32]; effective on SM 100 and 103"},
    ArgumentInfo{"mm_encoder_only", kBool, "false", "", "build the vision encoder alone"},
    ArgumentInfo{"modeling_v2", kText, "off", "", "off, auto or require"},
};

std::size_t index_of(std::string_view name) {
  const auto* found =
      std::find_if(kTable.begin(), kTable.end(), [&](const auto& row) { return row.name == name; });
  KERNELPATH_ASSERT(found != kTable.end());
  return static_cast<std::size_t>(found - kTable.begin());
}

// The value as this table spells it, or nothing where the type does not fit.
std::optional<std::string> normalise(SettingType type, const std::string& value) {
  return is_none(value) ? std::string() : normalised(type, value);
}

Error unknown_argument(std::string_view name) {
  std::vector<std::string_view> names;
  names.reserve(kTable.size());
  for (const ArgumentInfo& info : kTable) names.push_back(info.name);
  return {.code = ErrorCode::kUsageUnknown,
          .message = "no argument of trtllm that the resolution reads has this name",
          .where = fmt::format("--set trtllm.{}", shorten(name, 64)),
          .hint = "llm-inspect --list settings --engine trtllm prints them all",
          .near_matches = near_matches(name, names)};
}

// --backend takes any case of a name that the engine has; its own argument keeps the case that it
// is given, and so does a name that it does not have.
std::string canonical_backend(const std::string& name) {
  for (const std::string_view known : outer_backend_names()) {
    if (equal_ignoring_case(known, name)) return std::string(known);
  }
  return name;
}

// The engine's spelling of a speculative mode; names that only the engine knows pass as they are.
std::string decoding_type(std::string_view mode) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kModes = {
      std::pair{"eagle", "Eagle"}, std::pair{"eagle3", "Eagle3"}, std::pair{"mtp", "MTP"},
      std::pair{"ngram", "NGram"}, std::pair{"draft", "DraftTarget"}};
  for (const auto& [ours, theirs] : kModes) {
    if (equal_ignoring_case(mode, ours)) return std::string(theirs);
  }
  return std::string(mode);
}

using Stated = std::vector<std::pair<std::string_view, std::optional<std::string>>>;

std::optional<std::string> if_not_one(std::int64_t size) {
  return size == 1 ? std::nullopt : std::optional(fmt::to_string(size));
}

std::optional<std::string> as_text(const std::optional<std::int64_t>& value) {
  return value ? std::optional(fmt::to_string(*value)) : std::nullopt;
}

// What the common options say, by argument.
Stated stated_by_options(const Deployment& deployment) {
  const auto map = [](const std::optional<std::string>& value, auto convert) {
    return value ? std::optional<std::string>(convert(*value)) : std::nullopt;
  };
  return {
      {"attn_backend", map(deployment.backend, canonical_backend)},
      {"max_seq_len", as_text(deployment.max_model_len)},
      {"tensor_parallel_size", if_not_one(deployment.tp)},
      {"pipeline_parallel_size", if_not_one(deployment.pp)},
      {"context_parallel_size", if_not_one(deployment.cp)},
      {"moe_expert_parallel_size", if_not_one(deployment.ep)},
      {"dtype", deployment.dtype},
      {"kv_cache_config.dtype", deployment.kv_dtype},
      {"kv_cache_config.tokens_per_block", as_text(deployment.page_size)},
      {"speculative_config.decoding_type", map(deployment.speculative, decoding_type)},
      {"speculative_config.max_draft_len", as_text(deployment.draft_tokens)},
  };
}

}  // namespace

std::span<const ArgumentInfo> argument_table() { return kTable; }

const ArgumentInfo* find_argument(std::string_view name) {
  const auto* found =
      std::find_if(kTable.begin(), kTable.end(), [&](const auto& row) { return row.name == name; });
  return found == kTable.end() ? nullptr : found;
}

// Ranks are dealt out by division.
bool counts_ranks(std::string_view name) {
  return name == "tensor_parallel_size" || name == "pipeline_parallel_size" ||
         name == "context_parallel_size";
}

Arguments::Arguments() {
  for (const ArgumentInfo& info : kTable) values_.push_back({std::string(info.default_value)});
}

Result<void> Arguments::set(std::string_view name, const std::string& value,
                            std::string_view set_by) {
  const ArgumentInfo* info = find_argument(name);
  if (info == nullptr) return fail(unknown_argument(name));
  const std::optional<std::string> normal = normalise(info->type, value);
  if (!normal) {
    return fail({.code = ErrorCode::kUsage,
                 .message = fmt::format("trtllm.{} takes {}", name, type_words(info->type)),
                 .where = std::string(set_by),
                 .value = shorten(value, 32)});
  }
  if (counts_ranks(name) && parse_integer(*normal).value_or(1) < 1) {
    return fail({.code = ErrorCode::kUsage,
                 .message = fmt::format("trtllm.{} is at least 1", name),
                 .where = std::string(set_by),
                 .value = shorten(value, 32)});
  }
  Value& slot = values_[index_of(name)];
  if (slot.user && slot.text != *normal) {
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = fmt::format("states {} = {}, but {} states {}", name, *normal,
                                        slot.set_by, slot.text),
                 .where = std::string(set_by),
                 .hint = "give one of the two"});
  }
  slot = {*normal, std::string(set_by), true};
  return {};
}

Result<Arguments> Arguments::read(const Deployment& deployment) {
  Arguments out;
  for (const auto& [name, value] : stated_by_options(deployment)) {
    if (value) KERNELPATH_CHECK_OK(out.set(name, *value, find_argument(name)->option));
  }
  for (const auto& [name, value] : deployment.settings) {
    KERNELPATH_CHECK_OK(out.set(name, value, fmt::format("--set trtllm.{}", name)));
  }
  return out;
}

const Arguments::Value& Arguments::value(std::string_view name) const {
  return values_[index_of(name)];
}

std::optional<std::string> Arguments::text(std::string_view name) const {
  const std::string& text = value(name).text;
  return text.empty() ? std::nullopt : std::optional(text);
}

bool Arguments::flag(std::string_view name) const { return value(name).text == "true"; }

std::optional<std::int64_t> Arguments::integer(std::string_view name) const {
  const auto parsed = parse_integer(value(name).text);
  return parsed ? std::optional(*parsed) : std::nullopt;
}

std::optional<double> Arguments::number(std::string_view name) const {
  return parse_number(value(name).text);
}

bool Arguments::set_by_user(std::string_view name) const { return value(name).user; }

const std::string& Arguments::set_by(std::string_view name) const { return value(name).set_by; }

bool Arguments::set_model_default(std::string_view name, std::string value) {
  if (find_argument(name) == nullptr) return false;
  Value& slot = values_[index_of(name)];
  if (slot.user) return false;
  slot.text = std::move(value);
  slot.set_by = "model default";
  return true;
}

}  // namespace kernelpath::engines::trtllm
