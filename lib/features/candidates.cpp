#include "features/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace kernelpath::features {
namespace {

bool within(std::string_view name, std::string_view object) {
  return name.size() > object.size() && name.starts_with(object) && name[object.size()] == '.';
}

void leave_out(std::uint32_t field, Context& context) {
  const Schema& schema = context.table().schema;
  const std::string& name = schema.field(field).name;
  context.unstate(field);
  for (std::uint32_t i = 0; i < schema.size(); ++i) {
    if (within(schema.field(i).name, name)) context.unstate(i);
  }
}

void set(std::uint32_t field, const json::Value& value, Context& context) {
  const Schema& schema = context.table().schema;
  const std::string& name = schema.field(field).name;
  for (std::uint32_t i = 0; i < schema.size(); ++i) {
    const bool object = within(name, schema.field(i).name);
    if (object && context.value(i).type() != ValueType::kObject) {
      context.state(i, Value::object(1));
    }
  }
  (void)context.state(field, value);
}

void set_device(const DeviceChoice& device, Context& context) {
  const Schema& schema = context.table().schema;
  const auto put = [&](std::string_view name, std::optional<Value> value) {
    const auto field = schema.find(name);
    if (field) context.state(*field, value.value_or(Value()));
  };
  const auto number = [](const std::optional<std::int64_t>& n) {
    return n ? std::optional(Value::integer(*n)) : std::nullopt;
  };
  put("device.id", context.arena().string(device.id));
  put("device.sm", number(device.sm));
  const bool known = !device.platform.empty();
  put("device.platform", known ? context.arena().string(device.platform) : Value());
  put("device.memory_bytes", number(device.memory_bytes));
}

// The field that a side of a comparison stands for: itself, or inside upper(), lower(), len(), -x.
std::optional<std::uint32_t> field_of(const Expression& expression, std::uint32_t index) {
  const Node& node = expression.nodes[index];
  if (node.kind == NodeKind::kField) return node.field;
  const bool one =
      node.num_children == 1 && (node.kind == NodeKind::kCall || node.kind == NodeKind::kNegate);
  if (!one) return std::nullopt;
  return field_of(expression, expression.children_of(node)[0]);
}

bool holds_field(const Expression& expression, std::uint32_t index, std::uint32_t field) {
  const Node& node = expression.nodes[index];
  if (node.kind == NodeKind::kField) return node.field == field;
  const auto children = expression.children_of(node);
  return std::any_of(children.begin(), children.end(),
                     [&](std::uint32_t child) { return holds_field(expression, child, field); });
}

bool is_comparison(NodeKind kind) { return kind >= NodeKind::kEqual && kind <= NodeKind::kNotIn; }
bool is_arithmetic(NodeKind kind) { return kind >= NodeKind::kAdd && kind <= NodeKind::kModulo; }

// A value, and for whole numbers its neighbours: a strict bound is met one step beyond it.
void add_with_neighbours(std::vector<Value>& out, const Value& value) {
  if (value.type() == ValueType::kList) {
    for (const Value& item : value.as_list().items) out.push_back(item);
    return;
  }
  out.push_back(value);
  if (value.type() != ValueType::kInteger) return;
  const std::int64_t number = value.as_integer();
  if (number > INT64_MIN) out.push_back(Value::integer(number - 1));
  if (number < INT64_MAX) out.push_back(Value::integer(number + 1));
}

// Values that comparisons in `expression` put beside `field`.
void collect(std::vector<Value>& out, const Expression& expression, std::uint32_t field,
             const std::vector<Value>& values, const Slots& slots) {
  for (const Node& node : expression.nodes) {
    const auto children = expression.children_of(node);
    if (is_comparison(node.kind)) {
      for (std::size_t side = 0; side < 2; ++side) {
        if (field_of(expression, children[side]) != field) continue;
        // Items of any() and all() have no value here; they evaluate to null and add nothing
        // useful.
        add_with_neighbours(out, evaluate_node(expression, children[1 - side], slots));
      }
    }
    const bool sized = is_arithmetic(node.kind) && values[field].type() == ValueType::kInteger &&
                       (holds_field(expression, children[0], field) ||
                        holds_field(expression, children[1], field));
    if (!sized) continue;
    const std::int64_t now = values[field].as_integer();
    for (const std::int64_t size : {now / 2, std::int64_t{1}}) {
      if (size > 0) out.push_back(Value::integer(size));
    }
    if (now > 0 && now < (std::int64_t{1} << 40)) out.push_back(Value::integer(now * 2));
  }
}

bool fits(const Value& value, FieldType type) {
  switch (type) {
    case FieldType::kAny:
      return !value.is_null();
    case FieldType::kBool:
      return value.type() == ValueType::kBool;
    case FieldType::kInteger:
      return value.type() == ValueType::kInteger;
    case FieldType::kNumber:
      return value.is_number();
    case FieldType::kString:
      return value.type() == ValueType::kString;
    case FieldType::kList:
      return value.type() == ValueType::kList;
    case FieldType::kObject:
      return false;
  }
  return false;
}

// "leave out --env TLLM_FMHA_LIBS", "with flashinfer installed".
std::string environment_text(const FieldInfo& field, const std::optional<Value>& value) {
  constexpr std::string_view kAvailable = "available.";
  if (!field.variable.empty() && !value) return "leave out --env " + field.variable;
  if (field.name.starts_with(kAvailable)) {
    const bool there = !value || value->is_true();
    return fmt::format("{} {} installed", there ? "with" : "without",
                       field.name.substr(kAvailable.size()));
  }
  return fmt::format("{} {}", field.name, value ? to_display(*value) : "as by default");
}

}  // namespace

std::string Change::subject() const {
  if (device) return "device";
  if (word) return fmt::format("word {}", word->first);
  return name;
}

void apply(const Change& change, Context& context) {
  if (change.device) set_device(*change.device, context);
  const auto field = context.table().schema.find(change.name);
  if (!field) return;
  if (change.value) {
    set(*field, *change.value, context);
  } else {
    leave_out(*field, context);
  }
}

CandidateFinder::CandidateFinder(const RuleTable& table, std::vector<DeviceChoice> devices,
                                 std::map<std::string, std::string> names)
    : table_(table),
      devices_(std::move(devices)),
      names_(std::move(names)),
      behind_(table.schema.size()) {
  for (const Rule& rule : table.rules) {
    for (const Effect& effect : rule.effects) {
      if (!effect.assigns) continue;
      std::vector<const Expression*>& behind = behind_[*effect.assigns];
      behind.push_back(&rule.when);
      if (effect.when) behind.push_back(&*effect.when);
      if (effect.value) behind.push_back(&*effect.value);
    }
  }
}

std::vector<const Expression*> CandidateFinder::expressions_behind(const Rule& rule) const {
  std::vector<const Expression*> out = {&rule.when};
  std::set<const Expression*> seen = {&rule.when};
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (const Node& node : out[i]->nodes) {
      if (node.kind != NodeKind::kField) continue;
      for (const Expression* expression : behind_[node.field]) {
        if (seen.insert(expression).second) out.push_back(expression);
      }
    }
  }
  return out;
}

std::string CandidateFinder::name_of(const FieldInfo& field) const {
  const auto named = names_.find(field.name);
  if (named != names_.end()) return named->second;
  return field.option.empty() ? field.name : field.option;
}

Change CandidateFinder::change_of(std::uint32_t field, std::optional<Value> value) const {
  const FieldInfo& info = table_.schema.field(field);
  Change out{.kind = info.kind, .name = info.name};
  if (value) out.value = to_json(*value);
  const std::string name = name_of(info);
  if (info.kind == FieldKind::kEnvironment) {
    out.text = environment_text(info, value);
  } else if (!value) {
    out.text = "leave out " + name;
  } else {
    out.text = fmt::format("{}{}{}", name, name.starts_with("--") ? " " : ": ", to_display(*value));
  }
  return out;
}

void CandidateFinder::add_field(std::vector<Change>& out, std::uint32_t field,
                                const Context& context,
                                const std::vector<Value>& candidates) const {
  const FieldInfo& info = table_.schema.field(field);
  const Value& now = context.value(field);
  if (!info.only_batch.empty()) return;
  if (context.is_stated(field)) out.push_back(change_of(field, std::nullopt));
  // What to set an environment variable to, no rule says.
  if (!info.variable.empty()) return;
  std::vector<Value> values = candidates;
  if (info.type == FieldType::kBool) values.push_back(Value::boolean(!now.is_true()));
  if (!info.default_value.is_null()) values.push_back(info.default_value);
  values.insert(values.end(), info.values.begin(), info.values.end());
  std::vector<Value> offered;
  for (const Value& value : values) {
    const bool useless = value == now || !fits(value, info.type) ||
                         std::find(offered.begin(), offered.end(), value) != offered.end();
    if (useless) continue;
    offered.push_back(value);
    out.push_back(change_of(field, value));
  }
}

std::vector<Change> CandidateFinder::for_rule(const Rule& rule, const Context& context,
                                              const std::vector<Value>& values) const {
  const auto expressions = expressions_behind(rule);
  std::vector<std::uint32_t> fields = rule.at;
  for (const Expression* expression : expressions) {
    for (const Node& node : expression->nodes) {
      if (node.kind == NodeKind::kField) fields.push_back(node.field);
    }
  }
  const Slots slots{.values = values.data(), .stated = context.slots().stated};
  std::vector<Change> out;
  bool device = false;
  std::set<std::uint32_t> seen;
  for (const std::uint32_t field : fields) {
    if (!seen.insert(field).second) continue;
    const FieldKind kind = table_.schema.field(field).kind;
    device = device || kind == FieldKind::kDevice;
    if (kind != FieldKind::kArgument && kind != FieldKind::kEnvironment) continue;
    std::vector<Value> compared;
    for (const Expression* expression : expressions) {
      collect(compared, *expression, field, values, slots);
    }
    add_field(out, field, context, compared);
  }
  if (device) {
    std::vector<Change> devices = for_device();
    out.insert(out.end(), devices.begin(), devices.end());
  }
  return out;
}

std::vector<Change> CandidateFinder::for_field(std::uint32_t field, const Context& context,
                                               const std::vector<Value>& values) const {
  std::vector<Change> out;
  add_field(out, field, context, values);
  return out;
}

std::vector<Change> CandidateFinder::for_device() const {
  std::vector<Change> out;
  for (const DeviceChoice& choice : devices_) {
    out.push_back({.kind = FieldKind::kDevice, .device = choice, .text = "--device " + choice.id});
  }
  return out;
}

}  // namespace kernelpath::features
