#include "engines/sglang/resolve.h"

#include "base/text.h"
#include "engines/sglang/model_class.h"
#include "engines/sglang/rule_ids.h"
#include "engines/sglang/rules.h"
#include "engines/sglang/run.h"
#include "engines/sglang/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace kernelpath::engines::sglang {
namespace {

struct StagePrefix {
  std::string_view prefix;
  Stage stage;
};
// The first that fits; others set a final value.
constexpr std::array kStages = {
    StagePrefix{"SGL-CLASS", Stage::kModelClass},
    StagePrefix{"SGL-MODEL-QUANT", Stage::kFinalValue},
    StagePrefix{"SGL-MODEL-", Stage::kRewrite},
    StagePrefix{"SGL-ACCEPT-", Stage::kRewrite},
    StagePrefix{"SGL-BUILD", Stage::kConstruction},
    StagePrefix{"SGL-ATTENTION-", Stage::kFallback},
    StagePrefix{"SGL-SAMPLING-", Stage::kFallback},
    StagePrefix{"SGL-TRTLLM-", Stage::kAvailability},
    StagePrefix{"SGL-CUTEDSL-", Stage::kAvailability},
    StagePrefix{"SGL-NVFP4-", Stage::kAvailability},
    StagePrefix{"SGL-FP4-", Stage::kAvailability},
    StagePrefix{"SGL-MXFP8-", Stage::kAvailability},
    StagePrefix{"SGL-MEGA-MOE-DEVICE", Stage::kAvailability},
    StagePrefix{"SGL-DSA-", Stage::kRewrite},
    StagePrefix{"SGL-V4-", Stage::kRewrite},
    StagePrefix{"SGL-PAGE-", Stage::kRewrite},
    StagePrefix{"SGL-GRAPH-", Stage::kRewrite},
    StagePrefix{"SGL-MAMBA-", Stage::kRewrite},
    StagePrefix{"SGL-LINEAR-", Stage::kRewrite},
    StagePrefix{"SGL-MEMORY-", Stage::kMemory},
};

Stage stage_of(std::string_view rule) {
  const auto* const found =
      std::find_if(kStages.begin(), kStages.end(),
                   [&](const StagePrefix& row) { return rule.starts_with(row.prefix); });
  return found == kStages.end() ? Stage::kFinalValue : found->stage;
}

std::string change_text(const Event::Change& change) {
  return fmt::format("{}: {} -> {}", change.field, python_json(change.before),
                     python_json(change.after));
}

void append_event(const Event& event, std::vector<Step>& steps) {
  StepDraft draft{.rule = event.rule, .stage = stage_of(event.rule)};
  if (event.kind == Event::Kind::kSet) {
    draft.verdict = Verdict::kApplied;
    draft.candidate = event.changes.front().field;
    std::vector<std::string> parts;
    for (const Event::Change& change : event.changes) parts.push_back(change_text(change));
    draft.reason = join(parts, "; ");
  } else {
    draft.severity = event.kind == Event::Kind::kWarning ? Severity::kWarn : Severity::kInfo;
    draft.reason = event.text;
  }
  append_step(std::move(draft), steps);
}

// "SGL-BUILD-FA3" → "BUILD-FA3".
std::string code_of(std::string_view rule) {
  const std::size_t dash = rule.find('-');
  return std::string(dash == std::string_view::npos ? rule : rule.substr(dash + 1));
}

// The walk over one request. Each step returns false where the engine stops.
class Walk {
 public:
  Walk(const Request& request, const Profile& profile) : request_(request), profile_(profile) {
    out_.engine = "sglang";
    out_.version = profile.version;
  }

  Resolution run() {
    if (read_arguments() && find_platform() && find_config()) follow_launch();
    for (const Step& step : out_.steps) {
      const bool too_large = step.severity == Severity::kError && step.stage == Stage::kMemory;
      if (step.severity == Severity::kWarn || too_large) out_.warnings.push_back(step.reason);
    }
    return std::move(out_);
  }

 private:
  // Why the engine does not start.
  struct Stop {
    std::string_view rule;
    Stage stage;
    std::string_view type;
    std::string text;
    std::vector<std::string> near_matches = {};
  };

  bool stop(Status status, Stop why) {
    append_step({.rule = why.rule,
                 .stage = why.stage,
                 .verdict = Verdict::kRejected,
                 .severity = Severity::kError,
                 .reason = why.text},
                out_.steps);
    out_.status = status;
    out_.error = EngineError{.type = std::string(why.type),
                             .code = code_of(why.rule),
                             .message = std::move(why.text),
                             .near_matches = std::move(why.near_matches)};
    return false;
  }

  bool read_arguments() {
    auto arguments = sglang::read_arguments(profile_, request_.deployment);
    if (!arguments) {
      const Error& error = arguments.error();
      return stop(Status::kError, {.rule = kArgRefused,
                                   .stage = Stage::kFinalValue,
                                   .type = "SystemExit",
                                   .text = error.text(),
                                   .near_matches = error.near_matches});
    }
    arguments_ = std::move(*arguments);
    out_.requested_backend = "auto";
    out_.requested_by = "engine default";
    for (const std::string_view name :
         {"attention_backend", "prefill_attention_backend", "decode_attention_backend"}) {
      const std::string* option = arguments_.option_of(name);
      if (option == nullptr) continue;
      const auto given = std::find_if(arguments_.values.begin(), arguments_.values.end(),
                                      [&](const auto& row) { return row.first == name; });
      if (!given->second.is_string()) continue;
      out_.requested_backend = given->second.as_string();
      out_.requested_by = *option;
      break;
    }
    return true;
  }

  bool find_platform() {
    platform_ = platform_of(request_.device, request_.environment);
    if (platform_) return true;
    return stop(Status::kUnsupported, {.rule = kDevice,
                                       .stage = Stage::kAvailability,
                                       .type = "RuntimeError",
                                       .text = fmt::format("the engine has no platform here for {}",
                                                           request_.device.id)});
  }

  bool find_config() {
    if (request_.model.file.is_object()) return true;
    return stop(Status::kUnsupported,
                {.rule = kNoConfig,
                 .stage = Stage::kModelClass,
                 .type = "ValueError",
                 .text = "the engine reads config.json, and the model has none"});
  }

  void follow_launch() {
    Launch launch(profile_, launch_input(request_, *platform_, arguments_));
    run_pipeline(launch);
    Run run{.request = request_, .launch = launch, .arguments = arguments_};
    if (!launch.refused()) build(launch, run);
    for (const Event& event : launch.events()) append_event(event, out_.steps);
    const bool known = describe_class(launch);
    append_final_options(run, out_);
    append_rule_facts(launch, out_);
    if (launch.refused()) return refuse(*launch.refusal());
    if (!known) return;
    describe_attention(run);
    DraftRun draft = resolve_draft(run, out_.steps);
    if (draft.refusal) return refuse(*draft.refusal);
    out_.memory = resolve_memory(run, out_.layers, out_.steps);
    for (LayerGroup& group : draft.layers) out_.layers.push_back(std::move(group));
    describe_fallback(launch);
  }

  static void build(Launch& launch, Run& run) {
    run.storage = kv_storage(launch, true);
    if (run.storage.refusal) {
      const Refusal& refusal = *run.storage.refusal;
      launch.refuse(refusal.stage, refusal.type, refusal.rule, refusal.text);
      return;
    }
    run.built = build_attention(launch, run.storage.torch_dtype);
  }

  // False where no class serves the model.
  bool describe_class(const Launch& launch) {
    if (launch.model().architectures.empty()) return true;  // refused before the model was read
    const ModelClass found = resolve_model_class(launch);
    for (const Event& event : found.events) append_event(event, out_.steps);
    out_.model_class = found.architecture;
    out_.model_module = found.module;
    if (found.refusal) {
      if (launch.refused()) return false;
      return stop(Status::kUnsupported, {.rule = found.refusal->rule,
                                         .stage = Stage::kModelClass,
                                         .type = found.refusal->type,
                                         .text = found.refusal->text});
    }
    append_step({.rule = kClass,
                 .stage = Stage::kModelClass,
                 .verdict = Verdict::kSelected,
                 .candidate = found.architecture,
                 .reason = fmt::format("{} of {}, implementation {}", found.architecture,
                                       found.module, found.implementation)},
                out_.steps);
    if (found.implementation == "transformers" && launch.text("model_impl") == "auto") {
      fall_back(kClassTransformers, "no class of SGLang serves the architecture");
    }
    return true;
  }

  void refuse(const Refusal& refusal) {
    const Stage stage = refusal.stage == "build" ? Stage::kConstruction : stage_of(refusal.rule);
    stop(Status::kError,
         {.rule = refusal.rule, .stage = stage, .type = refusal.type, .text = refusal.text});
  }

  void describe_attention(const Run& run) {
    const std::string prefill = run.launch.prefill_backend();
    const std::string decode = run.launch.decode_backend();
    out_.selected_backend = prefill == decode ? prefill : fmt::format("{} / {}", prefill, decode);
    out_.backend_class =
        run.built.class_name.empty() ? run.built.decode_class : run.built.class_name;
    append_step({.rule = kKvDtype,
                 .candidate = run.storage.torch_dtype,
                 .reason = fmt::format("kv_cache_dtype {} is stored as {}",
                                       run.launch.text("kv_cache_dtype"), run.storage.torch_dtype)},
                out_.steps);
    append_step({.rule = sglang::kBuild,
                 .stage = Stage::kConstruction,
                 .verdict = Verdict::kSelected,
                 .candidate = out_.selected_backend,
                 .reason = fmt::format("the worker builds {}", out_.backend_class)},
                out_.steps);
    out_.layers = layer_groups(run);
  }

  void fall_back(std::string_view rule, std::string reason) {
    if (!out_.fallback_rule.empty()) return;
    out_.status = Status::kFallback;
    out_.fallback_rule = std::string(rule);
    out_.fallback_reason = std::move(reason);
  }

  // A backend that the user named and the engine replaced.
  void describe_fallback(const Launch& launch) {
    const std::string& asked = out_.requested_backend;
    if (asked == "auto" || launch.prefill_backend() == asked || launch.decode_backend() == asked) {
      return;
    }
    const std::string_view rule = launch.arguments().decided_by("attention_backend");
    fall_back(rule.empty() ? sglang::kBuild : rule,
              fmt::format("{} was asked for, {} serves", asked, out_.selected_backend));
  }

  const Request& request_;
  const Profile& profile_;
  Resolution out_;
  GivenArguments arguments_;
  std::optional<Platform> platform_;
};

}  // namespace

void append_step(StepDraft draft, std::vector<Step>& steps) {
  const RuleInfo* rule = find_rule(draft.rule);
  const RuleInfo without_file = {draft.rule, {}, {}, {}, {}, kRulesVersion};
  steps.push_back(step_of(std::move(draft), rule == nullptr ? without_file : *rule, "SGLang"));
}

Resolution resolve(const Request& request, const Profile& profile) {
  return Walk(request, profile).run();
}

}  // namespace kernelpath::engines::sglang
