#pragma once

#include "engines/engine.h"
#include "engines/resolution.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::engines {

// One decision before its source is looked up. Each engine names the stage of most of its steps.
template <Stage UsualStage>
struct StepDraftOf {
  std::string_view rule = {};  // an id of the engine's rules
  Stage stage = UsualStage;
  Verdict verdict = Verdict::kNoted;
  Severity severity = Severity::kInfo;
  std::string candidate = {};
  std::string reason = {};
  std::string file = {};  // where the rule's own is too general; empty: the rule's
};

// The step of a draft by `rule`, whose file is one of `project`.
template <Stage UsualStage>
Step step_of(StepDraftOf<UsualStage> draft, const RuleInfo& rule, std::string_view project) {
  return {.rule = std::string(rule.id),
          .candidate = std::move(draft.candidate),
          .verdict = draft.verdict,
          .severity = draft.severity,
          .reason = std::move(draft.reason),
          .source = {.project = std::string(project),
                     .file = draft.file.empty() ? std::string(rule.file) : std::move(draft.file),
                     .version = std::string(rule.version)},
          .stage = draft.stage};
}

// What notes steps of stage kMemory through an engine's own `append`; an error rejects.
template <Stage UsualStage>
auto memory_note(void (*append)(StepDraftOf<UsualStage>, std::vector<Step>&),
                 std::vector<Step>& steps) {
  return [append, &steps](std::string_view rule, Severity severity, std::string&& candidate,
                          std::string&& reason) {
    append({.rule = rule,
            .stage = Stage::kMemory,
            .verdict = severity == Severity::kError ? Verdict::kRejected : Verdict::kNoted,
            .severity = severity,
            .candidate = std::move(candidate),
            .reason = std::move(reason)},
           steps);
  };
}

}  // namespace kernelpath::engines
