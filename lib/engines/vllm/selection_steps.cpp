#include "engines/vllm/selection_steps.h"

#include "base/assert.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

// Facts of the machine are availability; everything else is about the layer itself.
Stage stage_of(std::string_view rule) {
  const bool machine = rule.ends_with("-CAPABILITY") || rule.ends_with("-IMPORT") ||
                       rule.ends_with("-PACKAGE") || rule.ends_with("-NOT-REGISTERED");
  return machine ? Stage::kAvailability : Stage::kFallback;
}

std::string about(const std::string& subject, std::string text) {
  return subject.empty() ? text : fmt::format("{}: {}", subject, text);
}

void append_rejected(const Selection& selection, const std::string& subject,
                     std::string_view (*rule_of)(std::string_view), StepWriter& steps) {
  // A refusal of what the user asked for is an error, a candidate that is passed over is not.
  const Severity severity = selection.automatic ? Severity::kInfo : Severity::kError;
  // The only reason against a placeholder is its error.
  if (selection.error && selection.error->fault == SelectionFault::kNotRegistered) return;
  for (const Rejected& rejected : selection.rejected) {
    for (const std::string& reason : rejected.reasons) {
      const std::string_view rule = rule_of(reason);
      steps.add({.rule = rule,
                 .stage = stage_of(rule),
                 .verdict = engines::Verdict::kRejected,
                 .severity = severity,
                 .candidate = rejected.backend,
                 .reason = about(subject, reason)});
    }
  }
}

// Every candidate with its reasons, as the engine words them.
std::string rejected_text(const Selection& selection) {
  std::vector<std::string> parts;
  for (const Rejected& rejected : selection.rejected) {
    parts.push_back(fmt::format("{}: [{}]", rejected.backend, join(rejected.reasons, ", ")));
  }
  return join(parts, ", ");
}

void replace(std::string& text, std::string_view from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
}

// The engine's sentence with its placeholders filled in.
std::string error_text(const Selection& selection) {
  std::string text = selection.error->text;
  const std::string requested =
      selection.rejected.empty() ? std::string() : selection.rejected.front().backend;
  replace(text, "<enum>", requested);
  replace(text, "<name>", requested);
  replace(text, "<reasons>",
          selection.rejected.empty() ? "" : join(selection.rejected.front().reasons, ", "));
  replace(text, "<rejected>", "{" + rejected_text(selection) + "}");
  replace(text, " with <config>", "");
  replace(text, " Valid options are: <enum names>", "");
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

std::string_view rule_of_fault(SelectionFault fault) {
  switch (fault) {
    case SelectionFault::kUnknownName:
      return "VLLM-BACKEND-UNKNOWN";
    case SelectionFault::kNotRegistered:
      return "VLLM-BACKEND-NOT-REGISTERED";
    case SelectionFault::kInvalid:
      return "VLLM-BACKEND-INVALID";
    case SelectionFault::kNoneValid:
      return "VLLM-BACKEND-NONE-VALID";
    case SelectionFault::kEngineFault:
      return "VLLM-BACKEND-ENGINE-FAULT";
    case SelectionFault::kPlatform:
      return "VLLM-BACKEND-PLATFORM";
  }
  return "VLLM-BACKEND-NONE-VALID";
}

void append_selection(const Selection& selection, const std::string& subject, StepWriter& steps) {
  append_rejected(selection, subject, rule_of_reason, steps);
  for (const std::string& name : selection.precluded) {
    steps.add({.rule = "VLLM-SEL-PRECLUDED",
               .verdict = engines::Verdict::kNoted,
               .severity = Severity::kWarn,
               .candidate = name,
               .reason = about(subject, fmt::format("{} would come first without --page-size; the "
                                                    "size alone rules it out",
                                                    name))});
  }
  if (!selection.error) {
    steps.add({.rule = "VLLM-SEL-CHOSEN",
               .verdict = engines::Verdict::kSelected,
               .candidate = selection.member,
               .reason = about(subject, selection.automatic
                                            ? "the first candidate with no reason against it"
                                            : "asked for, and nothing speaks against it"),
               .file = file_of_class(selection.path)});
  }
  for (const std::string& name : selection.valid) {
    if (name == selection.member) continue;
    steps.add({.rule = "VLLM-SEL-LATER",
               .verdict = engines::Verdict::kSkipped,
               .candidate = name,
               .reason = about(subject, "would do as well, and comes later in the order")});
  }
}

void append_prefill_selection(const Selection& selection, StepWriter& steps) {
  append_rejected(selection, "MLA prefill", rule_of_prefill_reason, steps);
  if (selection.error) return;
  steps.add({.rule = "VLLM-PREFILL-CHOSEN",
             .verdict = engines::Verdict::kSelected,
             .candidate = selection.member,
             .reason = selection.automatic
                           ? "MLA prefill: the first candidate with no reason against it"
                           : "MLA prefill: asked for, and nothing speaks against it",
             .file = file_of_class(selection.path)});
}

EngineError selection_error(const Selection& selection, bool prefill) {
  KERNELPATH_ASSERT(selection.error.has_value());
  const std::string_view rule =
      prefill ? std::string_view("VLLM-PREFILL-REFUSED") : rule_of_fault(selection.error->fault);
  return {.type = selection.error->type,
          .code = std::string(rule.substr(rule.find('-') + 1)),
          .message = error_text(selection),
          .near_matches = {}};
}

}  // namespace kernelpath::engines::vllm
