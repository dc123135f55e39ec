// The layers of the model that drafts tokens. Which backend they are asked for depends on the
// method and on the model runner. Source: vllm/v1/spec_decode/llm_base_proposer.py (first runner),
// v1/worker/gpu/spec_decode/*/ (second runner).

#include "base/text.h"
#include "engines/vllm/class_layers.h"
#include "engines/vllm/draft_config.h"
#include "engines/vllm/layer_plan.h"
#include "engines/vllm/speculation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kLayers = "model.layers.";
constexpr std::int64_t kDsparkStages = 3;  // of DeepSeek V4, where the file says none
constexpr std::string_view kDeepseekV4 = "vllm.models.deepseek_v4";

class DraftBuilder {
 public:
  DraftBuilder(RunState& state, DraftModel& draft)
      : state_(state),
        draft_(draft),
        method_(state.run().speculative_method),
        later_(state.profile().at_least(0, 33)),
        v2_(state.run().v2_runner),
        class_(class_that_builds()) {}

  bool build() {
    if (is_one_of(method_, {"medusa", "mlp_speculator"})) return true;  // no attention at all
    shape_layers();
    if (!check_windows()) return false;
    const RunQuestion question{.profile = state_.question.profile,
                               .registry = state_.question.registry,
                               .machine = state_.question.machine,
                               .model = draft_.model,
                               .flags = state_.flags(),
                               .registered_models = state_.question.registered_models,
                               .registered_backends = state_.question.registered_backends};
    RunResult out;
    out.model_class = class_;
    out.view = view_of_draft();
    out.run = state_.run();
    out.mla_prefill = state_.out.mla_prefill;
    RunState inner{.question = question, .out = out, .settings = state_.settings};
    configure(inner);
    const bool built = plan(inner);
    merge(out);
    return built;
  }

 private:
  // Its module may build the target's own decoder layers and nothing by itself.
  [[nodiscard]] ModelClass class_that_builds() const {
    const ClassLayers own =
        layers_of_class(state_.question.registry, draft_.model_class, draft_.model);
    const bool builds = own.attention || own.latent || !own.unknown.empty();
    return builds || method_ != "mtp" ? draft_.model_class : state_.out.model_class;
  }

  // Whether the draft's configuration takes the target's place when its layers are built.
  [[nodiscard]] bool has_own_config() const {
    if (method_ == "draft_model") return true;
    const std::string type = draft_.model.model_type.value_or("");
    return type == (v2_ ? "gemma4_mtp" : "step3p5_mtp");
  }

  [[nodiscard]] ModelView view_of_draft() const {
    ModelView view = state_.view();
    if (method_ == "mtp" && draft_.shares_checkpoint) return view;
    const bool image_prefix = view.mm_prefix;
    view = view_model(draft_.model, draft_.model_class, state_.flags(), state_.profile());
    if (!has_own_config()) view.mm_prefix = image_prefix;
    if (method_ == "dflash" && !v2_) view.mm_prefix = false;
    return view;
  }

  // The backend that the draft's layers are asked for, with the reason where it is not the stated.
  std::optional<std::string> backend() {
    const std::optional<std::string>& target = state_.run().attention_backend;
    std::optional<std::string> stated = state_.flags().speculative.backend;
    if (stated && equal_ignoring_case(*stated, "auto")) stated.reset();
    if (stated) stated = to_upper(*stated);
    if (method_ == "dspark" && later_ && draft_.model_class.module.starts_with(kDeepseekV4)) {
      return stated ? stated : target;
    }
    if (is_one_of(method_, {"dflash", "dspark"})) return stated;
    const bool gemma = draft_.shares_cache;
    if (!v2_) return gemma && target ? target : stated;
    const bool unread = !later_ || gemma || method_ == "draft_model";
    if (unread && stated && stated != target) {
      state_.note("VLLM-SPEC-BACKEND-UNREAD", "speculative_config.attention_backend",
                  fmt::format("{} is read by nothing: the second model runner builds the draft's "
                              "layers with the target's",
                              *stated),
                  Severity::kWarn);
    }
    return stated && !unread ? stated : target;
  }

  void configure(RunState& inner) {
    RunConfig& run = inner.run();
    run.attention_backend = backend();
    const auto& dtype = state_.flags().speculative.kv_cache_dtype;
    if (later_ && dtype) run.cache_dtype = *dtype;
    if (method_ == "dflash") run.use_non_causal = dflash_.non_causal;
    if (method_ == "dspark") run.use_non_causal = !later_ || dflash_.non_causal;
    inner.settings.run_kv_dtype = run.cache_dtype;
    if (has_own_config()) inner.settings.model = facts_of(draft_.model, inner.view());
  }

  void shape_layers() {
    if (!is_one_of(method_, {"dflash", "dspark"})) return;
    dflash_ = dflash_config(draft_.model, state_.profile());
    const bool laguna = draft_.model_class.class_name == "DFlashLagunaForCausalLM";
    for (config::Layer& layer : draft_.model.layers) {
      const bool slides = dflash_.every_layer.value_or(layer.kind == config::LayerKind::kSliding);
      layer.kind = slides && !laguna ? config::LayerKind::kSliding : config::LayerKind::kFull;
      layer.window = slides && !laguna ? dflash_.window : std::nullopt;
    }
  }

  bool check_windows() {
    if (method_ != "dflash") return true;
    if (dflash_.mixed && !(later_ && v2_)) {
      return state_.raise(
          {.stage = "model",
           .type = "NotImplementedError",
           .text = "DFlash does not yet support mixed sliding/full attention via layer_types; see "
                   "https://github.com/vllm-project/vllm/issues/40898.",
           .rule = "VLLM-SPEC-DFLASH-MIXED"});
    }
    if (!dflash_.window_missing) return true;
    return state_.raise({.stage = "model",
                         .type = "ValueError",
                         .text = "DFlash sliding attention requires a window size configured in "
                                 "dflash_config.swa_window_size or the top-level sliding_window.",
                         .rule = "VLLM-SPEC-DFLASH-WINDOW"});
  }

  // Layers of the target come first in the draft's numbering.
  [[nodiscard]] std::int64_t first_layer() const {
    if (method_ == "draft_model") return 0;
    const bool twice = draft_.model.model_type.value_or("") == "longcat_flash_mtp";
    return state_.view().num_layers * (twice ? 2 : 1);
  }

  bool plan(RunState& inner) {
    if (class_.module.starts_with(kDeepseekV4)) {
      drop_ratios();
      if (!plan_deepseek_v4(inner)) return false;
      for (BuiltLayer& layer : inner.out.layers) renumber(layer);
      return true;
    }
    LayerPlan plan = plan_layers(inner);
    for (const std::string& part : plan.unknown) {
      state_.out.unknown.push_back("the draft's " + part);
    }
    for (PlannedLayer& planned : plan.layers) {
      renumber(planned.layer);
      planned.layer.shares_cache = draft_.shares_cache;
    }
    if (plan.error) return inner.raise(std::move(*plan.error));
    return build_layers(inner, plan);
  }

  // DeepSeek V4's list of ratios is of the decoder's own layers; those behind them keep each token.
  void drop_ratios() {
    if (draft_.model.sparse) draft_.model.sparse->compress_ratios.clear();
    const std::int64_t stages = text_integer(draft_.model, "n_mtp_layers").value_or(0);
    draft_.model.num_hidden_layers.value =
        method_ != "dspark" ? static_cast<std::int64_t>(draft_.model.layers.size())
        : stages > 0        ? stages
                            : kDsparkStages;
  }

  void renumber(BuiltLayer& layer) const {
    layer.draft = true;
    const std::int64_t number = layer.index + first_layer();
    const std::size_t begin = layer.name.find(kLayers);
    if (begin != std::string::npos) {
      const std::size_t digits = begin + kLayers.size();
      const std::size_t end = layer.name.find('.', digits);
      layer.name.replace(digits, end - digits, std::to_string(number));
    }
    if (method_ == "draft_model") layer.name.insert(0, "draft_model.");
    layer.index = number;
  }

  void merge(RunResult& out) {
    RunResult& whole = state_.out;
    const std::size_t before = whole.layers.size();
    note_difference(out);
    std::ranges::move(out.layers, std::back_inserter(whole.layers));
    for (LayerSelection& asked : out.selections) {
      for (std::size_t& layer : asked.layers) layer += before;
      asked.draft = true;
      whole.selections.push_back(std::move(asked));
    }
    if (!whole.mla_prefill) whole.mla_prefill = std::move(out.mla_prefill);
    std::ranges::move(out.events, std::back_inserter(whole.events));
    std::ranges::move(out.errors, std::back_inserter(whole.errors));
  }

  // The user's backend binds the target; the draft's layers may come to another one.
  void note_difference(const RunResult& out) {
    const auto attends = [](const BuiltLayer& layer) {
      return layer.role != LayerRole::kState && layer.role != LayerRole::kIndexer &&
             layer.role != LayerRole::kWindow && !layer.reported_backend.empty();
    };
    const auto of_draft = std::ranges::find_if(out.layers, attends);
    if (of_draft == out.layers.end()) return;
    const std::string& own = of_draft->reported_backend;
    const auto& targets = state_.out.layers;
    const bool shared = std::ranges::any_of(targets, [&](const BuiltLayer& layer) {
      return attends(layer) && layer.reported_backend == own;
    });
    if (shared) return;
    const auto of_target = std::ranges::find_if(targets, attends);
    if (of_target == targets.end()) return;
    const bool unbound =
        state_.run().attention_backend && out.run.attention_backend == std::nullopt;
    state_.note(
        "VLLM-SPEC-BACKEND-DIFFERS", own,
        fmt::format("the draft's layers run on {}, the target's on {}{}", own,
                    of_target->reported_backend,
                    unbound ? ": the backend that was asked for binds the target only" : ""),
        Severity::kWarn);
  }

  RunState& state_;
  DraftModel& draft_;
  const std::string& method_;
  bool later_;
  bool v2_;
  DflashConfig dflash_;
  ModelClass class_;
};

}  // namespace

bool build_draft(RunState& state) {
  return !state.out.draft || DraftBuilder(state, *state.out.draft).build();
}

// The first runner drafts with one set of attention metadata.
bool check_draft_groups(RunState& state) {
  const RunResult& out = state.out;
  if (state.run().v2_runner || !out.draft || !out.cache || out.draft->shares_cache) return true;
  if (out.draft->model.model_type.value_or("") == "step3p5_mtp") return true;
  std::optional<std::size_t> group;
  for (std::size_t i = 0; i < out.layers.size(); ++i) {
    if (!out.layers[i].draft || !out.cache->layers[i].group) continue;
    if (group && *group != *out.cache->layers[i].group) {
      return state.raise({.stage = "metadata builder",
                          .type = "AssertionError",
                          .text = "All drafting layers should belong to the same kv cache group",
                          .rule = "VLLM-SPEC-GROUPS"});
    }
    group = out.cache->layers[i].group;
  }
  return true;
}

}  // namespace kernelpath::engines::vllm
