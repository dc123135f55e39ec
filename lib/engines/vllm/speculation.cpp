// From speculative_config and the draft's checkpoint to the method, its tokens and its class.
// Source: vllm/config/speculative.py.

#include "engines/vllm/speculation.h"

#include "base/text.h"
#include "engines/vllm/draft_config.h"
#include "engines/vllm/run_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kValidation = "ValidationError";
constexpr std::string_view kDraftModel = "draft_model";

// "pkg.MyProposer": a class to import instead of a model to load.
bool is_import_path(std::string_view model, bool later) {
  const bool address =
      model.starts_with("http://") || model.starts_with("https://") || model.starts_with("file://");
  if (address || model.find('/') != std::string_view::npos) return false;
  if (model.find('.') == std::string_view::npos) return false;
  if (!later) return true;
  const auto is_identifier = [](const std::string& part) {
    const auto is_letter = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    return !part.empty() && std::isdigit(static_cast<unsigned char>(part.front())) == 0 &&
           std::ranges::all_of(part, is_letter);
  };
  return std::ranges::all_of(split(model, '.'), is_identifier);
}

bool drafts_itself(std::string_view method) { return method == "mtp" || method == "dspark"; }

std::int64_t vocabulary(const config::ModelConfig& model) { return model.vocab_size.value_or(0); }

class Reader {
 public:
  explicit Reader(RunState& state)
      : state_(state), flags_(state.flags()), later_(state.profile().at_least(0, 33)) {}

  bool read() {
    if (flags_.speculative_method.empty() && !flags_.speculative.model &&
        flags_.speculative_tokens == 0) {
      return true;
    }
    infer_method();
    const bool read = has_no_model(method_) ? read_without_model() : read_model();
    if (!read || !check_tokens()) return false;
    state_.run().speculative_method = method_;
    state_.run().speculative_tokens = tokens_;
    state_.run().parallel_drafting =
        flags_.speculative.parallel_drafting || is_one_of(method_, {"dflash", "dspark"});
    return settle_proposer(state_);
  }

 private:
  bool raise(std::string_view type, std::string_view rule, std::string text) {
    return state_.raise(config_error(type, rule, std::move(text)));
  }

  void infer_method() {
    const std::string model = flags_.speculative.model.value_or("");
    method_ = flags_.speculative_method;
    tokens_ = flags_.speculative_tokens;
    const bool path = !model.empty() && is_import_path(model, later_);
    if (path && (!later_ || method_.empty())) {
      method_ = "custom_class";
    } else if (method_.empty()) {
      method_ = model == "ngram" || model == "[ngram]" ? "ngram" : kDraftModel;
    }
    if (method_.ends_with("_mtp")) {
      state_.note("VLLM-SPEC-RENAMED", "speculative_config.method",
                  fmt::format("{} is deprecated: mtp", method_), Severity::kWarn);
      method_ = "mtp";
    }
  }

  bool read_without_model() {
    const auto& flags = flags_.speculative;
    if (method_.starts_with("ngram") && flags.lookup_min && flags.lookup_max &&
        *flags.lookup_min > *flags.lookup_max) {
      return raise(kValidation, "VLLM-SPEC-NGRAM-RANGE",
                   fmt::format("prompt_lookup_min={} must be <= prompt_lookup_max={}",
                               *flags.lookup_min, *flags.lookup_max));
    }
    if (method_ == "custom_class" && !flags.model) {
      return raise(kValidation, "VLLM-SPEC-MODEL-MISSING",
                   "method='custom_class' requires 'model' to contain the custom proposer module "
                   "path (e.g., 'my_module.MyProposer').");
    }
    if (method_ == "suffix") {
      if (!state_.question.machine.packages.arctic_inference) {
        return raise("ImportError", "VLLM-SPEC-SUFFIX-PACKAGE",
                     "Arctic Inference is required for suffix decoding. Install via `pip install "
                     "arctic-inference==0.1.1`.");
      }
      if (tokens_ == 0) tokens_ = flags.tree_depth;
    }
    assume_tokens();
    return true;
  }

  // A common option stands for a whole configuration: it brings the number that the engine asks
  // for.
  void assume_tokens(std::int64_t number = 1) {
    if (tokens_ > 0 || !flags_.speculative.assumes_tokens) return;
    tokens_ = number;
    state_.note("VLLM-SPEC-TOKENS", "speculative_config.num_speculative_tokens",
                fmt::format("not given, which the engine refuses: counted as {}", tokens_),
                Severity::kWarn);
  }

  [[nodiscard]] bool tokens_known() const {
    return tokens_ > 0 || flags_.speculative.assumes_tokens;
  }

  bool read_model() {
    if (!flags_.speculative.model) {
      if (!tokens_known()) return check_tokens();
      if (!drafts_itself(method_)) {
        return raise(kValidation, "VLLM-SPEC-MODEL-MISSING",
                     "num_speculative_tokens was provided but without speculative model.");
      }
      return read_draft(state_.question.model, state_.question.model.name);
    }
    const std::string& name = *flags_.speculative.model;
    if (state_.question.draft != nullptr) return read_draft(*state_.question.draft, name);
    detect_by_name(name);
    assume_tokens();
    state_.out.unknown.push_back(
        fmt::format("the draft {} is not here: its layers are left out of this answer", name));
    return true;
  }

  // What a draft's name says of a method that is not stated.
  bool detect_by_name(const std::string& name) {
    if (is_one_of(method_, {"eagle", "eagle3", "dflash", "dspark"})) return true;
    const std::string lower = to_lower(name);
    constexpr auto kParts = std::to_array<std::pair<std::string_view, std::string_view>>(
        {{"eagle-", "eagle"}, {"eagle3", "eagle3"}, {"dflash", "dflash"}, {"dspark", "dspark"}});
    const auto* const row = std::ranges::find_if(
        kParts, [&](const auto& part) { return lower.find(part.first) != std::string::npos; });
    if (row == kParts.end()) return false;
    method_ = row->second;
    return true;
  }

  bool detect_method(const std::string& name, const DraftConfig& draft) {
    if (detect_by_name(name)) return true;
    const auto has = [&](std::string_view architecture) {
      return std::ranges::find(draft.architectures, architecture) != draft.architectures.end();
    };
    const bool has_dspark = has("Qwen3DSparkModel") ||
                            (later_ && (has("Qwen3OmniDSparkModel") ||
                                        has("MuseSparkDSparkModel") || has("Gemma4DSparkModel") ||
                                        (has("DSparkDraftModel") && draft.model_type == "qwen3")));
    if (later_ && has("MuseGlimmerAssistantModel")) {
      method_ = "dflash";
    } else if (has_dspark) {
      method_ = "dspark";
    } else if (!later_ && is_one_of(draft.model_type, {"medusa", "mlp_speculator"})) {
      method_ = draft.model_type;
    } else if (draft.is_mtp) {
      method_ = "mtp";
    } else if (method_ != kDraftModel) {
      return raise("NotImplementedError", "VLLM-SPEC-METHOD",
                   fmt::format("Unsupported speculative method: '{}'", method_));
    }
    return true;
  }

  bool read_draft(const config::ModelConfig& checkpoint, const std::string& name) {
    DraftConfig draft = read_as_draft(checkpoint, state_.profile());
    if (method_ == "medusa") draft.model_type = "medusa";
    if (draft.model_type == "inkling_mtp" && draft.predicts.value_or(0) < 1) {
      return raise(kValidation, "VLLM-SPEC-NO-LAYERS",
                   "The Inkling checkpoint does not contain MTP weights");
    }
    if (!detect_method(name, draft)) return false;
    if (is_one_of(method_, {"eagle", "eagle3", "dflash"})) {
      prefix_architectures(method_, draft.architectures);
    }
    if (method_ == "dspark") rename_dspark(draft);
    if (!count_tokens(draft) || !find_class(checkpoint, draft)) return false;
    note_reuse(draft);
    return check_draft(checkpoint);
  }

  // DeepSeek V4's drafts of this kind are in the target's checkpoint.
  void rename_dspark(DraftConfig& draft) const {
    const auto is_own = [&](const std::string& name) {
      return name == "Qwen3DSparkModel" ||
             (later_ && is_one_of(name, {"Qwen3OmniDSparkModel", "MuseSparkDSparkModel",
                                         "Gemma4DSparkModel", "K3DSparkModel"}));
    };
    if (std::ranges::any_of(draft.architectures, is_own)) return;
    const std::string target = state_.question.model.model_type.value_or("");
    const bool qwen = later_ && draft.model_type == "qwen3";
    const bool newest = later_ && target == "deepseek_v41";
    draft.architectures = {qwen     ? "Qwen3DSparkModel"
                           : newest ? "DSparkV41DraftModel"
                                    : "DSparkDraftModel"};
    draft.predicts.reset();
  }

  bool count_tokens(const DraftConfig& draft) {
    const std::int64_t predicts =
        method_ == "dspark" && later_ ? 0 : draft.predicts.value_or(0);  // 0: nothing
    // The engine takes the number of a draft that is named only.
    if (tokens_ == 0 && flags_.speculative.model) tokens_ = predicts;
    assume_tokens(std::max<std::int64_t>(predicts, 1));
    if (predicts > 0 && tokens_ > predicts && tokens_ % predicts != 0) {
      return raise(kValidation, "VLLM-SPEC-DIVISIBLE",
                   fmt::format("num_speculative_tokens:{} must be divisible by n_predict={}",
                               tokens_, predicts));
    }
    if (tokens_ > 0) return true;
    return raise(kValidation, "VLLM-SPEC-TOKENS-MISSING",
                 "A speculative model was provided, but `num_speculative_tokens` was not provided");
  }

  bool find_class(const config::ModelConfig& checkpoint, const DraftConfig& draft) {
    DraftModel out{.model = checkpoint,
                   .model_class = resolve_model_class(
                       state_.question.registry,
                       {.architectures = draft.architectures,
                        .runner = "draft",
                        .convert = "none",
                        .num_experts = checkpoint.moe ? checkpoint.moe->num_experts.value_or(0) : 0,
                        .registered = state_.question.registered_models}),
                   .shares_checkpoint = !flags_.speculative.model.has_value(),
                   .shares_cache = draft.model_type == "gemma4_mtp"};
    if (out.model_class.error) {
      const EngineError& error = *out.model_class.error;
      return raise(error.type, "VLLM-SPEC-CLASS", fmt::format("the draft: {}", error.message));
    }
    if (method_ == "mtp") out.model.layers = mtp_layers(checkpoint, draft, tokens_);
    out.model.model_type.value = draft.model_type;
    state_.note(
        "VLLM-SPEC-CLASS-FOUND", out.model_class.class_name,
        fmt::format("{} drafts {} tokens with {}", method_, tokens_, out.model_class.class_name));
    state_.out.draft = std::move(out);
    return true;
  }

  void note_reuse(const DraftConfig& draft) {
    const bool own = draft.model_type == "step3p5_mtp" ||
                     (later_ && is_one_of(draft.model_type, {"step5_mtp", "inkling_mtp"}));
    if (method_ != "mtp" || tokens_ <= 1 || own) return;
    state_.note("VLLM-SPEC-MTP-REUSED", "speculative_config.num_speculative_tokens",
                "more than one token runs the same layers several times, which may lower the "
                "acceptance rate",
                Severity::kWarn);
  }

  bool check_draft(const config::ModelConfig& draft) {
    const std::int64_t tp = state_.run().tp;
    const std::int64_t own = flags_.speculative.tp.value_or(tp);
    if (own != 1 && own != tp) {
      return raise(kValidation, "VLLM-SPEC-DRAFT-TP",
                   fmt::format("speculative_draft_tensor_parallel_size={} cannot be other value "
                               "than 1 or target model tensor_parallel_size",
                               own));
    }
    if (own != tp && method_ != kDraftModel) {
      state_.note("VLLM-SPEC-DRAFT-TP-UNREAD", "speculative_config.draft_tensor_parallel_size",
                  fmt::format("the draft's layers are spread over {} ranks, like the target's", tp),
                  Severity::kWarn);
    }
    const std::int64_t heads = draft.num_attention_heads.value_or(0);
    if (heads % own != 0) {
      return raise(kValidation, "VLLM-SPEC-DRAFT-HEADS",
                   fmt::format("Total number of attention heads ({}) must be divisible by tensor "
                               "parallel size ({}).",
                               heads, own));
    }
    return check_stages() && check_vocabulary(draft) && check_length(draft);
  }

  // Until 0.32 the draft is asked for the target's pipeline stages.
  bool check_stages() {
    const ModelInfo& info = state_.out.draft->model_class.info;
    if (later_ || flags_.pp <= 1 || info.supports_pp) return true;
    return raise("NotImplementedError", "VLLM-SPEC-PIPELINE",
                 "Pipeline parallelism is not supported for this model. Supported models implement "
                 "the `SupportsPP` interface.");
  }

  bool check_vocabulary(const config::ModelConfig& draft) {
    const auto& flags = flags_.speculative;
    if (flags.other_vocabulary && method_ != kDraftModel) {
      return raise(kValidation, "VLLM-SPEC-VOCAB-METHOD",
                   "use_heterogeneous_vocab only works with method='draft_model'");
    }
    if (flags.other_vocabulary && flags.samples) {
      return raise(kValidation, "VLLM-SPEC-VOCAB-SAMPLING",
                   "use_heterogeneous_vocab currently only supports greedy draft sampling. Set "
                   "draft_sample_method='greedy' (the default) or omit it.");
    }
    const std::int64_t target = vocabulary(state_.question.model);
    if (flags.other_vocabulary || method_ != kDraftModel || target == vocabulary(draft)) {
      return true;
    }
    return raise(kValidation, "VLLM-SPEC-VOCAB",
                 fmt::format("Target and draft model should have the same vocabulary size. Target "
                             "model vocab_size={}. Draft model vocab_size={}. Using models with "
                             "different tokenizers can cause out-of-bounds errors during "
                             "speculative decoding.",
                             target, vocabulary(draft)));
  }

  bool check_length(const config::ModelConfig& draft) {
    const std::optional<std::int64_t>& asked = flags_.speculative.max_model_len;
    const std::int64_t target = state_.run().max_model_len;
    const std::int64_t own = derived_length(draft, state_.profile(), target);
    for (const auto& [limit, name] : {std::pair{own, "draft"}, std::pair{target, "target"}}) {
      if (!asked || *asked <= limit) continue;
      return raise(kValidation, "VLLM-SPEC-LENGTH",
                   fmt::format("speculative_max_model_len={} cannot be larger than "
                               "{}_max_model_len={}",
                               *asked, name, limit));
    }
    state_.out.draft->max_model_len = std::min(asked.value_or(own), target);
    return true;
  }

  bool check_tokens() {
    if (tokens_ > 0) return true;
    return raise(kValidation, "VLLM-SPEC-TOKENS-MISSING",
                 "num_speculative_tokens must be provided with speculative model unless the draft "
                 "model config contains an n_predict parameter.");
  }

  RunState& state_;
  const RunFlags& flags_;
  bool later_;
  std::string method_;
  std::int64_t tokens_ = 0;
};

}  // namespace

bool resolve_speculation(RunState& state) { return Reader(state).read(); }

}  // namespace kernelpath::engines::vllm
