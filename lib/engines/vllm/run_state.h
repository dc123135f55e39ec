#pragma once

#include "engines/vllm/run.h"

#include <string>
#include <string_view>
#include <utility>

// The steps of a run, each in a file of its own. A step that returns false has met an error that
// ends the run.
namespace kernelpath::engines::vllm {

struct RunState {
  const RunQuestion& question;
  RunResult& out;
  SelectorSettings settings = {};

  [[nodiscard]] const RunFlags& flags() const { return question.flags; }
  [[nodiscard]] const Profile& profile() const { return question.profile; }
  [[nodiscard]] RunConfig& run() const { return out.run; }
  [[nodiscard]] const ModelView& view() const { return *out.view; }
  [[nodiscard]] SelectorContext context() const {
    return {.profile = question.profile, .machine = question.machine, .settings = settings};
  }

  void note(std::string_view rule, std::string candidate, std::string reason,
            Severity severity = Severity::kInfo) {
    out.events.push_back({.rule = std::string(rule),
                          .severity = severity,
                          .candidate = std::move(candidate),
                          .reason = std::move(reason)});
  }
  bool raise(RunError error) {
    out.events.push_back({.rule = error.rule,
                          .stage = Stage::kConstruction,
                          .severity = Severity::kError,
                          .candidate = error.type,
                          .reason = error.text});
    out.errors.push_back(std::move(error));
    return false;
  }
};

// run_config.cpp: from the flags and the checkpoint to the configuration before hooks.
bool find_model(RunState& state);
bool configure(RunState& state);
// The longest sequence that a configuration states; `otherwise` where it states none.
std::int64_t derived_length(const config::ModelConfig& model, const Profile& profile,
                            std::int64_t otherwise);
// speculation.cpp: the method, the number of tokens, the draft's class, the model runner.
bool resolve_speculation(RunState& state);
// run_hooks.cpp: what the model's class changes of it. Source: model_executor/models/config.py.
bool apply_model_hook(RunState& state, ModelView& view);
bool apply_engine_hooks(RunState& state);
// run_checks.cpp: what the complete configuration is refused for.
bool check_parallelism(RunState& state);
bool check_configuration(RunState& state);
// build_layers.cpp: the layers of the model's class; run_select.cpp: their backends.
bool build_and_select(RunState& state);
// draft_layers.cpp: the layers of the model that drafts tokens, and their backends.
bool build_draft(RunState& state);
bool check_draft_groups(RunState& state);

}  // namespace kernelpath::engines::vllm
