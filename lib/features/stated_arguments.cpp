#include "features/stated_arguments.h"

#include "base/text.h"
#include "features/argument_tree.h"

#include <fmt/format.h>

namespace kernelpath::features {
namespace {

// A value of --set: as JSON where it reads as JSON, else as YAML resolves a plain word. A word for
// yes or no is text where the field holds text: flash_attn is on, not true. What stands between
// commas is a list where the field is one.
json::Value setting_value(const FieldInfo* field, const std::string& text) {
  const bool structured = text.starts_with('[') || text.starts_with('{') || text.starts_with('"');
  if (structured) {
    const auto document = json::parse(text, "--set");
    if (document) return document->root;
  }
  json::Value plain = resolve_plain_scalar(text);
  if (field == nullptr || plain.is_null()) return plain;
  if (field->type == FieldType::kString && plain.is_bool()) return json::Value::string(text);
  if (field->type != FieldType::kList) return plain;
  std::vector<json::Value> items;
  for (const std::string& item : split(text, ',')) items.push_back(resolve_plain_scalar(item));
  return json::Value::array(std::move(items));
}

class DeploymentReader {
 public:
  explicit DeploymentReader(const RuleTable& table) : table_(table) {}

  StatedArguments run(const engines::Deployment& deployment) {
    text("--backend", deployment.backend);
    text("--dtype", deployment.dtype);
    text("--kv", deployment.kv_dtype);
    text("--quantization", deployment.quantization);
    number("--page-size", deployment.page_size);
    number("--max-model-len", deployment.max_model_len);
    number("--batch-size", deployment.batch_size);
    size("--tp", deployment.tp);
    size("--pp", deployment.pp);
    size("--dp", deployment.dp);
    size("--ep", deployment.ep);
    size("--cp", deployment.cp);
    size("--dcp", deployment.dcp);
    text("--speculative", deployment.speculative);
    member("speculative_config.speculative_model", "--speculative", deployment.draft_model);
    number("--draft-tokens", deployment.draft_tokens);
    number("--draft-topk", deployment.draft_topk);
    for (const auto& [field, value] : deployment.settings) {
      const auto known = table_.schema.find(field);
      const FieldInfo* const info = known ? &table_.schema.field(*known) : nullptr;
      out_.set(field, setting_value(info, value),
               {.shown = fmt::format("--set {}.{}", table_.engine, field)});
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] const FieldInfo* field_of(std::string_view option) const {
    for (const FieldInfo& field : table_.schema.fields()) {
      if (field.kind == FieldKind::kArgument && field.option == option) return &field;
    }
    return nullptr;
  }

  void put(std::string_view option, json::Value value) {
    const FieldInfo* const field = field_of(option);
    if (field == nullptr) {
      out_.add_unread(fmt::format("{}: {} does not read it", option, table_.engine));
      return;
    }
    out_.set(field->name, std::move(value), {.shown = std::string(option)});
  }

  void text(std::string_view option, const std::optional<std::string>& value) {
    if (!value) return;
    const FieldInfo* const field = field_of(option);
    put(option, json::Value::string(field != nullptr ? spelled(*field, *value) : *value));
  }

  // The engine's spelling of a common name; names that only the engine knows pass as they are.
  static std::string spelled(const FieldInfo& field, const std::string& name) {
    for (const auto& [ours, theirs] : field.spellings) {
      if (equal_ignoring_case(ours, name)) return theirs;
    }
    for (const Value& value : field.values) {
      const bool same =
          value.type() == ValueType::kString && equal_ignoring_case(value.as_text().text, name);
      if (same) return value.as_text().text;
    }
    return name;
  }

  void number(std::string_view option, const std::optional<std::int64_t>& value) {
    if (value) put(option, json::Value::integer(*value));
  }

  // Parallel sizes are 1 unless stated. An engine that spreads over all ranks, or not, has a
  // switch.
  void size(std::string_view option, std::int64_t value) {
    if (value == 1) return;
    const FieldInfo* const field = field_of(option);
    const bool is_switch = field != nullptr && field->type == FieldType::kBool;
    put(option, is_switch ? json::Value::boolean(true) : json::Value::integer(value));
  }

  void member(std::string_view path, std::string_view option,
              const std::optional<std::string>& value) {
    const auto field = table_.schema.find(path);
    if (!value || !field) return;
    out_.set(table_.schema.field(*field).name, json::Value::string(*value),
             {.shown = std::string(option)});
  }

  const RuleTable& table_;
  StatedArguments out_;
};

}  // namespace

void StatedArguments::set(std::string_view path, json::Value value, ArgumentOrigin origin) {
  tree_ = with_argument(tree_, path, std::move(value));
  origins_[std::string(path)] = std::move(origin);
}

void StatedArguments::erase(std::string_view path) {
  tree_ = without_argument(tree_, path);
  const auto found = origins_.find(path);
  if (found != origins_.end()) origins_.erase(found);
}

void StatedArguments::add_file(const YamlDocument& document) {
  tree_ = merge_arguments(tree_, document.root);
  for (const auto& [pointer, position] : document.places) {
    if (pointer.empty()) continue;
    std::string path;
    for (const std::string& part : split(std::string_view(pointer).substr(1), '/')) {
      path += (path.empty() ? "" : ".") + part;
    }
    origins_[path] = {.shown = path, .file = document.file, .position = position};
  }
}

void StatedArguments::add_command(const CommandReading& command) {
  tree_ = merge_arguments(tree_, command.arguments);
  for (const auto& [path, option] : command.stated_by) origins_[path] = {.shown = option};
}

const ArgumentOrigin* StatedArguments::origin(std::string_view path) const {
  while (!path.empty()) {
    const auto found = origins_.find(path);
    if (found != origins_.end()) return &found->second;
    const std::size_t dot = path.rfind('.');
    path = dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
  }
  return nullptr;
}

StatedArguments arguments_of(const RuleTable& table, const engines::Deployment& deployment) {
  return DeploymentReader(table).run(deployment);
}

}  // namespace kernelpath::features
