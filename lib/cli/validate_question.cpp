#include "cli/validate_question.h"

#include "base/file.h"
#include "base/text.h"
#include "cli/information.h"
#include "cli/variable_inputs.h"
#include "features/argument_table.h"
#include "features/argument_tree.h"
#include "features/rule_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace kernelpath::cli {
namespace {

using features::ArgumentOrigin;
using features::StatedArguments;

Result<void> check_rule_ids(const Settings& settings, Option option) {
  const std::vector<std::string>& asked = settings.list(option);
  if (asked.empty()) return {};
  const std::vector<std::string> known = table_words("rules");
  for (const std::string& id : asked) {
    const bool found = std::any_of(known.begin(), known.end(), [&](const std::string& name) {
      return equal_ignoring_case(name, id);
    });
    if (found) continue;
    const std::vector<std::string_view> names(known.begin(), known.end());
    return fail({.code = ErrorCode::kUsageUnknown,
                 .message = "no rule has this id",
                 .where = settings.of(option).where,
                 .value = shorten(id, 64),
                 .hint = "--list rules prints them all",
                 .near_matches = near_matches(id, names)});
  }
  return {};
}

Result<features::YamlDocument> read_options_file(const std::string& path) {
  KERNELPATH_TRY(file, read_file(path, json::Limits{}.max_bytes));
  return features::parse_yaml(file.text, path);
}

// The engine of --command is the one that is asked; --engine must not leave it out.
Result<void> keep_engine(std::string_view name, std::string_view because, Question& question) {
  std::erase_if(question.engines,
                [&](const EngineQuestion& asked) { return asked.engine->name() != name; });
  for (EngineQuestion& asked : question.engines) asked.named = true;
  if (!question.engines.empty()) return {};
  return fail({.code = ErrorCode::kUsageConflict,
               .message = fmt::format("speaks of {}, which --engine leaves out", name),
               .where = std::string(because)});
}

// Engines without a table cannot be judged: an error where the user named them.
Result<void> keep_engines_with_rules(Question& question) {
  const auto has_rules = [](const EngineQuestion& asked) {
    return features::find_rule_table(asked.engine->name(), asked.engine->version()) != nullptr;
  };
  if (std::none_of(question.engines.begin(), question.engines.end(), has_rules)) {
    return fail({.code = ErrorCode::kUnavailable,
                 .message = "this build has no rules for the engines asked",
                 .where = "--engine"});
  }
  std::erase_if(question.engines, [&](const EngineQuestion& asked) { return !has_rules(asked); });
  return {};
}

Result<void> check_backend(const Settings& settings) {
  const std::string& name = settings.text(Option::kBackend);
  if (name.empty()) return {};
  const std::vector<std::string> known = table_words("backends");
  const bool found = std::any_of(known.begin(), known.end(), [&](const std::string& backend) {
    return equal_ignoring_case(backend, name);
  });
  if (found) return {};
  const std::vector<std::string_view> names(known.begin(), known.end());
  return fail({.code = ErrorCode::kUsageUnknown,
               .message = "no engine has such an attention backend; they have " + join_words(known),
               .where = settings.of(Option::kBackend).where,
               .value = shorten(name, 64),
               .hint = "--set ENGINE.FIELD=NAME states a name as it is",
               .near_matches = near_matches(name, names)});
}

// --set FIELD must be an argument of the engine's table; what its value must be is for the rules.
Result<void> check_setting(const features::ArgumentTable& table, const std::string& field) {
  const json::Value only =
      features::with_argument(json::Value::object({}), field, json::Value::null());
  // A table that does not hold every argument refuses none.
  if (!table.complete || features::check_arguments(table, only).unknown.empty()) return {};
  return fail({.code = ErrorCode::kUsageUnknown,
               .message = fmt::format("{} {} has no such argument", table.engine, table.version),
               .where = "--set",
               .value = shorten(fmt::format("{}.{}", table.engine, field), 64),
               .near_matches = table.near(field)});
}

struct Stated {
  const json::Value* value = nullptr;
  std::string shown;
};

// Two of our own options that state one argument differently: there is no order between them.
Result<void> check_conflicts(const features::RuleTable& table,
                             const engines::Deployment& deployment) {
  engines::Deployment options = deployment;
  options.settings.clear();
  StatedArguments before = features::arguments_of(table, options);
  for (const auto& setting : deployment.settings) {
    options.settings = {setting};
    const StatedArguments after = features::arguments_of(table, options);
    const std::string& field = setting.first;
    const json::Value* const old = features::find_argument_value(before.tree(), field);
    const json::Value* const now = features::find_argument_value(after.tree(), field);
    if (old != nullptr && now != nullptr && !(*old == *now)) {
      const ArgumentOrigin* const origin = before.origin(field);
      return fail(
          {.code = ErrorCode::kUsageConflict,
           .message = fmt::format("states {}, but {} states {}", now->brief(),
                                  origin != nullptr ? origin->shown : "an option", old->brief()),
           .where = fmt::format("--set {}.{}", table.engine, field),
           .hint = "give one of the two"});
    }
    if (now != nullptr) before.set(field, *now, {.shown = "--set " + field});
  }
  return {};
}

using Leaves = std::vector<std::pair<std::string, const json::Value*>>;

// Values that are no objects, by dotted path; an empty object is a value too.
void collect_leaves(const json::Value& value, const std::string& path, Leaves& out) {
  if (!value.is_object() || value.members().empty()) {
    if (!path.empty()) out.emplace_back(path, &value);
    return;
  }
  for (const json::Member& member : value.members()) {
    collect_leaves(member.value, path.empty() ? member.key : path + "." + member.key, out);
  }
}

void add_over(StatedArguments& base, const StatedArguments& over) {
  Leaves leaves;
  collect_leaves(over.tree(), "", leaves);
  for (const auto& [path, value] : leaves) {
    const ArgumentOrigin* const origin = over.origin(path);
    base.set(path, *value, origin != nullptr ? *origin : ArgumentOrigin{.shown = path});
  }
  for (const std::string& text : over.unread()) base.add_unread(text);
}

// "/compilation-config/mode" of the file, where `option` is "/compilation-config" and sets
// "compilation_config": "compilation_config.mode".
std::string argument_at(std::string_view pointer, std::string_view option, std::string_view sets) {
  std::string out(sets);
  for (const std::string& part : split(pointer.substr(option.size()), '/')) {
    if (!part.empty()) out += "." + part;
  }
  return out;
}

// A command line whose options files hold options: what they state points into the file.
StatedArguments stated_by_options(const ValidateQuestion& question) {
  StatedArguments out;
  out.add_command(*question.command);
  for (const features::CommandReading::InFile& stated : question.command->in_files) {
    const features::YamlDocument& file = question.files[stated.file];
    for (const auto& [pointer, position] : file.places) {
      const bool inside = pointer == stated.pointer || pointer.starts_with(stated.pointer + "/");
      if (!inside) continue;
      const std::string path = argument_at(pointer, stated.pointer, stated.argument);
      const json::Value* const value = features::find_argument_value(out.tree(), path);
      if (value == nullptr) continue;
      const json::Value kept = *value;
      out.set(path, kept, {.shown = pointer.substr(1), .file = file.file, .position = position});
    }
  }
  return out;
}

// Options files, the command line over them, and over that what the engine lets a file override.
StatedArguments engine_inputs(const ValidateQuestion& question) {
  if (!question.command_engine.empty()) return stated_by_options(question);
  StatedArguments files;
  for (const features::YamlDocument& file : question.files) files.add_file(file);
  if (!question.command) return files;
  StatedArguments out = files;
  out.add_command(*question.command);
  for (const std::string& path : question.command->file_wins) {
    const json::Value* const value = features::find_argument_value(files.tree(), path);
    const ArgumentOrigin* const origin = files.origin(path);
    if (value != nullptr && origin != nullptr) out.set(path, *value, *origin);
  }
  return out;
}

// Of a list, its items between commas.
std::string setting_text(const json::Value& value) {
  if (value.is_array()) {
    std::vector<std::string> items;
    for (const json::Value& item : value.items()) items.push_back(setting_text(item));
    return join(items, ",");
  }
  if (value.is_string()) return value.as_string();
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  return value.is_number() ? value.number_text() : "null";
}

// What the engine's resolution reads of the arguments. A value that it refuses is left out: the
// rules find it.
void fill_deployment(const EngineQuestion& engine, const StatedArguments& options,
                     const StatedArguments& inputs, engines::Deployment& deployment) {
  std::vector<std::pair<std::string, std::string>> asked = std::move(deployment.settings);
  deployment.settings.clear();
  for (const engines::TableRow& row : engine.engine->table("settings")) {
    const json::Value* const value = features::find_argument_value(inputs.tree(), row.name);
    const bool overridden = features::find_argument_value(options.tree(), row.name) != nullptr;
    if (value == nullptr || overridden || value->is_object()) continue;
    asked.emplace_back(row.name, setting_text(*value));
  }
  for (const auto& setting : asked) {
    engines::Deployment only;
    only.settings = {setting};
    if (engine.engine->check(only, engine.environment)) deployment.settings.push_back(setting);
  }
}

// Whose options files these are: of the program in --command, of the engine that --engine names
// alone, else extra LLM API options of TensorRT-LLM.
std::string engine_of_files(const Settings& settings, const ValidateQuestion& question) {
  if (question.command) return question.command->engine;
  const std::vector<EngineQuestion>& asked = question.base.engines;
  const bool alone = settings.is_set(Option::kEngine) && !asked.empty() &&
                     std::all_of(asked.begin(), asked.end(), [&](const EngineQuestion& other) {
                       return other.engine->name() == asked.front().engine->name();
                     });
  return alone ? std::string(asked.front().engine->name()) : "trtllm";
}

// A rule says what becomes of the variable, whether the engine reads it or not.
bool has_rules(const features::RuleTable& table, std::string_view variable) {
  const auto& fields = table.schema.fields();
  return std::any_of(fields.begin(), fields.end(), [variable](const features::FieldInfo& field) {
    return field.variable == variable;
  });
}

// The variables of --env that only rules speak of, and warnings of those that nobody does.
void add_unread_variables(const features::RuleTable& table, const ValidateQuestion& question,
                          const EngineQuestion& engine, EngineArguments& out) {
  for (const auto& variable : engine.variables) {
    const bool read = engine.environment.variable(variable.first) != nullptr ||
                      states_option(question, engine, variable.first);
    if (!read && has_rules(table, variable.first)) out.judged_variables.push_back(variable);
  }
  for (const std::string& warning : engine.warnings) {
    const auto speaks_of = [&](const auto& variable) {
      return warning.starts_with("--env " + variable.first + ":");
    };
    const bool said =
        std::ranges::any_of(out.judged_variables, speaks_of) ||
        std::ranges::any_of(engine.variables, [&](const auto& variable) {
          return speaks_of(variable) && states_option(question, engine, variable.first);
        });
    if (!said) out.stated.add_unread(warning);
  }
}

void add_variables(const features::RuleTable& table, const ValidateQuestion& question,
                   const EngineQuestion& engine, EngineArguments& out) {
  if (!question.command) return;
  const auto known = engine.engine->table("variables");
  for (const auto& variable : question.command->variables) {
    const bool read = std::any_of(known.begin(), known.end(), [&](const engines::TableRow& row) {
      return row.name == variable.first;
    });
    if (!read && states_option(question, engine, variable.first)) continue;
    if (!read && has_rules(table, variable.first)) {
      out.judged_variables.push_back(variable);
    } else if (!read) {
      out.stated.add_unread(fmt::format("{}: {} {} does not read this variable", variable.first,
                                        engine.engine->name(), engine.engine->version()));
    } else if (out.environment.variable(variable.first) == nullptr) {
      out.environment.variables.push_back(variable);
    }
  }
}

}  // namespace

Result<void> read_command_into(ValidateQuestion& question) {
  const bool options = !question.command_engine.empty();
  const std::span<const features::YamlDocument> files(question.files.data(),
                                                      options ? question.files.size() : 0);
  Result<features::CommandReading> command =
      question.command_text.empty()
          ? features::read_options_files(files, question.command_engine, question.command_version)
          : features::read_command(question.command_text, question.command_version, files);
  if (!command) return fail(std::move(command).error());
  question.command = std::move(*command);
  return {};
}

Result<ValidateQuestion> question_of_version(const ValidateQuestion& question,
                                             const EngineQuestion& engine) {
  ValidateQuestion out = question;
  if (!question.command || question.command->engine != engine.engine->name()) return out;
  if (question.command->version == engine.engine->version()) return out;
  out.command_version = engine.engine->version();
  KERNELPATH_CHECK_OK(read_command_into(out));
  return out;
}

bool states_a_combination(const Settings& settings) {
  constexpr std::array kInputs = {Option::kSet, Option::kYaml,  Option::kCommand,
                                  Option::kEnv, Option::kLacks, Option::kHas};
  const auto is_set = [&settings](Option option) { return settings.is_set(option); };
  if (std::any_of(kInputs.begin(), kInputs.end(), is_set)) return true;
  const auto rows = option_table();
  return std::any_of(rows.begin(), rows.end(), [&](const OptionRow& row) {
    return row.group == Group::kDeployment && settings.is_set(row.id);
  });
}

Result<ValidateQuestion> make_validate_question(const Settings& settings,
                                                const ProcessEnvironment& process,
                                                const ExternalModels& external_models) {
  KERNELPATH_CHECK_OK(check_rule_ids(settings, Option::kRule));
  KERNELPATH_CHECK_OK(check_rule_ids(settings, Option::kSkip));
  KERNELPATH_CHECK_OK(check_backend(settings));
  ValidateQuestion out;
  KERNELPATH_TRY(base, make_rules_question(settings, process, external_models));
  out.base = std::move(base);
  std::vector<std::string> paths;
  if (settings.is_set(Option::kCommand)) {
    out.command_text = settings.text(Option::kCommand);
    KERNELPATH_CHECK_OK(read_command_into(out));
    KERNELPATH_CHECK_OK(keep_engine(out.command->engine, "--command", out.base));
    paths = out.command->options_files;
  }
  const std::vector<std::string>& files = settings.list(Option::kYaml);
  const std::string owner = engine_of_files(settings, out);
  if (!files.empty()) KERNELPATH_CHECK_OK(keep_engine(owner, "--yaml", out.base));
  paths.insert(paths.end(), files.begin(), files.end());
  for (const std::string& path : paths) {
    KERNELPATH_TRY(document, read_options_file(path));
    out.files.push_back(std::move(document));
  }
  KERNELPATH_CHECK_OK(keep_engines_with_rules(out.base));
  if (!out.files.empty() && features::file_holds_options(owner)) {
    out.command_engine = owner;
    KERNELPATH_CHECK_OK(read_command_into(out));
  }
  out.scope.all_arguments_known = out.command.has_value() || !out.files.empty();
  out.scope.only = settings.list(Option::kRule);
  out.scope.skip = settings.list(Option::kSkip);
  out.suggest = settings.flag(Option::kSuggest);
  return out;
}

Result<EngineArguments> engine_arguments(const ValidateQuestion& question,
                                         const EngineQuestion& engine) {
  const features::RuleTable& table =
      *features::find_rule_table(engine.engine->name(), engine.engine->version());
  if (const features::ArgumentTable* const known =
          features::find_argument_table(table.engine, table.version)) {
    for (const auto& setting : engine.deployment.settings) {
      KERNELPATH_CHECK_OK(check_setting(*known, setting.first));
    }
  } else if (engine.engine->name() == "kernelpath") {
    // Its own reader knows every setting and value.
    engines::Deployment only;
    only.settings = engine.deployment.settings;
    KERNELPATH_CHECK_OK(engine.engine->check(only, engine.environment));
  }
  KERNELPATH_CHECK_OK(check_conflicts(table, engine.deployment));
  const StatedArguments options = features::arguments_of(table, engine.deployment);
  const StatedArguments inputs = over_variables(question, engine, engine_inputs(question));
  EngineArguments out{
      .stated = inputs, .deployment = engine.deployment, .environment = engine.environment};
  add_over(out.stated, options);
  fill_deployment(engine, options, inputs, out.deployment);
  add_unread_variables(table, question, engine, out);
  add_variables(table, question, engine, out);
  return out;
}

}  // namespace kernelpath::cli
