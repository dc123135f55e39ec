#include "cli/information.h"

#include "base/build_info.h"
#include "base/text.h"
#include "cli/rule_information.h"
#include "engines/engine.h"
#include "engines/gguf_input.h"
#include "hardware/device.h"
#include "json/writer.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::cli {
namespace {

constexpr std::string_view kVersionOfSchemas = "1.0.0";
constexpr std::string_view kVersionOfExplain = "1.1.0";

void write_header(json::Writer& w, std::string_view schema,
                  std::string_view version = kVersionOfSchemas) {
  w.begin_object();
  w.member("schema", schema).member("schema_version", version);
}

std::string finish(json::Writer& w) {
  w.end_object();
  return w.take(2) + "\n";
}

std::string version_json(const Program& program) {
  const BuildInfo& build = build_info();
  json::Writer w;
  write_header(w, "kernelpath/version");
  w.member("program", program.name).member("version", build.version);
  w.member("commit", build.commit).member("build_type", build.build_type);
  w.member("compiler", build.compiler).member("sanitizers", build.sanitizers);
  w.member("cuda", build.cuda);
  w.key("libraries").begin_object();
  for (const BuildInfo::Library& library : build.libraries) w.member(library.name, library.version);
  w.end_object();
  w.key("engines").begin_array();
  for (const engines::Engine* engine : engines::all_engines()) {
    w.begin_object().member("engine", engine->name()).member("version", engine->version());
    w.end_object();
  }
  w.end_array();
  w.key("devices").begin_array();
  for (const hardware::Device& device : hardware::known_devices()) w.value(device.id);
  w.end_array();
  return finish(w);
}

std::string explain_rule_text(const engines::Engine& engine, const engines::RuleInfo& rule) {
  std::string out = fmt::format("{}  (rule of {} {})\n  {}\n", rule.id, engine.name(),
                                engine.version(), rule.summary);
  if (!rule.why.empty()) out += fmt::format("  why: {}\n", rule.why);
  if (!rule.remedy.empty()) out += fmt::format("  do: {}\n", rule.remedy);
  if (!rule.file.empty()) out += fmt::format("  source: {} @ {}\n", rule.file, rule.version);
  return out;
}

void explain_rule_json(json::Writer& w, const engines::Engine& engine,
                       const engines::RuleInfo& rule) {
  w.begin_object();
  w.member("id", rule.id).member("kind", "rule");
  w.member("engine", engine.name()).member("version", engine.version());
  w.member("summary", rule.summary);
  if (!rule.why.empty()) w.member("why", rule.why);
  if (!rule.remedy.empty()) w.member("remedy", rule.remedy);
  w.key("source").begin_object().member("file", rule.file).member("version", rule.version);
  w.end_object();
  w.end_object();
}

void explain_error_json(json::Writer& w, const ErrorInfo& info) {
  w.begin_object();
  w.member("id", info.id).member("kind", "error");
  w.member("exit_code", info.exit_code).member("exit_name", info.name);
  w.member("summary", info.sentence);
  w.end_object();
}

std::string origin_of(const Setting& setting) {
  switch (setting.set_by) {
    case SetBy::kDefault:
      return "default";
    case SetBy::kConfigFile:
      return "config file " + setting.where;
    case SetBy::kEnvironment:
      return "environment " + setting.where;
    case SetBy::kCommandLine:
      return "command line";
    case SetBy::kBatchLine:
      return "batch line";
  }
  return "";
}

std::string toml_string(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return "\"" + out + "\"";
}

std::string toml_value(ValueKind kind, const Setting& setting) {
  switch (kind) {
    case ValueKind::kFlag:
      return setting.values.empty() ? "false" : setting.values.front();
    case ValueKind::kInteger:
    case ValueKind::kCount:
      return setting.values.front();
    case ValueKind::kSize:
      return toml_string(setting.values.front());
    case ValueKind::kList:
    case ValueKind::kPair:
    case ValueKind::kRepeated: {
      std::vector<std::string> quoted;
      for (const std::string& value : setting.values) quoted.push_back(toml_string(value));
      return "[" + join(quoted, ", ") + "]";
    }
    default:
      return toml_string(setting.values.front());
  }
}

// Only what a config file may hold is part of the configuration.
bool is_configuration(const Program& program, const OptionRow& row) {
  return row.scope != Scope::kCommandLine && is_option_of(program.kind, row);
}

std::string config_json(const Program& program, const Settings& settings) {
  json::Writer w;
  write_header(w, "kernelpath/config");
  w.key("options").begin_array();
  for (const OptionRow& row : option_table()) {
    if (!is_configuration(program, row)) continue;
    const Setting& setting = settings.of(row.id);
    w.begin_object().member("option", row.name).key("values").begin_array();
    for (const std::string& value : setting.values) w.value(value);
    w.end_array().member("origin", origin_of(setting)).end_object();
  }
  w.end_array();
  return finish(w);
}

}  // namespace

std::string version_text(const Program& program, bool verbose, bool json) {
  if (json) return version_json(program);
  const BuildInfo& build = build_info();
  std::string out = fmt::format("{} {}\n", program.name, build.version);
  if (!verbose) return out;
  out += fmt::format("commit      {}\nbuild       {}, {}\nsanitizers  {}\nCUDA        {}\n",
                     build.commit, build.build_type, build.compiler, build.sanitizers, build.cuda);
  std::vector<std::string> names;
  for (const engines::Engine* engine : engines::all_engines()) {
    names.push_back(fmt::format("{}@{}", engine->name(), engine->version()));
  }
  out += fmt::format("engines     {}\n", join(names, ", "));
  names.clear();
  for (const hardware::Device& device : hardware::known_devices()) names.push_back(device.id);
  out += fmt::format("devices     {}\n", join(names, ", "));
  names.clear();
  for (const BuildInfo::Library& library : build.libraries) {
    names.push_back(fmt::format("{} {}", library.name, library.version));
  }
  return out + fmt::format("libraries   {}\n", join(names, ", "));
}

Result<std::string> explain_text(std::string_view code, bool json) {
  std::string text;
  json::Writer w;
  write_header(w, "kernelpath/explain", kVersionOfExplain);
  w.key("entries").begin_array();
  if (const ErrorInfo* info = find_error_info(code)) {
    text += fmt::format("{}  (error, exit code {}: {})\n  {}\n", info->id, info->exit_code,
                        info->name, info->sentence);
    explain_error_json(w, *info);
  }
  for (const engines::Engine* engine : engines::all_engines()) {
    for (const engines::RuleInfo& rule : engines::listed_rules(*engine)) {
      if (!equal_ignoring_case(rule.id, code)) continue;
      text += explain_rule_text(*engine, rule);
      explain_rule_json(w, *engine, rule);
    }
  }
  explain_feature_rule(code, text, w);
  w.end_array();
  if (!text.empty()) return json ? finish(w) : text;
  const std::vector<std::string> words = table_words("codes");
  const std::vector<std::string_view> names(words.begin(), words.end());
  return fail({.code = ErrorCode::kUsageUnknown,
               .message = "neither an error code nor a rule id",
               .where = "--explain",
               .value = shorten(code, 64),
               .hint = "--list errors and --list rules have all",
               .near_matches = near_matches(code, names)});
}

std::string config_text(const Program& program, const Settings& settings, bool json) {
  if (json) return config_json(program, settings);
  std::string out;
  for (const OptionRow& row : option_table()) {
    if (!is_configuration(program, row)) continue;
    const Setting& setting = settings.of(row.id);
    const bool unset = setting.values.empty() && row.kind != ValueKind::kFlag;
    // An unset option stands as a comment, so that the output is a config file.
    out += unset ? fmt::format("# {} is unset\n", row.name)
                 : fmt::format("{} = {}  # {}\n", row.name,
                               toml_value(value_kind(program.kind, row), setting),
                               escape_for_terminal(origin_of(setting)));
  }
  return out;
}

Result<std::optional<std::string>> information_answer(const Program& program,
                                                      const Settings& settings) {
  const std::string& format = settings.text(Option::kFormat);
  const bool json = format == "json" || format == "jsonl";
  if (settings.flag(Option::kVersion)) {
    return version_text(program, settings.is_set(Option::kVerbose), json);
  }
  if (settings.is_set(Option::kCompletions)) {
    return completion_script(program, settings.text(Option::kCompletions));
  }
  if (settings.is_set(Option::kList)) {
    Settings asked = settings;
    // llm-run is one engine, and has no --engine.
    if (program.kind == ProgramKind::kRun) {
      KERNELPATH_CHECK_OK(
          asked.set(Option::kEngine, {"kernelpath"}, SetBy::kBatchLine, program.name));
    }
    KERNELPATH_TRY(text, list_text(asked, settings.text(Option::kList), json));
    return text;
  }
  if (settings.is_set(Option::kExplain)) {
    KERNELPATH_TRY(text, explain_text(settings.text(Option::kExplain), json));
    return text;
  }
  if (settings.flag(Option::kPrintConfig)) return config_text(program, settings, json);
  return std::nullopt;
}

}  // namespace kernelpath::cli
