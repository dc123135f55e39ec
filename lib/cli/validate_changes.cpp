#include "cli/validate_changes.h"

#include "base/text.h"
#include "features/argument_tree.h"
#include "features/rule_table.h"

#include <algorithm>
#include <array>
#include <string>

namespace kernelpath::cli {
namespace {

using engines::Deployment;
using features::FieldInfo;
using Setting = std::pair<std::string, std::string>;

std::string setting_text(const json::Value& value) {
  if (value.is_string()) return value.as_string();
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  return value.is_number() ? value.number_text() : "null";
}

// A member of the deployment that a common option states; null pointers for the other kinds.
struct OptionMember {
  std::string_view option;
  std::optional<std::string> Deployment::*text = nullptr;
  std::optional<std::int64_t> Deployment::*number = nullptr;
  std::int64_t Deployment::*size = nullptr;  // 1 where nobody states it
};
constexpr std::array<OptionMember, 16> kMembers = {{
    {.option = "--backend", .text = &Deployment::backend},
    {.option = "--dtype", .text = &Deployment::dtype},
    {.option = "--kv", .text = &Deployment::kv_dtype},
    {.option = "--quantization", .text = &Deployment::quantization},
    {.option = "--page-size", .number = &Deployment::page_size},
    {.option = "--max-model-len", .number = &Deployment::max_model_len},
    {.option = "--batch-size", .number = &Deployment::batch_size},
    {.option = "--tp", .size = &Deployment::tp},
    {.option = "--pp", .size = &Deployment::pp},
    {.option = "--dp", .size = &Deployment::dp},
    {.option = "--ep", .size = &Deployment::ep},
    {.option = "--cp", .size = &Deployment::cp},
    {.option = "--dcp", .size = &Deployment::dcp},
    {.option = "--speculative", .text = &Deployment::speculative},
    {.option = "--draft-tokens", .number = &Deployment::draft_tokens},
    {.option = "--draft-topk", .number = &Deployment::draft_topk},
}};

void clear(const OptionMember& member, Deployment& deployment) {
  if (member.text != nullptr) (deployment.*member.text).reset();
  if (member.number != nullptr) (deployment.*member.number).reset();
  if (member.size != nullptr) deployment.*member.size = 1;
}

// False if the value is of no type that the option takes.
bool put(const OptionMember& member, const json::Value& value, Deployment& deployment) {
  if (member.text != nullptr) {
    deployment.*member.text = setting_text(value);
    return true;
  }
  if (!value.is_integer()) return false;
  if (member.number != nullptr) deployment.*member.number = value.as_integer();
  if (member.size != nullptr) deployment.*member.size = value.as_integer();
  return true;
}

bool is_or_within(std::string_view name, std::string_view object) {
  return name == object ||
         (name.size() > object.size() && name.starts_with(object) && name[object.size()] == '.');
}

// What the resolution reads of one engine's arguments.
class DeploymentChange {
 public:
  DeploymentChange(const features::RuleTable& table, const engines::Engine& engine,
                   engines::Deployment& deployment)
      : table_(table), engine_(engine), deployment_(deployment) {}

  void leave_out(std::string_view name) {
    std::erase_if(deployment_.settings,
                  [name](const Setting& setting) { return is_or_within(setting.first, name); });
    for (const FieldInfo& field : table_.schema.fields()) {
      if (!is_or_within(field.name, name)) continue;
      if (const OptionMember* const member = member_of(field)) clear(*member, deployment_);
      if (is_draft_model(field)) deployment_.draft_model.reset();
    }
  }

  // `as_option`: as its common option would state it. How many sequences there are at once, only
  // --batch-size says; the argument that it sets is a limit.
  void set(std::string_view name, const json::Value& value, bool as_option) {
    leave_out(name);
    const auto index = table_.schema.find(name);
    if (index) {
      const FieldInfo& field = table_.schema.field(*index);
      const OptionMember* const member = member_of(field);
      const bool limit = member != nullptr && member->option == "--batch-size" && !as_option;
      if (member != nullptr && !limit && put(*member, value, deployment_)) return;
      if (is_draft_model(field) && value.is_string()) deployment_.draft_model = value.as_string();
    }
    if (value.is_object() || value.is_array()) return;
    // A value that the resolution refuses is left out: the rules find it.
    const Setting setting(name, setting_text(value));
    Deployment only;
    only.settings = {setting};
    if (reads(name) && engine_.check(only, {})) deployment_.settings.push_back(setting);
  }

 private:
  // Of several fields with one option, the first is the one that the option's value states.
  [[nodiscard]] const OptionMember* member_of(const FieldInfo& field) const {
    const auto* const member =
        std::find_if(kMembers.begin(), kMembers.end(),
                     [&field](const OptionMember& m) { return m.option == field.option; });
    if (member == kMembers.end() || field.kind != features::FieldKind::kArgument) return nullptr;
    for (const FieldInfo& other : table_.schema.fields()) {
      if (other.kind != features::FieldKind::kArgument || other.option != field.option) continue;
      return &other == &field ? member : nullptr;
    }
    return nullptr;
  }

  // "--speculative draft:MODEL".
  [[nodiscard]] bool is_draft_model(const FieldInfo& field) const {
    return field.option == "--speculative" && member_of(field) == nullptr;
  }

  [[nodiscard]] bool reads(std::string_view name) const {
    const auto rows = engine_.table("settings");
    return std::any_of(rows.begin(), rows.end(),
                       [name](const engines::TableRow& row) { return row.name == name; });
  }

  const features::RuleTable& table_;
  const engines::Engine& engine_;
  engines::Deployment& deployment_;
};

void change_argument(const features::Change& change, EngineCombination& combination) {
  const features::RuleTable& table =
      *features::find_rule_table(combination.engine->name(), combination.engine->version());
  features::StatedArguments& stated = combination.arguments.stated;
  DeploymentChange deployment(table, *combination.engine, combination.arguments.deployment);
  std::vector<std::string> names = {change.name};
  if (const auto field = table.schema.find(change.name)) {
    const std::vector<std::string>& aliases = table.schema.field(*field).aliases;
    names.insert(names.end(), aliases.begin(), aliases.end());
  }
  const features::ArgumentOrigin* const known = stated.origin(change.name);
  const features::ArgumentOrigin origin =
      known != nullptr ? *known : features::ArgumentOrigin{.shown = change.name};
  const json::Value* const old = features::find_argument_value(stated.tree(), change.name);
  const json::Value moved = old != nullptr ? *old : json::Value::null();
  for (const std::string& name : names) {
    stated.erase(name);
    deployment.leave_out(name);
  }
  const std::string& target = change.renamed.empty() ? change.name : change.renamed;
  if (!change.value && change.renamed.empty()) return;
  const json::Value& value = change.value ? *change.value : moved;
  stated.set(target, value, origin);
  deployment.set(target, value, change.text.starts_with("--"));
}

// "available.flashinfer": the package is installed or not; else an environment variable that is no
// longer set.
void change_environment(const features::Change& change, EngineCombination& combination) {
  constexpr std::string_view kAvailable = "available.";
  engines::Environment& environment = combination.arguments.environment;
  if (!change.name.starts_with(kAvailable)) {
    const features::RuleTable& table =
        *features::find_rule_table(combination.engine->name(), combination.engine->version());
    const auto field = table.schema.find(change.name);
    if (!field || change.value) return;
    const std::string& variable = table.schema.field(*field).variable;
    std::erase_if(environment.variables,
                  [&variable](const Setting& setting) { return setting.first == variable; });
    return;
  }
  std::string package = change.name.substr(kAvailable.size());
  std::replace(package.begin(), package.end(), '_', '-');  // as --lacks spells it
  std::erase_if(environment.lacks,
                [&package](const std::string& name) { return equal_ignoring_case(name, package); });
  const bool there = !change.value || (change.value->is_bool() && change.value->as_bool());
  if (!there) environment.lacks.push_back(package);
}

}  // namespace

void apply_change(const features::Change& change, EngineCombination& combination) {
  if (change.device) {
    const Result<hardware::Device> device = hardware::find_device(change.device->id);
    if (device) combination.device = *device;
  } else if (change.kind == features::FieldKind::kEnvironment) {
    change_environment(change, combination);
  } else {
    change_argument(change, combination);
  }
}

}  // namespace kernelpath::cli
