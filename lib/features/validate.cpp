#include "features/validate.h"

#include "base/text.h"
#include "json/document.h"

#include <algorithm>
#include <optional>

namespace kernelpath::features {
namespace {

bool names_rule(const std::vector<std::string>& ids, const Rule& rule) {
  return std::any_of(ids.begin(), ids.end(),
                     [&rule](const std::string& id) { return equal_ignoring_case(id, rule.id); });
}

bool takes_place(const Effect& effect, const Slots& slots) {
  return !effect.when || evaluate(*effect.when, slots).is_true();
}

// The field that a finding points at.
std::optional<std::uint32_t> place(const Rule& rule, const Slots& slots) {
  for (const std::uint32_t field : rule.at) {
    if (slots.stated[field] != 0) return field;
  }
  if (rule.at.empty()) return std::nullopt;
  return rule.at.front();
}

// Runs the rules over a working copy of the values, in order; `on_hit` sees the values as the
// engine has them at that point.
template <class OnHit>
void walk(const Context& context, const Scope& scope, OnHit on_hit) {
  std::vector<Value> values = context.values();
  const Slots slots{.values = values.data(), .stated = context.slots().stated};
  std::vector<std::pair<std::uint32_t, Value>> changes;
  for (const Rule& rule : context.table().rules) {
    if (!is_asked(rule, scope) || !evaluate(rule.when, slots).is_true()) continue;
    if (is_shown(rule, scope)) on_hit(rule, slots);
    // All new values are computed from the old ones before any is set.
    changes.clear();
    for (const Effect& effect : rule.effects) {
      if (!effect.assigns || !takes_place(effect, slots)) continue;
      changes.emplace_back(*effect.assigns, evaluate(*effect.value, slots));
    }
    for (const auto& [field, value] : changes) values[field] = value;
  }
}

Judgement add(Judgement so_far, const Rule& rule) {
  // Strictly worse only: the first of the worst level decides.
  if (rule.level > so_far.worst) return {.worst = rule.level, .deciding = &rule};
  return so_far;
}

Finding make_finding(const Context& context, const Rule& rule, const Slots& slots,
                     const std::string& item) {
  Finding out{.rule = &rule, .id = rule.id, .level = rule.level, .engine = context.table().engine};
  if (const auto at = place(rule, slots)) {
    const FieldInfo& field = context.table().schema.field(*at);
    out.field = field.name;
    out.option = field.option;
  }
  // An item reads "NAME: what is wrong with it".
  if (!item.empty()) out.field = item.substr(0, item.find(": "));
  out.pointer = field_pointer(out.field);
  out.message = rule.message.render(slots, item);
  out.fix = rule.fix.render(slots, item);
  for (const Effect& effect : rule.effects) {
    if (!takes_place(effect, slots)) continue;
    json::Value value = effect.value ? to_json(evaluate(*effect.value, slots))
                                     : json::Value::string(effect.sentence.render(slots, item));
    out.effects.emplace_back(effect.name, std::move(value));
  }
  return out;
}

void add_findings(std::vector<Finding>& out, const Context& context, const Rule& rule,
                  const Slots& slots) {
  if (!rule.each) {
    out.push_back(make_finding(context, rule, slots, {}));
    return;
  }
  const Value& list = slots.values[*rule.each];
  if (list.type() != ValueType::kList) return;
  for (const Value& item : list.as_list().items) {
    out.push_back(make_finding(context, rule, slots, to_display(item)));
  }
}

}  // namespace

bool is_asked(const Rule& rule, const Scope& scope) {
  if (rule.needs_all_arguments && !scope.all_arguments_known) return false;
  return scope.beyond_arguments || rule.stage <= Stage::kArguments;
}

bool is_shown(const Rule& rule, const Scope& scope) {
  if (rule.level == Level::kDerive || names_rule(scope.skip, rule)) return false;
  return scope.only.empty() || names_rule(scope.only, rule);
}

Outcome validate(const Context& context, const Scope& scope) {
  Outcome out;
  Judgement judgement;
  walk(context, scope, [&](const Rule& rule, const Slots& slots) {
    judgement = add(judgement, rule);
    add_findings(out.findings, context, rule, slots);
  });
  out.worst = judgement.worst;
  out.deciding = judgement.deciding;
  return out;
}

Judgement judge(const Context& context, const Scope& scope) {
  Judgement out;
  walk(context, scope, [&out](const Rule& rule, const Slots&) { out = add(out, rule); });
  return out;
}

std::vector<Violation> violations(const Context& context, const Scope& scope, Level level) {
  std::vector<Violation> out;
  const std::size_t size = context.values().size();
  walk(context, scope, [&out, level, size](const Rule& rule, const Slots& slots) {
    if (rule.level < level) return;
    out.push_back({.rule = &rule, .values = std::vector<Value>(slots.values, slots.values + size)});
  });
  return out;
}

std::string field_pointer(std::string_view field) {
  std::string out;
  for (const std::string& part : split(field, '.')) out += "/" + json::pointer_token(part);
  return out;
}

}  // namespace kernelpath::features
