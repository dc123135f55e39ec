#include "cli/validate_problem.h"

#include "cli/argument_remedies.h"
#include "cli/command_remedies.h"
#include "cli/own_findings.h"
#include "cli/validate_changes.h"
#include "hardware/replacements.h"

#include <algorithm>

namespace kernelpath::cli {
namespace {

using features::Change;
using features::Changes;

bool is_about_command(const report::ReportedFinding& finding) {
  return finding.place.at.starts_with("command:");
}

std::vector<const report::ReportedFinding*> errors_of(const EnginePart& part) {
  std::vector<const report::ReportedFinding*> out;
  for (const report::EngineFindings* findings : {&part.own, &part.shared}) {
    for (const report::ReportedFinding& finding : findings->findings) {
      if (finding.finding.level == features::Level::kError) out.push_back(&finding);
    }
  }
  return out;
}

std::vector<features::DeviceChoice> device_choices(const hardware::Device& asked) {
  std::vector<features::DeviceChoice> out;
  for (const hardware::Device* device : hardware::replacements(asked)) {
    features::DeviceChoice& choice = out.emplace_back();
    choice.id = device->id;
    if (device->capability) choice.sm = device->capability->sm();
    choice.memory_bytes = device->usable_bytes();
    choice.platform = hardware::platform_name(device->platform);
  }
  return out;
}

std::optional<std::uint32_t> field_of_option(const features::RuleTable& table,
                                             std::string_view option) {
  const auto& fields = table.schema.fields();
  for (std::uint32_t i = 0; i < fields.size(); ++i) {
    const bool stated = fields[i].kind == features::FieldKind::kArgument;
    if (stated && fields[i].option == option) return i;
  }
  return std::nullopt;
}

// The values that a lever offers for a field that is `now`; none is below one.
std::vector<features::Value> lever_values(const features::Lever& lever, const features::Value& now,
                                          const features::Slots& slots) {
  if (lever.value) {
    const features::Value value = features::evaluate(*lever.value, slots);
    const bool useless = value.is_number() && value.as_double() < 1;
    return useless ? std::vector<features::Value>() : std::vector<features::Value>{value};
  }
  std::vector<features::Value> out;
  const bool whole = now.type() == features::ValueType::kInteger && now.as_integer() > 0;
  std::int64_t size = whole ? now.as_integer() : 1;
  for (size *= 2; size <= lever.doubled_to; size *= 2) {
    out.push_back(features::Value::integer(size));
  }
  return out;
}

bool reads_device(const features::Rule& rule, const features::RuleTable& table) {
  const auto fields = rule.when.fields();
  return std::any_of(fields.begin(), fields.end(), [&table](std::uint32_t field) {
    return table.schema.field(field).kind == features::FieldKind::kDevice;
  });
}

const features::Violation* find_violation(const std::vector<features::Violation>& violations,
                                          const features::Rule& rule) {
  const auto found =
      std::find_if(violations.begin(), violations.end(),
                   [&rule](const features::Violation& v) { return v.rule == &rule; });
  return found == violations.end() ? nullptr : &*found;
}

}  // namespace

std::string fault_name(const report::ReportedFinding& finding) {
  if (is_about_command(finding)) return finding.finding.id + " " + finding.place.shown;
  const features::Rule* const rule = finding.finding.rule;
  const bool several = rule != nullptr && rule->each.has_value();
  return several ? finding.finding.id + " " + finding.finding.field : finding.finding.id;
}

CombinationProblem::CombinationProblem(const ValidateQuestion& question,
                                       const EngineQuestion& engine, const Judge& judge)
    : question_(question),
      engine_(engine),
      judge_(judge),
      devices_(device_choices(question.base.device)) {
  const Result<EngineCombination> start = engine_combination(question, engine);
  if (start) start_ = Stated{.combination = *start, .command = question.command};
}

std::optional<CombinationProblem::Stated> CombinationProblem::state(const Changes& changes) const {
  std::optional<Stated> out = start_;
  const bool words = std::any_of(changes.begin(), changes.end(),
                                 [](const Change& change) { return change.word.has_value(); });
  if (words) {
    const auto edited = with_changed_command(question_, changes);
    if (!edited) return std::nullopt;
    const Result<EngineCombination> combination = engine_combination(*edited, engine_);
    if (!combination) return std::nullopt;
    out = Stated{.combination = *combination, .command = edited->command};
  }
  for (const Change& change : changes) {
    if (out && !change.word) apply_change(change, out->combination);
  }
  return out;
}

std::optional<std::vector<std::string>> CombinationProblem::faults(const Changes& changes) const {
  const std::string key = features::key_of(changes);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  const std::optional<Stated> stated = state(changes);
  if (!stated) return std::nullopt;
  const EnginePart part =
      engine_part(stated->combination, judge_(stated->combination),
                  stated->command ? &*stated->command : nullptr, judge_.model());
  std::vector<std::string> out;
  for (const report::ReportedFinding* error : errors_of(part)) out.push_back(fault_name(*error));
  return known_.emplace(key, std::move(out)).first->second;
}

Changes CombinationProblem::remedies(const Changes& changes, const std::string& fault) const {
  const std::optional<Stated> stated = state(changes);
  if (!stated) return {};
  const JudgedEngine judged = judge_(stated->combination);
  const EnginePart part = engine_part(
      stated->combination, judged, stated->command ? &*stated->command : nullptr, judge_.model());
  for (const report::ReportedFinding* error : errors_of(part)) {
    if (fault_name(*error) != fault) continue;
    if (is_about_command(*error)) {
      return command_remedies(question_, changes, *stated->command, error->place.shown);
    }
    return rule_remedies(*error, judged);
  }
  return {};
}

Changes CombinationProblem::rule_remedies(const report::ReportedFinding& finding,
                                          const JudgedEngine& judged) const {
  const features::Rule* const rule = finding.finding.rule;
  const features::RuleTable& own = *judged.combination.table;
  const features::RuleTable& shared = *features::find_rule_table("all");
  if (rule == nullptr) return refusal_remedies(judged);
  if (shared.find(rule->id) == rule) return shared_remedies(*rule, judged);
  if (own.find(rule->id) != rule) return refusal_remedies(judged);
  if (is_about_an_argument(own, *rule)) {
    return argument_remedies(judged.combination, finding.finding);
  }
  const features::Context context = features::context_of(judged.combination);
  const auto violations = features::violations(context, question_.scope, features::Level::kError);
  const features::Violation* const violation = find_violation(violations, *rule);
  if (violation == nullptr) return {};
  return features::CandidateFinder(own, devices_, features::names_of(judged.combination))
      .for_rule(*rule, context, violation->values);
}

// What a shared rule reads was computed by the resolution: its levers say which options move it.
Changes CombinationProblem::shared_remedies(const features::Rule& rule,
                                            const JudgedEngine& judged) const {
  const features::RuleTable& own = *judged.combination.table;
  const features::Context context = features::context_of(judged.combination);
  const features::Context shared = features::shared_context_of(judged.combination);
  const features::CandidateFinder finder(own, devices_, features::names_of(judged.combination));
  Changes out;
  for (const features::Lever& lever : rule.levers) {
    const auto field = field_of_option(own, lever.option);
    if (!field) continue;
    const auto values = lever_values(lever, context.value(*field), shared.slots());
    Changes changes = finder.for_field(*field, context, values);
    out.insert(out.end(), changes.begin(), changes.end());
  }
  if (!reads_device(rule, shared.table())) return out;
  const Changes devices = finder.for_device();
  out.insert(out.end(), devices.begin(), devices.end());
  return out;
}

// Nothing says which argument a refusal of the resolution is about: each is left out, and each
// device is tried.
Changes CombinationProblem::refusal_remedies(const JudgedEngine& judged) const {
  const features::RuleTable& own = *judged.combination.table;
  Changes out = leave_out_each(judged.combination);
  const Changes devices = features::CandidateFinder(own, devices_).for_device();
  out.insert(out.end(), devices.begin(), devices.end());
  return out;
}

}  // namespace kernelpath::cli
