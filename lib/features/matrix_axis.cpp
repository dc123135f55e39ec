#include "base/text.h"
#include "features/matrix.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::features {
namespace {

std::string_view without_dashes(std::string_view name) {
  while (name.starts_with('-')) name.remove_prefix(1);
  return name;
}

// An argument by the option that sets it, in full or by the beginning of its name ("spec"), or any
// field by its own name.
std::optional<std::uint32_t> find_field(const Schema& schema, std::string_view name) {
  const std::string option = "--" + std::string(without_dashes(name));
  if (const auto found = schema.find(name)) return found;
  std::optional<std::uint32_t> begins;
  for (std::uint32_t i = 0; i < schema.size(); ++i) {
    const FieldInfo& field = schema.field(i);
    if (field.kind != FieldKind::kArgument) continue;
    if (field.option == option) return i;
    if (!begins && option.size() > 4 && field.option.starts_with(option)) begins = i;
  }
  return begins;
}

Error unknown_axis(const Schema& schema, std::string_view name) {
  std::vector<std::string> names;
  for (const FieldInfo& field : schema.fields()) {
    if (field.kind != FieldKind::kArgument) continue;
    if (!field.option.empty()) names.push_back(field.option.substr(2));
    names.push_back(field.name);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  return {.code = ErrorCode::kUsageUnknown,
          .message = fmt::format("no argument is called '{}'", name),
          .where = "--matrix",
          .hint = "a field of the engine, or an option such as backend, kv, speculative",
          .near_matches = near_matches(without_dashes(name), views)};
}

void add_once(std::vector<Value>& values, const Value& value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

// What the rules compare the field with.
void add_compared(std::vector<Value>& values, const RuleTable& table, std::uint32_t field) {
  const auto side = [field](const Expression& e, std::uint32_t node) {
    return e.nodes[node].kind == NodeKind::kField && e.nodes[node].field == field;
  };
  const auto literal = [](const Expression& e, std::uint32_t node) {
    return e.nodes[node].kind == NodeKind::kLiteral ? e.nodes[node].literal : Value();
  };
  for (const Rule& rule : table.rules) {
    for (const Node& node : rule.when.nodes) {
      const bool comparison = node.kind >= NodeKind::kEqual && node.kind <= NodeKind::kGreaterEqual;
      if (!comparison) continue;
      const auto children = rule.when.children_of(node);
      if (side(rule.when, children[0])) add_once(values, literal(rule.when, children[1]));
      if (side(rule.when, children[1])) add_once(values, literal(rule.when, children[0]));
    }
  }
}

}  // namespace

Result<MatrixAxis> find_axis(const RuleTable& table, std::string_view name) {
  const auto field = find_field(table.schema, name);
  if (!field) return fail(unknown_axis(table.schema, name));
  const FieldInfo& info = table.schema.field(*field);
  // Null stands for "left out": a default of its own is listed only where it is no value of the
  // list.
  MatrixAxis out{.field = *field, .name = std::string(name), .values = {}};
  const bool listed =
      std::find(info.values.begin(), info.values.end(), info.default_value) != info.values.end();
  if (!listed) out.values.emplace_back();
  for (const Value& value : info.values) add_once(out.values, value);
  if (info.type == FieldType::kBool) {
    out.values = {Value::boolean(false), Value::boolean(true)};
  }
  if (info.values.empty() && info.type != FieldType::kBool) {
    add_compared(out.values, table, *field);
  }
  if (out.values.size() > 1) return out;
  return fail({.code = ErrorCode::kUsage,
               .message = fmt::format("'{}' has no known values to enumerate", info.name),
               .where = "--matrix",
               .hint = fmt::format("give them: --matrix={}:VALUE:VALUE", name)});
}

Result<MatrixAxis> make_axis(Context& context, std::string_view name,
                             const std::vector<std::string>& values) {
  const Schema& schema = context.table().schema;
  const auto field = find_field(schema, name);
  if (!field) return fail(unknown_axis(schema, name));
  MatrixAxis out{.field = *field, .name = std::string(name), .values = {}};
  Context reader(context.table());
  for (const std::string& text : values) {
    const bool left_out = text.empty() || text == "default";
    const bool bool_or_string = reader.state(*field, json::Value::string(text));
    if (!left_out && !bool_or_string) {
      return fail(
          {.code = ErrorCode::kUsage,
           .message = fmt::format("'{}' is no value of {} ({})", text, schema.field(*field).name,
                                  field_type_name(schema.field(*field).type)),
           .where = "--matrix"});
    }
    const Value& read = reader.value(*field);
    // Texts must live as long as the context that they are judged in.
    const bool string = read.type() == ValueType::kString;
    const Value kept = string ? context.arena().string(read.as_text().text) : read;
    add_once(out.values, left_out ? Value() : kept);
  }
  return out;
}

}  // namespace kernelpath::features
