#include "features/question.h"

#include "base/assert.h"
#include "features/argument_table.h"
#include "features/argument_tree.h"

#include <algorithm>

namespace kernelpath::features {
namespace {

Context stated(const RuleTable& table, const CombinationQuestion& question) {
  Context context(table);
  Facts facts = question.facts;
  const auto& unread = question.arguments.unread();
  facts.resolved.unread_options.insert(facts.resolved.unread_options.end(), unread.begin(),
                                       unread.end());
  context.state(to_tree(facts));
  return context;
}

// "--set trtllm.load_format" is too long a name for a change: the field's own will do.
std::string shown_name(const FieldInfo& field, const ArgumentOrigin& origin) {
  const bool option = origin.shown.starts_with("--") && !origin.shown.starts_with("--set ");
  return option ? origin.shown : field.name;
}

CombinationAnswer answer(const Context& context, const CombinationQuestion& question) {
  CombinationAnswer out;
  Outcome outcome = validate(context, question.scope);
  out.worst = outcome.worst;
  SuggestOptions search = question.search;
  search.scope = question.scope;
  for (const FieldInfo& field : context.table().schema.fields()) {
    const ArgumentOrigin* const origin = question.arguments.origin(field.name);
    const bool itself = find_argument_value(question.arguments.tree(), field.name) != nullptr;
    if (origin != nullptr && itself) search.names[field.name] = shown_name(field, *origin);
  }
  std::size_t errors = 0;
  for (Finding& finding : outcome.findings) {
    JudgedFinding judged;
    if (finding.level == Level::kError) {
      ++errors;
      if (question.suggest) {
        judged.suggestion = suggestion_text(suggest_for(context, *finding.rule, search), search);
      }
    }
    judged.finding = std::move(finding);
    out.findings.push_back(std::move(judged));
  }
  if (question.suggest && errors > 1) {
    search.max_changes = std::max(search.max_changes, errors);
    out.suggestion = suggestion_text(suggest_all(context, search), search);
  }
  return out;
}

}  // namespace

Context context_of(const CombinationQuestion& question) {
  KERNELPATH_ASSERT(question.table != nullptr);
  Context context = stated(*question.table, question);
  const json::Value& arguments = question.arguments.tree();
  ArgumentFaults faults;
  if (const ArgumentTable* const known = find_argument_table(question.table->engine)) {
    faults = check_arguments(*known, arguments);
  }
  context.state(arguments);
  state_faults(context, faults);
  return context;
}

CombinationAnswer judge_combination(const CombinationQuestion& question) {
  return answer(context_of(question), question);
}

CombinationAnswer judge_shared(const CombinationQuestion& question) {
  const RuleTable* const shared = find_rule_table("all");
  return answer(stated(*shared, question), question);
}

}  // namespace kernelpath::features
