#include "engines/vllm/resolve.h"

#include "base/text.h"
#include "engines/vllm/arguments.h"
#include "engines/vllm/machine.h"
#include "engines/vllm/model_class.h"
#include "engines/vllm/rules.h"
#include "engines/vllm/rules_select.h"
#include "engines/vllm/selection_steps.h"
#include "engines/vllm/selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

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
    if (read_arguments() && find_machine() && find_class() && select()) {
      out_.status = Status::kOk;
    }
    fill_options();
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
    if (!arguments) {
      steps_.add({.rule = "VLLM-ARG-REFUSED",
                  .stage = Stage::kFinalValue,
                  .verdict = engines::Verdict::kRejected,
                  .severity = Severity::kError,
                  .candidate = arguments.error().where,
                  .reason = arguments.error().message});
      return stop(Status::kError, {.type = "ValidationError",
                                   .code = "ARG-REFUSED",
                                   .message = arguments.error().text(),
                                   .near_matches = arguments.error().near_matches});
    }
    arguments_ = std::move(*arguments);
    const Arguments::Value* backend = arguments_->backend();
    out_.requested_backend = backend != nullptr ? to_upper(backend->text) : "auto";
    out_.requested_by = backend != nullptr ? backend->set_by : "engine default";
    if (request_.deployment.draft_topk) {
      steps_.add({.rule = "VLLM-ARG-UNREAD",
                  .stage = Stage::kFinalValue,
                  .verdict = engines::Verdict::kSkipped,
                  .severity = Severity::kWarn,
                  .candidate = "--draft-topk",
                  .reason = "--draft-topk has no effect here: no argument of the engine stands for "
                            "it"});
    }
    return true;
  }

  bool find_machine() {
    machine_ = machine_of(request_.device, request_.environment);
    if (machine_) return true;
    const std::string reason = fmt::format("no platform of the engine is for {} ({})",
                                           request_.device.id, request_.device.label);
    steps_.add({.rule = "VLLM-DEVICE",
                .stage = Stage::kAvailability,
                .verdict = engines::Verdict::kRejected,
                .severity = Severity::kError,
                .candidate = request_.device.id,
                .reason = reason});
    return stop(Status::kUnsupported,
                {.type = "RuntimeError", .code = "DEVICE", .message = reason, .near_matches = {}});
  }

  bool find_class() {
    const config::ModelConfig& model = request_.model;
    const ModelClass found = resolve_model_class(
        tables_.registry,
        {.architectures = model.architectures,
         .model_impl = arguments_->text("model_impl").value_or("auto"),
         .runner = arguments_->text("runner").value_or("auto"),
         .convert = arguments_->text("convert").value_or("auto"),
         .nested_text_config = !model.text_pointer.empty(),
         .num_experts = model.moe ? model.moe->num_experts.value_or(0) : 0});
    out_.model_class = found.class_name;
    out_.model_module = found.module;
    if (found.error) return stop(Status::kUnsupported, *found.error);
    steps_.add({.rule = found.transformers_backend ? "VLLM-CLASS-TRANSFORMERS" : "VLLM-CLASS",
                .stage = Stage::kModelClass,
                .verdict = engines::Verdict::kSelected,
                .candidate = found.class_name,
                .reason = fmt::format("{} of {}", found.architecture, found.module)});
    return true;
  }

  bool select() { return true; }

  void fill_options() {
    if (!arguments_) return;
    for (const Arguments::Value& value : arguments_->values()) {
      out_.options.push_back({value.name, value.text.empty() ? "null" : value.text, value.set_by});
    }
    for (const Step& step : out_.steps) {
      const bool too_large = step.severity == Severity::kError && step.stage == Stage::kMemory;
      if (step.severity == Severity::kWarn || too_large) out_.warnings.push_back(step.reason);
    }
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
