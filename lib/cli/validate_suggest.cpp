#include "cli/validate_suggest.h"

#include "base/text.h"
#include "features/argument_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace kernelpath::cli {
namespace {

using features::CombinationAnswer;
using features::CombinationQuestion;
using features::JudgedFinding;
using features::Level;

constexpr std::int64_t kMostRanks = 64;
constexpr std::int64_t kShortestSequence = 1024;

bool is_error(const JudgedFinding& judged) { return judged.finding.level == Level::kError; }

std::size_t num_errors(const CombinationAnswer& answer) {
  return static_cast<std::size_t>(
      std::count_if(answer.findings.begin(), answer.findings.end(), is_error));
}

// Rules about the arguments by themselves: the argument's name is the finding's field.
bool is_faulty_argument(const JudgedFinding& judged) {
  constexpr std::array<std::string_view, 4> kRules = {"ARG-UNKNOWN", "ARG-TYPE", "ARG-CHOICE",
                                                      "ARG-RANGE"};
  return std::find(kRules.begin(), kRules.end(), judged.finding.id) != kRules.end();
}

// `value` without the members at these dotted paths.
json::Value without(const json::Value& value, const std::string& path,
                    const std::vector<std::string>& left_out) {
  if (!value.is_object()) return value;
  std::vector<json::Member> members;
  for (const json::Member& member : value.members()) {
    const std::string name = path.empty() ? member.key : path + "." + member.key;
    if (std::find(left_out.begin(), left_out.end(), name) != left_out.end()) continue;
    members.push_back({.key = member.key, .value = without(member.value, name, left_out)});
  }
  return json::Value::object(std::move(members));
}

CombinationQuestion reduced(const CombinationQuestion& question,
                            const std::vector<std::string>& left_out) {
  CombinationQuestion out = question;
  out.arguments = {};
  const json::Value tree = without(question.arguments.tree(), "", left_out);
  for (const json::Member& member : tree.members()) {
    out.arguments.set(member.key, member.value, {});
  }
  for (const std::string& text : question.arguments.unread()) out.arguments.add_unread(text);
  return out;
}

// The changes that mend what is left, with those already made in front; nothing if there are none.
std::optional<std::string> mend_rest(const CombinationQuestion& question,
                                     std::vector<std::string> changes, std::size_t errors) {
  features::SuggestOptions search = question.search;
  search.scope = question.scope;
  search.max_changes = std::max(search.max_changes, errors);
  const features::SuggestResult rest =
      features::suggest_all(features::context_of(question), search);
  if (!rest.suggestion) return std::nullopt;
  for (const features::Change& change : rest.suggestion->changes) changes.push_back(change.text);
  return join(changes, ", ");
}

// An argument that the engine does not have, or whose value it refuses, is left out.
void leave_out_faulty_arguments(JudgedEngine& judged) {
  std::vector<std::string> names;
  for (const JudgedFinding& found : judged.own.findings) {
    const std::string& name = found.finding.field;
    const bool stated =
        features::find_argument_value(judged.combination.arguments.tree(), name) != nullptr;
    if (is_faulty_argument(found) && stated) names.push_back(name);
  }
  if (names.empty()) return;
  const CombinationQuestion rest = reduced(judged.combination, names);
  CombinationQuestion plain = rest;
  plain.suggest = false;
  const CombinationAnswer after = features::judge_combination(plain);
  if (std::any_of(after.findings.begin(), after.findings.end(), is_faulty_argument)) return;
  for (JudgedFinding& found : judged.own.findings) {
    if (is_faulty_argument(found)) found.suggestion = "leave out " + found.finding.field;
  }
  const std::size_t errors = num_errors(judged.own);
  if (errors < 2) return;
  std::vector<std::string> changes;
  for (const std::string& name : names) changes.push_back("leave out " + name);
  const auto all = mend_rest(rest, std::move(changes), errors);
  if (all) judged.own.suggestion = *all;
}

bool is_about_memory(const JudgedFinding& judged) {
  return is_error(judged) && judged.finding.id.starts_with("MEM-");
}

struct Attempt {
  std::string text;
  engines::Deployment deployment;
};

// One option changed, in the order in which somebody short of memory would try.
std::vector<Attempt> attempts(const engines::Deployment& asked, const JudgedEngine& judged) {
  std::vector<Attempt> out;
  for (std::int64_t tp = asked.tp * 2; tp <= kMostRanks; tp *= 2) {
    Attempt& attempt = out.emplace_back(Attempt{fmt::format("--tp {}", tp), asked});
    attempt.deployment.tp = tp;
  }
  if (asked.batch_size.value_or(1) > 1) {
    Attempt& attempt = out.emplace_back(Attempt{"--batch-size 1", asked});
    attempt.deployment.batch_size = 1;
  }
  std::int64_t tokens = judged.combination.facts.resolved.context_length.value_or(0) / 2;
  for (; tokens >= kShortestSequence; tokens /= 2) {
    Attempt& attempt = out.emplace_back(Attempt{fmt::format("--max-model-len {}", tokens), asked});
    attempt.deployment.max_model_len = tokens;
  }
  return out;
}

// The attempt leaves no error about memory and brings no error that was not there.
bool mends(const JudgedEngine& before, const JudgedEngine& after) {
  if (std::any_of(after.shared.findings.begin(), after.shared.findings.end(), is_about_memory)) {
    return false;
  }
  const auto known = [&before](const JudgedFinding& judged) {
    return std::any_of(
        before.own.findings.begin(), before.own.findings.end(),
        [&judged](const JudgedFinding& old) { return old.finding.id == judged.finding.id; });
  };
  const bool refused = after.resolved.target && after.resolved.target->error &&
                       !(before.resolved.target && before.resolved.target->error);
  return !refused && std::all_of(after.own.findings.begin(), after.own.findings.end(),
                                 [&](const JudgedFinding& judged) {
                                   return !is_error(judged) || known(judged);
                                 });
}

// Memory depends on the resolution: each attempt is resolved and judged anew.
void find_room(const ValidateQuestion& question, const EngineQuestion& engine,
               const LoadedModel* model, JudgedEngine& judged) {
  std::vector<JudgedFinding>& shared = judged.shared.findings;
  if (model == nullptr || std::none_of(shared.begin(), shared.end(), is_about_memory)) return;
  ValidateQuestion plain = question;
  plain.suggest = false;
  for (const Attempt& attempt : attempts(engine.deployment, judged)) {
    EngineQuestion changed = engine;
    changed.deployment = attempt.deployment;
    const Result<JudgedEngine> after = judge_engine(plain, changed, model);
    if (!after || !mends(judged, *after)) continue;
    for (JudgedFinding& found : shared) {
      if (is_about_memory(found)) found.suggestion = attempt.text;
    }
    return;
  }
}

}  // namespace

void complete_suggestions(const ValidateQuestion& question, const EngineQuestion& engine,
                          const LoadedModel* model, JudgedEngine& judged) {
  leave_out_faulty_arguments(judged);
  find_room(question, engine, model, judged);
}

std::string suggestion_for_refusal(const ValidateQuestion& question, const EngineQuestion& engine,
                                   const LoadedModel* model) {
  ValidateQuestion plain = question;
  plain.suggest = false;
  for (const hardware::Device& device : hardware::known_devices()) {
    if (model == nullptr || device.id == question.base.device.id) continue;
    plain.base.device = device;
    const Result<JudgedEngine> after = judge_engine(plain, engine, model);
    const bool runs = after && after->resolved.target && !after->resolved.target->error;
    if (runs) return "--device " + device.id;
  }
  return "no change of the device removes it";
}

}  // namespace kernelpath::cli
