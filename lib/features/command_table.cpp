#include "features/command_table.h"

#include "base/text.h"
#include "features/rule_table.h"
#include "json/document.h"

#include <algorithm>

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
  // Click, argparse: --no-x beside --x states its opposite.
  if (out.is_flag() && out.negative_flags.empty()) {
    std::copy_if(out.flags.begin(), out.flags.end(), std::back_inserter(out.negative_flags),
                 [](const std::string& flag) { return flag.starts_with("--no-"); });
  }
  return out;
}

CommandTable read_table(std::string_view path) {
  const json::Document document = embedded_rule_document(path);
  const json::Value& root = document.root;
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
  for (const json::Value& item : root.find("options")->items()) {
    out.options.push_back(read_option(item));
  }
  return out;
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
  static const std::vector<CommandTable> all = {
      read_table("trtllm-2026-11/command.json"), read_table("vllm-0.25.1/command.json"),
      read_table("vllm-0.33.0/command.json"), read_table("sglang-0.5.23/command.json")};
  return all;
}

const CommandTable* find_command_table(std::string_view engine, std::string_view version) {
  const CommandTable* out = nullptr;
  for (const CommandTable& table : command_tables()) {
    if (table.engine == engine && (version.empty() || table.version == version)) out = &table;
  }
  return out;
}

}  // namespace kernelpath::features
