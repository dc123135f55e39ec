#include "features/question.h"

#include "base/assert.h"
#include "features/argument_table.h"
#include "features/argument_tree.h"

#include <algorithm>
#include <utility>

namespace kernelpath::features {
namespace {

void state_variables(Context& context, const Facts& facts) {
  const auto& fields = context.table().schema.fields();
  for (const auto& [name, text] : facts.variables) {
    for (std::uint32_t i = 0; i < fields.size(); ++i) {
      const bool stated = fields[i].variable == name;
      if (stated) (void)context.state(i, variable_value(fields[i], text));
    }
  }
}

Context stated(const RuleTable& table, const CombinationQuestion& question) {
  Context context(table);
  Facts facts = question.facts;
  const auto& unread = question.arguments.unread();
  facts.resolved.unread_options.insert(facts.resolved.unread_options.end(), unread.begin(),
                                       unread.end());
  context.state(to_tree(facts));
  state_variables(context, facts);
  return context;
}

// "--set trtllm.load_format" is too long a name for a change: the field's own will do.
std::string shown_name(const FieldInfo& field, const ArgumentOrigin& origin) {
  const bool option = origin.shown.starts_with("--") && !origin.shown.starts_with("--set ");
  return option ? origin.shown : field.name;
}

CombinationAnswer answer(const Context& context, const Scope& scope) {
  Outcome outcome = validate(context, scope);
  return {.findings = std::move(outcome.findings), .worst = outcome.worst};
}

}  // namespace

Context context_of(const CombinationQuestion& question) {
  KERNELPATH_ASSERT(question.table != nullptr);
  Context context = stated(*question.table, question);
  const json::Value& arguments = question.arguments.tree();
  ArgumentFaults faults;
  if (const ArgumentTable* const known =
          find_argument_table(question.table->engine, question.table->version)) {
    faults = check_arguments(*known, arguments);
  }
  context.state(arguments);
  state_faults(context, faults);
  return context;
}

CombinationAnswer judge_combination(const CombinationQuestion& question) {
  return answer(context_of(question), question.scope);
}

Context shared_context_of(const CombinationQuestion& question) {
  return stated(*find_rule_table("all"), question);
}

CombinationAnswer judge_shared(const CombinationQuestion& question) {
  return answer(shared_context_of(question), question.scope);
}

std::map<std::string, std::string> names_of(const CombinationQuestion& question) {
  std::map<std::string, std::string> out;
  for (const FieldInfo& field : question.table->schema.fields()) {
    const ArgumentOrigin* const origin = question.arguments.origin(field.name);
    const bool itself = find_argument_value(question.arguments.tree(), field.name) != nullptr;
    if (origin != nullptr && itself) out[field.name] = shown_name(field, *origin);
  }
  // An object of which one member was stated goes by that member's name: nobody wrote the object's.
  for (const FieldInfo& field : question.table->schema.fields()) {
    const auto is_member = [&](const auto& named) {
      return named.first.starts_with(field.name + ".");
    };
    if (out.contains(field.name) || std::ranges::count_if(out, is_member) != 1) continue;
    out[field.name] = std::ranges::find_if(out, is_member)->second;
  }
  return out;
}

}  // namespace kernelpath::features
