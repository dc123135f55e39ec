#include "engines/trtllm/model_config_rules.h"

#include "base/checked.h"
#include "base/text.h"
#include "engines/trtllm/rules_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace kernelpath::engines::trtllm {
namespace {

constexpr std::array<std::string_view, 4> kNotGenerative = {
    "BertForSequenceClassification", "Qwen2ForProcessRewardModel", "Qwen2ForRewardModel",
    "LlamaForTextEmbedding"};
constexpr std::array<std::string_view, 2> kDsaArchitectures = {"DeepseekV32ForCausalLM",
                                                               "GlmMoeDsaForCausalLM"};
constexpr std::array<std::string_view, 2> kCsa2ModelTypes = {"deepseek_v41", "deepseek_v41_text"};
constexpr std::array<std::string_view, 9> kAllReduceStrategies = {
    "AUTO",    "NCCL",         "UB",    "MINLATENCY",    "ONESHOT",
    "TWOSHOT", "LOWPRECISION", "MNNVL", "NCCL_SYMMETRIC"};
constexpr std::array<std::string_view, 4> kUnscaledRopeTypes = {"su", "longrope", "llama3", "yarn"};
constexpr std::int64_t kDefaultMaxSeqLen = 2048;

template <class Table>
bool contains(const Table& table, std::string_view name) {
  return std::find(table.begin(), table.end(), name) != table.end();
}

EngineError value_error(std::string code, std::string message) {
  return EngineError{.type = "ValueError",
                     .code = std::move(code),
                     .message = std::move(message),
                     .near_matches = {}};
}

std::string_view first_architecture(const config::ModelConfig& model) {
  return model.architectures.empty() ? std::string_view() : model.architectures.front();
}

const config::SparseAttention& checkpoint_fields(const config::ModelConfig& model) {
  static const config::SparseAttention kNone;
  return model.sparse ? *model.sparse : kNone;
}

// A user's zero counts as unset, as in Python's `or`.
std::optional<std::int64_t> user_or_checkpoint(std::optional<std::int64_t> user,
                                               const config::IntField& checkpoint) {
  return user.value_or(0) != 0 ? user : checkpoint.value;
}

// The indexer's fields, common to DSA and V4: top-k is the user's only where it was set.
SparseSettings indexer_settings(const config::ModelConfig& model, const SparseOptions& user,
                                std::string_view algorithm) {
  const config::SparseAttention& checkpoint = checkpoint_fields(model);
  SparseSettings settings;
  settings.algorithm = algorithm;
  settings.automatic = user.algorithm.empty();
  settings.index_n_heads = user_or_checkpoint(user.index_n_heads, checkpoint.index_n_heads);
  settings.index_head_dim = user_or_checkpoint(user.index_head_dim, checkpoint.index_head_dim);
  settings.index_topk = user.index_topk ? user.index_topk : checkpoint.index_topk.value;
  return settings;
}

void resolve_dsa(const config::ModelConfig& model, const SparseOptions& user,
                 ModelConfigDecision& decision) {
  decision.sparse = indexer_settings(model, user, "dsa");
  const SparseSettings& settings = *decision.sparse;
  if (settings.index_n_heads && settings.index_head_dim && settings.index_topk) return;
  decision.error = EngineError{.type = "AttributeError",
                               .code = "DSA-NO-INDEXER",
                               .message =
                                   "the checkpoint lacks index_n_heads, index_head_dim or "
                                   "index_topk, which its architecture reads",
                               .near_matches = {}};
}

void resolve_deepseek_v4(const config::ModelConfig& model, const ModelConfigOptions& options,
                         const SparseOptions& user, ModelConfigDecision& decision) {
  const config::SparseAttention& checkpoint = checkpoint_fields(model);
  SparseSettings settings = indexer_settings(model, user, "deepseek_v4");
  settings.window_size = user.window_size         ? user.window_size
                         : checkpoint.window_size ? checkpoint.window_size.value
                                                  : model.sliding_window.value;
  settings.compress_ratios = user.compress_ratios;
  if (checkpoint.compress_ratios.size() > settings.compress_ratios.size()) {
    settings.compress_ratios = checkpoint.compress_ratios;
  }
  if (settings.compress_ratios.empty()) {
    decision.error = value_error("V4-NO-COMPRESS-RATIOS",
                                 "DeepSeek-V4 needs compress_ratios, one a layer, from the "
                                 "checkpoint or from sparse_attention_config");
    return;
  }
  // 0 means "window only" in a checkpoint; the cache arithmetic wants 1.
  for (std::int64_t& ratio : settings.compress_ratios) ratio = std::max<std::int64_t>(ratio, 1);
  if (options.mtp_layers > 0 && model.num_hidden_layers) {
    const auto total = checked_add(*model.num_hidden_layers, options.mtp_layers);
    constexpr std::int64_t kMostLayers = 1'000'000;
    const auto wanted =
        static_cast<std::size_t>(std::clamp<std::int64_t>(total.value_or(0), 0, kMostLayers));
    if (settings.compress_ratios.size() < wanted) settings.compress_ratios.resize(wanted, 1);
  }
  decision.sparse = std::move(settings);
}

void resolve_sparse(const config::ModelConfig& model, const ModelConfigOptions& options,
                    ModelConfigDecision& decision) {
  const SparseOptions user = options.sparse.value_or(SparseOptions{});
  const std::string_view architecture = first_architecture(model);
  if (contains(kDsaArchitectures, architecture)) {
    resolve_dsa(model, user, decision);
  } else if (architecture == "DeepseekV4ForCausalLM") {
    resolve_deepseek_v4(model, options, user, decision);
  } else if (options.sparse) {
    decision.sparse = indexer_settings(model, user, user.algorithm);
    decision.sparse->window_size = user.window_size;
    decision.sparse->compress_ratios = user.compress_ratios;
  } else if (contains(kCsa2ModelTypes, model.model_type.value_or(""))) {
    const config::SparseAttention& checkpoint = checkpoint_fields(model);
    decision.sparse = indexer_settings(model, user, "csa2");
    decision.sparse->window_size = checkpoint.window_size.value;
    decision.sparse->compress_ratios = checkpoint.compress_ratios;
  }
}

std::string sparse_geometry(const SparseSettings& settings) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view name, std::optional<std::int64_t> value) {
    if (value) parts.push_back(fmt::format("{} {}", name, *value));
  };
  add("index_n_heads", settings.index_n_heads);
  add("index_head_dim", settings.index_head_dim);
  add("index_topk", settings.index_topk);
  add("window_size", settings.window_size);
  if (!settings.compress_ratios.empty()) {
    parts.push_back(fmt::format("compress_ratios of {} layers", settings.compress_ratios.size()));
  }
  return join(parts, ", ");
}

std::string_view sparse_rule(std::string_view algorithm) {
  if (algorithm == "dsa") return "TRT-CFG-DSA";
  if (algorithm == "deepseek_v4") return "TRT-CFG-DEEPSEEK-V4";
  if (algorithm == "csa2") return "TRT-CFG-CSA2";
  return "TRT-CFG-SPARSE";
}

void append_sparse_step(const SparseSettings& settings, std::vector<Step>& steps) {
  append_step({.rule = sparse_rule(settings.algorithm),
               .stage = Stage::kRewrite,
               .verdict = Verdict::kApplied,
               .candidate = settings.algorithm,
               .reason = fmt::format(
                   "{}{}{}", settings.automatic ? "built without being asked" : "asked for",
                   sparse_geometry(settings).empty() ? "" : "; ", sparse_geometry(settings))},
              steps);
}

}  // namespace

ModelConfigDecision model_config_post_init(const config::ModelConfig& model,
                                           const ModelConfigOptions& options) {
  ModelConfigDecision decision;
  decision.is_encoder_decoder = model.is_encoder_decoder.value_or(false);
  // Without the field, and with null, the default (generative) stays.
  if (model.has_architectures && !model.architectures_null) {
    decision.is_generation =
        !options.mm_encoder_only && !contains(kNotGenerative, first_architecture(model));
  }
  decision.dtype = model.dtype.value_or("bfloat16");
  decision.dtype_from = model.dtype ? "config" : "default";
  decision.moe_max_num_tokens_is_default = !options.moe_max_num_tokens;
  decision.moe_max_num_tokens = options.moe_max_num_tokens.value_or(
      checked_mul(options.max_num_tokens, options.dp_size).value_or(0));
  decision.allreduce_strategy = to_upper(options.allreduce_strategy);
  if (!contains(kAllReduceStrategies, decision.allreduce_strategy)) {
    decision.allreduce_strategy = "AUTO";
    decision.allreduce_strategy_unknown = true;
  }
  resolve_sparse(model, options, decision);
  return decision;
}

void append_steps(const ModelConfigDecision& decision, std::vector<Step>& steps) {
  if (decision.error) append_error_step(*decision.error, Stage::kConstruction, "", steps);
  if (!decision.is_generation) {
    append_step({.rule = "TRT-CFG-NOT-GENERATIVE",
                 .stage = Stage::kRewrite,
                 .verdict = Verdict::kApplied,
                 .reason = "the model does not generate text: no decode phase"},
                steps);
  }
  if (decision.is_encoder_decoder) {
    append_step({.rule = "TRT-CFG-ENCODER-DECODER",
                 .stage = Stage::kRewrite,
                 .verdict = Verdict::kApplied,
                 .reason = "the config says is_encoder_decoder"},
                steps);
  }
  if (decision.dtype_from == "default") {
    append_step({.rule = "TRT-CFG-DTYPE",
                 .stage = Stage::kFinalValue,
                 .verdict = Verdict::kApplied,
                 .candidate = "dtype",
                 .reason = fmt::format("the config states no dtype: {}", decision.dtype)},
                steps);
  }
  if (decision.moe_max_num_tokens_is_default) {
    append_step({.rule = "TRT-CFG-MOE-TOKENS",
                 .stage = Stage::kFinalValue,
                 .verdict = Verdict::kApplied,
                 .candidate = "moe_max_num_tokens",
                 .reason = fmt::format("{} (max_num_tokens × data-parallel size)",
                                       decision.moe_max_num_tokens)},
                steps);
  }
  if (decision.allreduce_strategy_unknown) {
    append_step({.rule = "TRT-CFG-ALLREDUCE-UNKNOWN",
                 .stage = Stage::kFallback,
                 .verdict = Verdict::kApplied,
                 .severity = Severity::kWarn,
                 .candidate = "allreduce_strategy",
                 .reason = "unknown name: the engine uses AUTO and says nothing"},
                steps);
  }
  if (decision.sparse) append_sparse_step(*decision.sparse, steps);
}

MaxSeqLenDecision infer_max_seq_len(const MaxSeqLenRequest& request) {
  MaxSeqLenDecision decision;
  decision.from_default = !request.max_position_embeddings;
  decision.max_seq_len = request.max_position_embeddings.value_or(kDefaultMaxSeqLen);
  const bool scaled = !request.rope_type.empty() && request.rope_type != "default" &&
                      !contains(kUnscaledRopeTypes, request.rope_type);
  const double factor = request.rope_factor;
  if (!scaled || !std::isfinite(factor) || factor == 1.0) return decision;
  const double length = std::ceil(static_cast<double>(decision.max_seq_len) * factor);
  constexpr double kLargestExact = 9007199254740992.0;  // 2^53
  if (length < 0 || length > kLargestExact) return decision;
  decision.max_seq_len = static_cast<std::int64_t>(length);
  decision.scaled = true;
  return decision;
}

MaxSeqLenDecision infer_max_seq_len(const config::ModelConfig& model) {
  return infer_max_seq_len(
      MaxSeqLenRequest{.max_position_embeddings = model.max_position_embeddings.value,
                       .rope_type = model.rope.type.value_or(""),
                       .rope_factor = model.rope.factor.value_or(1.0)});
}

void append_steps(const MaxSeqLenDecision& decision, std::vector<Step>& steps) {
  append_step({.rule = "TRT-CFG-MAX-SEQ-LEN",
               .stage = Stage::kFinalValue,
               .verdict = Verdict::kApplied,
               .candidate = "max_seq_len",
               .reason = fmt::format("{}{}{}", decision.max_seq_len,
                                     decision.from_default ? " (no length in the config)" : "",
                                     decision.scaled ? " (times the rope factor)" : "")},
              steps);
}

}  // namespace kernelpath::engines::trtllm
