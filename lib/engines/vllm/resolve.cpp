#include "engines/vllm/resolve.h"

#include "base/text.h"
#include "engines/vllm/arguments.h"
#include "engines/vllm/final_options.h"
#include "engines/vllm/layer_groups.h"
#include "engines/vllm/machine.h"
#include "engines/vllm/memory_resolution.h"
#include "engines/vllm/rules.h"
#include "engines/vllm/rules_select.h"
#include "engines/vllm/run.h"
#include "engines/vllm/run_request.h"
#include "engines/vllm/selection_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

// Decisions of the time when the model is built and later; the selector runs before them.
bool is_after_selection(const RunEvent& event) {
  constexpr auto kBefore = std::to_array<std::string_view>(
      {"VLLM-KV-DTYPE", "VLLM-GRAPH-EAGER", "VLLM-GRAPH-DYNAMIC-SPECULATION", "VLLM-GRAPH-POOLING",
       "VLLM-GRAPH-CONNECTOR", "VLLM-GRAPH-NOT-COMPILED", "VLLM-GRAPH-ENCODER-DECODER"});
  constexpr auto kAfter = std::to_array<std::string_view>(
      {"VLLM-KV-", "VLLM-GRAPH-", "VLLM-DCP-", "VLLM-LAYER-", "VLLM-BUILDER-", "VLLM-PCP-"});
  const auto begins = [&](std::string_view prefix) { return event.rule.starts_with(prefix); };
  if (std::ranges::any_of(kBefore, begins)) return false;
  return event.severity == Severity::kError || std::ranges::any_of(kAfter, begins);
}

// Whose layers a question to the selector was about, where there were several questions.
std::string subject_of(const RunResult& run, const LayerSelection& asked) {
  if (run.selections.size() < 2) return {};
  if (asked.layers.empty()) return asked.draft ? "the draft's layers" : "";
  const BuiltLayer& layer = run.layers[asked.layers.front()];
  std::string text = asked.request.config.attention_type == "decoder"
                         ? std::string("layers")
                         : asked.request.config.attention_type + " layers";
  if (asked.draft) text.insert(0, "the draft's ");
  if (layer.window) text = fmt::format("{} with a window of {}", text, *layer.window);
  if (layer.chunk) text = fmt::format("{} in chunks of {}", text, *layer.chunk);
  return fmt::format("{} such as {}", text, layer.name.empty() ? "0" : layer.name);
}

Status status_of(const RunResult& run) {
  if (run.errors.empty()) return Status::kOk;
  return run.model_class.error ? Status::kUnsupported : Status::kError;
}

// The walk over one request. Each step returns false where the engine stops.
class Walk {
 public:
  Walk(const Request& request, const ReleaseTables& tables)
      : request_(request),
        tables_(tables),
        steps_(rules_of(tables.profile.version), tables.profile, out_.steps) {
    out_.engine = "vllm";
    out_.version = tables.profile.version;
  }

  Resolution run() {
    if (read_arguments() && find_machine()) follow_run();
    for (const Step& step : out_.steps) {
      // What does not fit is no refusal of the engine yet; nobody should have to ask --why for it.
      const bool too_large = step.severity == Severity::kError && step.stage == Stage::kMemory;
      if (step.severity == Severity::kWarn || too_large) out_.warnings.push_back(step.reason);
    }
    return std::move(out_);
  }

 private:
  bool stop(Status status, EngineError error) {
    out_.status = status;
    out_.error = std::move(error);
    return false;
  }

  bool read_arguments() {
    auto arguments = Arguments::read(tables_.settings, request_.deployment);
    if (!arguments) return refuse_arguments(arguments.error());
    arguments_ = std::move(*arguments);
    const Arguments::Value* backend = arguments_->backend();
    out_.requested_backend = backend != nullptr ? to_upper(backend->text) : "auto";
    out_.requested_by = backend != nullptr ? backend->set_by : "engine default";
    note_options();
    return true;
  }

  bool refuse_arguments(const Error& error) {
    steps_.add({.rule = "VLLM-ARG-REFUSED",
                .stage = Stage::kFinalValue,
                .verdict = engines::Verdict::kRejected,
                .severity = Severity::kError,
                .candidate = error.where,
                .reason = error.message});
    return stop(Status::kError, {.type = "ValidationError",
                                 .code = "ARG-REFUSED",
                                 .message = error.text(),
                                 .near_matches = error.near_matches});
  }

  // Common options that other engines have and this one has in another form, or not.
  void note_options() {
    const Deployment& deployment = request_.deployment;
    if (deployment.draft_topk) {
      note_option("VLLM-ARG-UNREAD", "--draft-topk",
                  "--draft-topk has no effect here: no argument of the engine stands for it",
                  Severity::kWarn);
    }
    const std::int64_t ranks = deployment.tp * deployment.dp;
    if (deployment.ep > 1 && deployment.ep != ranks) {
      note_option("VLLM-ARG-EP", "--ep",
                  fmt::format("the experts are spread over {} ranks (tp x dp), not {}", ranks,
                              deployment.ep),
                  Severity::kWarn);
    }
  }

  void note_option(std::string_view rule, std::string option, std::string reason,
                   Severity severity) {
    steps_.add({.rule = rule,
                .stage = Stage::kFinalValue,
                .verdict = engines::Verdict::kSkipped,
                .severity = severity,
                .candidate = std::move(option),
                .reason = std::move(reason)});
  }

  bool find_machine() {
    machine_ = machine_of(request_.device, request_.environment);
    if (machine_) return true;
    const std::string reason = fmt::format("the engine has no platform for {}", request_.device.id);
    steps_.add({.rule = "VLLM-DEVICE",
                .stage = Stage::kAvailability,
                .verdict = engines::Verdict::kRejected,
                .severity = Severity::kError,
                .candidate = request_.device.id,
                .reason = reason});
    return stop(Status::kUnsupported,
                {.type = "RuntimeError", .code = "DEVICE", .message = reason, .near_matches = {}});
  }

  RunFlags run_flags() {
    RunFlags flags = flags_of(*arguments_, request_.environment);
    const BatchDefaults defaults =
        batch_defaults(request_.device, flags.tp * flags.pp, tables_.profile);
    flags.default_batched_tokens = defaults.tokens;
    flags.default_num_seqs = defaults.sequences;
    return flags;
  }

  void follow_run() {
    const RunResult run = resolve_run({.profile = tables_.profile,
                                       .registry = tables_.registry,
                                       .machine = *machine_,
                                       .model = request_.model,
                                       .flags = run_flags(),
                                       .registered_models = registered_models(
                                           *arguments_, request_.environment, tables_.registry),
                                       .registered_backends = registered_backends(*arguments_),
                                       .draft = request_.draft.get()});
    describe_class(run);
    describe_decisions(run);
    describe_layers(run);
    describe_errors(run);
    append_final_options(*arguments_, run, out_);
    if (out_.error) return;
    out_.status = status_of(run);
    out_.memory = resolve_memory(
        {.request = request_, .arguments = *arguments_, .run = run, .groups = out_.layers}, steps_);
    describe_fallback(run);
  }

  void describe_class(const RunResult& run) {
    const ModelClass& found = run.model_class;
    out_.model_class = found.class_name;
    out_.model_module = found.module;
    if (found.error) return;
    if (!found.normalised_from.empty()) {
      add_class_step("VLLM-CLASS-NORMALISED", engines::Verdict::kApplied, Severity::kInfo,
                     fmt::format("{} is served as {}", found.normalised_from, found.class_name));
    }
    if (found.transformers_backend) {
      add_class_step(
          "VLLM-CLASS-TRANSFORMERS", engines::Verdict::kSelected, Severity::kWarn,
          fmt::format("{} runs on the Transformers library's modelling code", found.architecture));
    } else {
      add_class_step("VLLM-CLASS", engines::Verdict::kSelected, Severity::kInfo,
                     fmt::format("{} is registered as {} of {}", found.architecture,
                                 found.class_name, found.module));
    }
    if (!found.missing.empty()) {
      add_class_step(
          "VLLM-CLASS-PACKAGE", engines::Verdict::kNoted, Severity::kWarn,
          fmt::format("its module imports {}, which the release does not bring", found.missing));
    }
  }

  void add_class_step(std::string_view rule, engines::Verdict verdict, Severity severity,
                      std::string reason) {
    steps_.add({.rule = rule,
                .stage = Stage::kModelClass,
                .verdict = verdict,
                .severity = severity,
                .candidate = out_.model_class,
                .reason = std::move(reason)});
  }

  void add_event(const RunResult& run, const RunEvent& event) {
    const bool refused = event.severity == Severity::kError;
    const std::string message = refused ? refusal_text(run, event.rule) : std::string();
    steps_.add({.rule = event.rule,
                .stage = event.stage,
                .verdict = refused ? engines::Verdict::kRejected : engines::Verdict::kApplied,
                .severity = event.severity,
                .candidate = message.empty() ? event.candidate : out_.requested_backend,
                .reason = message.empty() ? event.reason : message});
  }

  void describe_decisions(const RunResult& run) {
    const auto later = std::find_if(run.events.begin(), run.events.end(), is_after_selection);
    for (auto event = run.events.begin(); event != later; ++event) add_event(run, *event);
    for (const LayerSelection& asked : run.selections) {
      append_selection(asked.selection, subject_of(run, asked), steps_);
    }
    if (run.mla_prefill) append_prefill_selection(*run.mla_prefill, steps_);
    for (auto event = later; event != run.events.end(); ++event) add_event(run, *event);
    for (const std::string& unknown : run.unknown) {
      steps_.add({.rule = "VLLM-UNKNOWN-TO-US",
                  .stage = Stage::kConstruction,
                  .severity = Severity::kWarn,
                  .candidate = run.model_class.class_name,
                  .reason = unknown});
    }
  }

  void describe_layers(const RunResult& run) {
    // A run that ended while its layers were built has some of them only.
    if (!run.cache) return;
    const SelectorSettings settings = settings_of(run);
    const SelectorContext context{
        .profile = tables_.profile, .machine = *machine_, .settings = settings};
    out_.layers = layer_groups(context, run);
    MainBackend main = main_backend(run);
    out_.selected_backend = std::move(main.name);
    out_.backend_class = std::move(main.class_name);
  }

  // What kernels are asked for when groups of layers are described.
  [[nodiscard]] SelectorSettings settings_of(const RunResult& run) const {
    SelectorSettings settings;
    settings.flash_attn_version = run.run.flash_attn_version;
    settings.use_trtllm_attention =
        arguments_->optional_flag("attention_config.use_trtllm_attention");
    settings.batch_invariant = variable_is_on(request_.environment, "VLLM_BATCH_INVARIANT");
    settings.kv_connector = arguments_->text("kv_transfer_config.kv_connector").has_value();
    settings.dcp = run.run.dcp;
    settings.pcp = run.run.pcp;
    settings.run_kv_dtype = run.run.cache_dtype;
    if (run.view) settings.model = facts_of(request_.model, *run.view);
    return settings;
  }

  void describe_errors(const RunResult& run) {
    if (run.model_class.error) {
      stop(Status::kUnsupported, *run.model_class.error);
      return;
    }
    const bool sparse = std::any_of(run.layers.begin(), run.layers.end(), [](const auto& layer) {
      return layer.role == LayerRole::kIndexer && !layer.class_name.starts_with("MiniMaxM3");
    });
    if (run.errors.empty() && sparse && !machine_->packages.deep_gemm &&
        machine_->platform == hardware::Platform::kCuda) {
      refuse_indexer();
      return;
    }
    if (run.errors.empty()) return;
    const RunError& error = run.errors.front();
    const std::size_t dash = error.rule.find('-');
    const std::string message = refusal_text(run, error.rule);
    stop(Status::kError,
         {.type = error.type,
          .code = dash == std::string::npos ? error.rule : error.rule.substr(dash + 1),
          .message = message.empty() ? error.text : message,
          .near_matches = {}});
  }

  // A selector's refusal with its reasons, which the run keeps apart from its sentence; empty where
  // the rule is not about that.
  static std::string refusal_text(const RunResult& run, std::string_view rule) {
    if (rule == "VLLM-PREFILL-REFUSED" && run.mla_prefill && run.mla_prefill->error) {
      return selection_error(*run.mla_prefill, true).message;
    }
    if (!rule.starts_with("VLLM-BACKEND-")) return {};
    for (const LayerSelection& asked : run.selections) {
      if (asked.selection.error) return selection_error(asked.selection).message;
    }
    return {};
  }

  void refuse_indexer() {
    const std::string reason =
        "Sparse Attention Indexer CUDA op requires DeepGEMM support in the current vLLM "
        "environment.";
    steps_.add({.rule = "VLLM-DEEP-GEMM",
                .stage = Stage::kConstruction,
                .verdict = engines::Verdict::kRejected,
                .severity = Severity::kError,
                .candidate = "deep-gemm",
                .reason = reason});
    stop(Status::kError,
         {.type = "RuntimeError", .code = "DEEP-GEMM", .message = reason, .near_matches = {}});
  }

  void fall_back(std::string rule, std::string reason) {
    if (!out_.fallback_rule.empty()) return;
    out_.status = Status::kFallback;
    out_.fallback_rule = std::move(rule);
    out_.fallback_reason = std::move(reason);
  }

  void describe_fallback(const RunResult& run) {
    const bool wrapped_by_itself =
        run.model_class.transformers_backend && arguments_->given("model_impl") == nullptr;
    if (wrapped_by_itself) {
      fall_back("VLLM-CLASS-TRANSFORMERS", "no class of vLLM serves the architecture");
    }
    for (const LayerSelection& asked : run.selections) {
      if (asked.selection.precluded.empty()) continue;
      fall_back("VLLM-SEL-PRECLUDED",
                fmt::format("--page-size rules out {}", asked.selection.precluded.front()));
    }
    const bool dropped =
        out_.requested_backend != "auto" && !out_.selected_backend.empty() &&
        std::none_of(out_.layers.begin(), out_.layers.end(), [&](const LayerGroup& group) {
          return group.backend == out_.requested_backend;
        });
    if (!dropped || is_alias(run)) return;
    steps_.add({.rule = "VLLM-SEL-DROPPED",
                .verdict = engines::Verdict::kSkipped,
                .severity = Severity::kWarn,
                .candidate = out_.requested_backend,
                .reason = fmt::format("{} was asked for, layers run on {}", out_.requested_backend,
                                      out_.selected_backend)});
    fall_back("VLLM-SEL-DROPPED",
              fmt::format("{} does not serve these layers", out_.requested_backend));
  }

  // Members whose class reports another name.
  [[nodiscard]] bool is_alias(const RunResult& run) const {
    return std::any_of(run.selections.begin(), run.selections.end(), [&](const auto& asked) {
      return asked.selection.member == out_.requested_backend;
    });
  }

  const Request& request_;
  const ReleaseTables& tables_;
  Resolution out_;
  StepWriter steps_;
  std::optional<Arguments> arguments_;
  std::optional<Machine> machine_;
};

}  // namespace

Resolution resolve(const Request& request, const ReleaseTables& tables) {
  return Walk(request, tables).run();
}

}  // namespace kernelpath::engines::vllm
