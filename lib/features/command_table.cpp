#include "features/command_table.h"

#include "base/text.h"
#include "features/rule_table.h"
#include "json/document.h"

#include <algorithm>
#include <array>

namespace kernelpath::features {
namespace {

std::string text_of(const json::Value& object, std::string_view key) {
  const json::Value* const found = object.find(key);
  return found != nullptr && found->is_string() ? found->as_string() : std::string();
}

std::vector<std::string> texts_of(const json::Value& object, std::string_view key) {
  std::vector<std::string> out;
  const json::Value* const found = object.find(key);
  if (found == nullptr || !found->is_array()) return out;
  for (const json::Value& item : found->items()) {
    if (item.is_string()) out.push_back(item.as_string());
  }
  return out;
}

bool flag_of(const json::Value& object, std::string_view key) {
  const json::Value* const found = object.find(key);
  return found != nullptr && found->is_bool() && found->as_bool();
}

std::vector<std::pair<std::string, json::Value>> values_of(const json::Value& object,
                                                           std::string_view key) {
  std::vector<std::pair<std::string, json::Value>> out;
  const json::Value* const found = object.find(key);
  if (found == nullptr || !found->is_object()) return out;
  out.reserve(found->members().size());
  for (const json::Member& member : found->members()) out.emplace_back(member.key, member.value);
  return out;
}

// How a value is read that is more than one word of a type.
void read_value_form(const json::Value& item, bool number_prefix, CommandOption& out) {
  const json::Value* const words = item.find("words");
  if (words != nullptr) out.words = static_cast<std::size_t>(words->as_integer());
  out.separators = text_of(item, "separators");
  out.appends = flag_of(item, "appends");
  out.inverse = flag_of(item, "inverse");
  out.number_prefix = number_prefix;
  out.removed = text_of(item, "removed");
  out.variable = text_of(item, "env");
  out.states = values_of(item, "states");
  for (const auto& [word, choice] : values_of(item, "spellings")) {
    out.spellings.emplace_back(word, choice.as_string());
  }
}

CommandOption read_option(const json::Value& item) {
  CommandOption out{.flags = texts_of(item, "flags"),
                    .negative_flags = texts_of(item, "negative_flags"),
                    .type = text_of(item, "type"),
                    .sets = text_of(item, "sets"),
                    .choices = texts_of(item, "choices"),
                    .deprecated = text_of(item, "deprecated"),
                    .options_file = flag_of(item, "options_file"),
                    .file_wins = flag_of(item, "file_wins"),
                    .multiple = flag_of(item, "multiple"),
                    .optional_value = flag_of(item, "optional_value"),
                    .nullable = flag_of(item, "nullable"),
                    .suffixes = flag_of(item, "suffixes"),
                    .iec_suffixes = flag_of(item, "iec_suffixes"),
                    .not_in_file = flag_of(item, "not_in_file")};
  const json::Value* const automatic = item.find("auto");
  if (automatic != nullptr) out.automatic = automatic->as_integer();
  // Click, argparse: --no-x beside --x states its opposite; alone it is a name like any other.
  const bool beside = std::ranges::any_of(
      out.flags, [](const std::string& flag) { return !flag.starts_with("--no-"); });
  if (out.is_flag() && out.negative_flags.empty() && beside) {
    std::copy_if(out.flags.begin(), out.flags.end(), std::back_inserter(out.negative_flags),
                 [](const std::string& flag) { return flag.starts_with("--no-"); });
  }
  return out;
}

CommandTable read_table(const json::Value& root) {
  CommandTable out{.engine = text_of(root, "engine"),
                   .version = text_of(root, "version"),
                   .program = text_of(root, "program"),
                   .module = text_of(root, "module"),
                   .subcommands = texts_of(root, "subcommands"),
                   .other_subcommands = texts_of(root, "other_subcommands"),
                   .subcommand_required = flag_of(root, "subcommand_required"),
                   .abbreviations = flag_of(root, "abbreviations"),
                   .underscores = flag_of(root, "underscores"),
                   .dotted = flag_of(root, "dotted"),
                   .first_word = text_of(root, "first_word")};
  if (const json::Value* const levels = root.find("levels")) {
    for (const json::Member& level : levels->members()) {
      out.levels.emplace_back(level.key, level.value.as_string());
    }
  }
  if (const json::Value* const file = root.find("file_of_options")) {
    out.file_of_options = true;
    out.file_negates = flag_of(*file, "negates");
    out.file_spells_bools = flag_of(*file, "spells_bools");
  }
  const bool number_prefix = flag_of(root, "number_prefix");
  out.equals = root.find("equals") == nullptr || flag_of(root, "equals");
  out.positionals = root.find("positionals") == nullptr || flag_of(root, "positionals");
  if (root.find("model") != nullptr) out.model = text_of(root, "model");
  for (const json::Value& item : root.find("options")->items()) {
    out.options.push_back(read_option(item));
    read_value_form(item, number_prefix, out.options.back());
  }
  return out;
}

// The options of one program of several that share a table.
CommandTable table_of_program(const json::Value& root, const std::string& program) {
  CommandTable out = read_table(root);
  out.program = program;
  std::vector<CommandOption> options;
  const auto items = root.find("options")->items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::vector<std::string> programs = texts_of(items[i], "programs");
    const bool has = programs.empty() || std::ranges::find(programs, program) != programs.end();
    if (has) options.push_back(std::move(out.options[i]));
  }
  out.options = std::move(options);
  const json::Value* const defaults = root.find("defaults");
  if (defaults != nullptr) out.defaults = values_of(*defaults, program);
  return out;
}

// The main program last.
void read_tables(std::string_view path, std::vector<CommandTable>& out) {
  const json::Document document = embedded_rule_document(path);
  const std::vector<std::string> programs = texts_of(document.root, "programs");
  if (programs.empty()) out.push_back(read_table(document.root));
  for (auto program = programs.rbegin(); program != programs.rend(); ++program) {
    out.push_back(table_of_program(document.root, *program));
  }
}

}  // namespace

const CommandOption* CommandTable::find(std::string_view flag) const {
  const auto found = std::find_if(options.begin(), options.end(), [flag](const CommandOption& o) {
    return std::find(o.flags.begin(), o.flags.end(), flag) != o.flags.end();
  });
  return found == options.end() ? nullptr : &*found;
}

std::vector<std::string_view> CommandTable::beginning_with(std::string_view prefix) const {
  std::vector<std::string_view> out;
  for (const CommandOption& option : options) {
    for (const std::string& flag : option.flags) {
      if (flag.starts_with(prefix)) out.emplace_back(flag);
    }
  }
  return out;
}

std::vector<std::string> CommandTable::near(std::string_view flag) const {
  return near_matches(flag, beginning_with(""));
}

const std::vector<CommandTable>& command_tables() {
  static const std::vector<CommandTable> kAll = [] {
    constexpr auto kFiles = std::to_array<std::string_view>(
        {"trtllm-2026-11/command.json", "vllm-0.25.1/command.json", "vllm-0.33.0/command.json",
         "sglang-0.5.23/command.json", "llamacpp-0c1e5709/command.json"});
    std::vector<CommandTable> out;
    for (const std::string_view file : kFiles) read_tables(file, out);
    return out;
  }();
  return kAll;
}

const CommandTable* find_command_table(std::string_view engine, std::string_view version,
                                       std::string_view program) {
  const CommandTable* out = nullptr;
  for (const CommandTable& table : command_tables()) {
    const bool asked = table.engine == engine && (version.empty() || table.version == version);
    if (asked && (program.empty() || table.program == program)) out = &table;
  }
  return out;
}

}  // namespace kernelpath::features
