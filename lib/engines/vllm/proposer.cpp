// Which of the two model runners drafts, and what each refuses.
// Source: vllm/config/vllm.py, v1/spec_decode/{llm_base_proposer,draft_model}.py.

#include "engines/vllm/speculation.h"

#include <fmt/format.h>

#include <utility>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kValidation = "ValidationError";
constexpr std::string_view kDraftModel = "draft_model";

class Proposer {
 public:
  explicit Proposer(RunState& state)
      : state_(state), flags_(state.flags()), later_(state.profile().at_least(0, 33)) {}

  bool settle() {
    choose_runner();
    return check_proposer() && check_schedule();
  }

 private:
  bool raise(std::string_view type, std::string_view rule, std::string text) {
    return state_.raise(config_error(type, rule, std::move(text)));
  }

  [[nodiscard]] const std::string& method() const { return state_.run().speculative_method; }
  [[nodiscard]] std::int64_t tokens() const { return state_.run().speculative_tokens; }
  // 0: unknown.
  [[nodiscard]] std::int64_t draft_length() const {
    return state_.out.draft ? state_.out.draft->max_model_len : 0;
  }

  // --- model runner ------------------------------------------------------------------------------

  // Dense models that generate, and a few with experts, take the second runner by themselves.
  [[nodiscard]] bool prefers_v2() const {
    const ModelView& view = state_.view();
    const ModelClass& found = state_.out.model_class;
    if (found.runner != "generate" || view.hybrid || view.attention_free) return false;
    const auto& moe = state_.question.model.moe;
    const bool experts = moe && moe->num_experts.value_or(0) > 0;
    return !experts ||
           is_one_of(found.architecture,
                     {"DeepseekV2ForCausalLM", "Qwen2MoeForCausalLM", "GraniteMoeForCausalLM"});
  }

  [[nodiscard]] bool v2_supports() const {
    const bool in_parallel =
        flags_.speculative.parallel_drafting && !is_one_of(method(), {"dflash", "dspark"});
    if (in_parallel) return false;
    if (later_) {
      return !is_one_of(method(), {"suffix", "custom_class"}) &&
             !flags_.speculative.other_vocabulary;
    }
    return is_one_of(method(), {"eagle", "eagle3", "mtp", "dflash", "dspark"}) && flags_.pcp <= 1 &&
           !(method() == "eagle3" && flags_.pp > 1);
  }

  void choose_runner() {
    bool& v2 = state_.run().v2_runner;
    const bool triton = state_.question.machine.platform != hardware::Platform::kCpu;
    if (flags_.v2_runner) {
      v2 = *flags_.v2_runner;
    } else if (later_) {
      v2 = triton && v2_supports();
    } else if (method() == "dspark" || state_.view().diffusion) {
      v2 = true;
    } else {
      v2 = prefers_v2() && triton && v2_supports();
    }
    state_.note("VLLM-SPEC-RUNNER", "VLLM_USE_V2_MODEL_RUNNER",
                fmt::format("the {} model runner loads the draft", v2 ? "second" : "first"));
    shorten_sequences(v2);
  }

  // Since 0.33 the second runner cannot leave a draft out of longer sequences.
  void shorten_sequences(bool v2) {
    std::int64_t& target = state_.run().max_model_len;
    const bool limits = later_ && v2 && method() == kDraftModel && draft_length() > 0;
    if (!limits || draft_length() >= target) return;
    state_.note("VLLM-SPEC-LENGTH-LIMIT", "max_model_len",
                fmt::format("{} -> {}: the draft's length, which the second model runner cannot "
                            "exceed",
                            target, draft_length()),
                Severity::kWarn);
    target = draft_length();
  }

  // --- proposer ----------------------------------------------------------------------------------

  bool check_proposer() {
    if (state_.run().v2_runner) return check_second_runner();
    const bool model = method() == kDraftModel;
    const bool slots = model || state_.run().parallel_drafting;
    if (slots && flags_.speculative.unpadded) {
      return raise("NotImplementedError", "VLLM-SPEC-UNPADDED",
                   "Speculative Decoding with draft models or parallel drafting only supports "
                   "padded drafter batch. Please unset disable_padded_drafter_batch in the "
                   "speculative_config.");
    }
    if (slots && state_.out.draft && !state_.out.draft->model.rope.mrope_section.empty()) {
      return raise("NotImplementedError", "VLLM-SPEC-MROPE",
                   "Speculative Decoding with draft models or parallel drafting does not support "
                   "M-RoPE yet");
    }
    const std::int64_t own = flags_.speculative.tp.value_or(state_.run().tp);
    if (model && own != state_.run().tp) {
      return raise("ValueError", "VLLM-SPEC-DRAFT-MODEL-TP",
                   fmt::format("Currently, 'draft_tensor_parallel_size' and "
                               "'tensor_parallel_size' must be the same. Got {} and {}. Please "
                               "pass 'draft_tensor_parallel_size' in the speculative_config.",
                               own, state_.run().tp));
    }
    return check_async();
  }

  bool check_second_runner() {
    const bool none = later_ ? is_one_of(method(), {"suffix", "custom_class"})
                             : !is_one_of(method(), {"eagle", "eagle3", "mtp", "dflash", "dspark"});
    if (none) {
      return raise(
          "ValueError", "VLLM-SPEC-RUNNER-REFUSED",
          fmt::format("Model Runner V2 does not yet support: speculative method '{}'", method()));
    }
    if (flags_.speculative.unpadded && flags_.async_scheduling != true) {
      state_.note("VLLM-SPEC-UNPADDED-UNREAD", "speculative_config.disable_padded_drafter_batch",
                  "the second model runner always pads a draft's batch", Severity::kWarn);
    }
    return check_async();
  }

  bool check_async() {
    const bool able = method() == kDraftModel || method() == "ngram_gpu" ||
                      is_one_of(method(), {"eagle", "eagle3", "mtp", "dflash", "dspark",
                                           "extract_hidden_states"});
    if (flags_.async_scheduling != true || (able && !flags_.speculative.unpadded)) return true;
    if (later_) {
      if (state_.run().v2_runner) return true;
      return raise(kValidation, "VLLM-SPEC-ASYNC",
                   fmt::format("Async scheduling is not supported by the V1 model runner with {}.",
                               able ? "disable_padded_drafter_batch=True"
                                    : method() + "-based speculative decoding"));
    }
    return raise(kValidation, "VLLM-SPEC-ASYNC",
                 able ? "Async scheduling is not compatible with "
                        "disable_padded_drafter_batch=True."
                      : "Currently, async scheduling is only supported with EAGLE/MTP/Draft "
                        "Model/NGram GPU/DSpark kind of speculative decoding");
  }

  // Drafting takes slots of a step's tokens.
  bool check_schedule() {
    const RunConfig& run = state_.run();
    if (later_) {
      const std::int64_t ahead = method() == "dflash"     ? tokens() + 1
                                 : has_no_model(method()) ? 0
                                                          : tokens();
      if (run.max_num_batched_tokens > ahead) return true;
      return raise(kValidation, "VLLM-SPEC-SLOTS",
                   fmt::format("VllmConfig does not have enough slots to schedule a token and "
                               "support the speculative decoding settings. Got "
                               "max_num_batched_tokens={} and num_lookahead_tokens={}.",
                               run.max_num_batched_tokens, ahead));
    }
    const std::int64_t slots =
        (run.parallel_drafting ? tokens() - 1 : 0) + (method() == kDraftModel ? 1 : 0);
    const std::int64_t left = run.max_num_batched_tokens - slots * run.max_num_seqs;
    if (left > 0) return true;
    return raise(kValidation, "VLLM-SPEC-SLOTS",
                 fmt::format("max_num_scheduled_tokens is set to {} based on the speculative "
                             "decoding settings, which does not allow any tokens to be scheduled. "
                             "Increase max_num_batched_tokens to accommodate the additional draft "
                             "token slots, or decrease num_speculative_tokens or max_num_seqs.",
                             left));
  }

  RunState& state_;
  const RunFlags& flags_;
  bool later_;
};

}  // namespace

bool settle_proposer(RunState& state) { return Proposer(state).settle(); }

}  // namespace kernelpath::engines::vllm
