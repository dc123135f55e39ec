#include "features/command_line.h"

#include "base/text.h"
#include "features/argument_tree.h"
#include "features/command_reader.h"
#include "features/command_table.h"
#include "features/shell_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace kernelpath::features {
namespace {

std::string base_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// "NAME=VALUE" with a name that a shell accepts.
std::optional<std::pair<std::string, std::string>> assignment(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  const std::string name = word.substr(0, equals);
  const bool good = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!good || (name[0] >= '0' && name[0] <= '9')) return std::nullopt;
  return std::pair{name, word.substr(equals + 1)};
}

// A program in a command: the word that names it, and whether it is a module of Python.
struct Program {
  const CommandTable* table = nullptr;
  std::size_t word = 0;
  bool module = false;
};

std::optional<Program> find_program(const std::vector<std::string>& words,
                                    std::string_view version) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool after_m = i > 0 && words[i - 1] == "-m";
    for (const CommandTable& table : command_tables()) {
      const bool module = after_m && !table.module.empty() && words[i] == table.module;
      if (!module && base_name(words[i]) != table.program) continue;
      const CommandTable* const chosen = find_command_table(table.engine, version, table.program);
      if (chosen != nullptr) return Program{chosen, i, module};
    }
  }
  return std::nullopt;
}

void read_before_program(const std::vector<std::string>& words, const Program& program,
                         CommandReading& out) {
  for (std::size_t i = 0; i < program.word; ++i) {
    const bool runs_module =
        program.module && (words[i] == "-m" || base_name(words[i]).starts_with("python"));
    if (auto variable = assignment(words[i])) {
      out.variables.push_back(std::move(*variable));
    } else if (words[i] != "env" && !runs_module) {
      out.notes.push_back({.kind = CommandNote::Kind::kNotRead,
                           .word = words[i],
                           .message = "a word before the program is not read"});
    }
  }
}

// The index of the first word of the options. Error kUsage: no server is started.
Result<std::size_t> skip_subcommand(const std::vector<std::string>& words, const Program& program) {
  const CommandTable& table = *program.table;
  const std::size_t first = program.word + 1;
  if (program.module) return first;
  if (first < words.size() && contains(table.other_subcommands, words[first])) {
    return fail({.code = ErrorCode::kUsage,
                 .message = fmt::format("{} {} reads no engine arguments of its own", table.program,
                                        words[first]),
                 .where = "--command",
                 .hint = "give the command line of the server that it starts"});
  }
  if (first < words.size() && contains(table.subcommands, words[first])) return first + 1;
  if (!table.subcommand_required) return first;
  return fail({.code = ErrorCode::kUsage,
               .message = fmt::format("{} has a sub-command: {} {} …", table.program, table.program,
                                      join(table.subcommands, ", ")),
               .where = "--command"});
}

}  // namespace

Result<CommandReading> read_command(std::string_view command, std::string_view version,
                                    std::span<const YamlDocument> files) {
  KERNELPATH_TRY(words, split_words(command));
  const auto program = find_program(words, version);
  if (!program) {
    return fail({.code = ErrorCode::kUsage,
                 .message = "no program whose options are known stands in the command",
                 .where = "--command",
                 .value = shorten(command, 80),
                 .hint = "known programs: " + join(known_programs(), ", ") +
                         "; arguments of an engine that has none are given by --set"});
  }
  const CommandTable& table = *program->table;
  CommandReading out{.engine = table.engine, .version = table.version, .program = table.program};
  read_before_program(words, *program, out);
  KERNELPATH_TRY(first, skip_subcommand(words, *program));
  std::vector<CommandWord> asked;
  if (table.file_of_options) asked = words_of_files(table, files, out.notes);
  const bool alone = first < words.size() && !words[first].starts_with('-');
  if (alone && !program->module && !table.first_word.empty()) {
    asked.push_back({.text = table.first_word});
  }
  for (std::size_t i = first; i < words.size(); ++i) asked.push_back({.text = words[i]});
  CommandReader(table, out).read(std::move(asked));
  return out;
}

bool file_holds_options(std::string_view engine) {
  const CommandTable* const table = find_command_table(engine);
  return table != nullptr && table->file_of_options;
}

Result<CommandReading> read_options_files(std::span<const YamlDocument> files,
                                          std::string_view engine, std::string_view version) {
  const CommandTable* const table = find_command_table(engine, version);
  if (table == nullptr || !table->file_of_options) {
    return fail(
        {.code = ErrorCode::kUsage, .message = fmt::format("{} reads no file of options", engine)});
  }
  CommandReading out{.engine = table->engine, .version = table->version};
  CommandReader(*table, out).read(words_of_files(*table, files, out.notes));
  return out;
}

namespace {

// "LLAMA_ARG_NO_X", whose presence turns the option of "LLAMA_ARG_X" off.
std::string negative_variable(const CommandOption& option) {
  constexpr std::string_view kPrefix = "LLAMA_ARG_";
  if (option.negative_flags.empty() || !option.variable.starts_with(kPrefix)) return {};
  return std::string(kPrefix) + "NO_" + option.variable.substr(kPrefix.size());
}

// The words that the program would take for what a variable says; none if it says nothing.
std::vector<std::string> words_of_variable(const CommandOption& option, const std::string& text) {
  if (!option.is_flag()) return {option.flags.front(), text};
  const bool on = text == "on" || text == "enabled" || text == "true" || text == "1";
  if (on) return {option.flags.front()};
  return option.negative_flags.empty() ? std::vector<std::string>()
                                       : std::vector<std::string>{option.negative_flags.front()};
}

}  // namespace

const CommandOption* option_of_variable(const CommandTable& table, std::string_view name) {
  const auto found = std::ranges::find_if(table.options, [name](const CommandOption& option) {
    return !option.variable.empty() &&
           (option.variable == name || negative_variable(option) == name);
  });
  return found == table.options.end() ? nullptr : &*found;
}

CommandReading read_option_variables(
    const CommandTable& table, std::span<const std::pair<std::string, std::string>> variables) {
  CommandTable without_defaults = table;
  without_defaults.defaults.clear();
  CommandReading out{.engine = table.engine, .version = table.version};
  for (const auto& [name, text] : variables) {
    const CommandOption* const option = option_of_variable(table, name);
    if (option == nullptr) continue;
    const bool off = name != option->variable;
    CommandReading one{.engine = table.engine, .version = table.version};
    std::vector<CommandWord> words;
    for (std::string& word : off ? std::vector<std::string>{option->negative_flags.front()}
                                 : words_of_variable(*option, text)) {
      words.push_back({.text = std::move(word)});
    }
    CommandReader(without_defaults, one).read(std::move(words));
    out.arguments = merge_arguments(out.arguments, one.arguments);
    for (const auto& stated : one.stated_by) out.stated_by.emplace_back(stated.first, name);
    for (CommandNote& note : one.notes) {
      if (note.kind == CommandNote::Kind::kUnused) continue;
      // The rules find what is wrong with a value.
      if (note.kind == CommandNote::Kind::kBadValue && !option->sets.empty()) {
        out.arguments = with_argument(out.arguments, option->sets, json::Value::string(text));
        out.stated_by.emplace_back(option->sets, name);
        continue;
      }
      note.word = name;
      out.notes.push_back(std::move(note));
    }
  }
  return out;
}

json::Value merge_with_file(const CommandReading& command, const json::Value& file) {
  json::Value out = merge_arguments(file, command.arguments);
  for (const std::string& path : command.file_wins) {
    if (const json::Value* const value = find_argument_value(file, path)) {
      out = with_argument(out, path, *value);
    }
  }
  return out;
}

std::vector<std::string> known_programs() {
  std::vector<std::string> out;
  const auto add = [&out](const std::string& name) {
    if (!name.empty() && !contains(out, name)) out.push_back(name);
  };
  for (const CommandTable& table : command_tables()) {
    add(table.program);
    add(table.module);
  }
  return out;
}

}  // namespace kernelpath::features
