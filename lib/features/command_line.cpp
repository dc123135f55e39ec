#include "features/command_line.h"

#include "base/text.h"
#include "base/units.h"
#include "features/argument_tree.h"
#include "features/rule_table.h"
#include "features/shell_words.h"
#include "json/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace kernelpath::features {
namespace {

// One option of a program, as its table says.
struct CommandOption {
  std::vector<std::string> flags = {};
  std::string type = {};  // string, integer, number, flag
  std::string sets = {};  // the argument; empty: none
  std::vector<std::string> choices = {};
  std::string deprecated = {};
  bool options_file = false;
  bool file_wins = false;
};

struct CommandTable {
  std::string engine = {};
  std::string program = {};
  std::vector<std::string> subcommands = {};        // may stand before MODEL
  std::vector<std::string> other_subcommands = {};  // read no engine arguments
  std::vector<CommandOption> options = {};
};

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

CommandTable read_table(std::string_view path) {
  const json::Document document = embedded_rule_document(path);
  const json::Value& root = document.root;
  CommandTable out{.engine = text_of(root, "engine"),
                   .program = text_of(root, "program"),
                   .subcommands = texts_of(root, "subcommands"),
                   .other_subcommands = texts_of(root, "other_subcommands")};
  for (const json::Value& item : root.find("options")->items()) {
    out.options.push_back({.flags = texts_of(item, "flags"),
                           .type = text_of(item, "type"),
                           .sets = text_of(item, "sets"),
                           .choices = texts_of(item, "choices"),
                           .deprecated = text_of(item, "deprecated"),
                           .options_file = flag_of(item, "options_file"),
                           .file_wins = flag_of(item, "file_wins")});
  }
  return out;
}

const std::vector<CommandTable>& tables() {
  static const std::vector<CommandTable> all = {read_table("trtllm-serve.json")};
  return all;
}

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

std::optional<json::Value> typed(const CommandOption& option, const std::string& text) {
  if (option.type == "integer") {
    const auto number = parse_integer(text);
    return number ? std::optional(json::Value::integer(*number)) : std::nullopt;
  }
  if (option.type == "number") {
    double number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
    return whole ? std::optional(json::Value::number(number)) : std::nullopt;
  }
  return json::Value::string(text);
}

class CommandReader {
 public:
  CommandReader(const CommandTable& table, std::vector<std::string> words, std::size_t program)
      : table_(table), words_(std::move(words)), program_(program) {
    out_.engine = table.engine;
  }

  Result<CommandReading> run() {
    before_program();
    at_ = program_ + 1;
    if (at_ < words_.size() && contains(table_.other_subcommands, words_[at_])) {
      return fail({.code = ErrorCode::kUsage,
                   .message = fmt::format("{} {} reads no engine arguments of its own",
                                          table_.program, words_[at_]),
                   .where = "--command",
                   .hint = "give the command line of the server that it starts"});
    }
    if (at_ < words_.size() && contains(table_.subcommands, words_[at_])) ++at_;
    for (; at_ < words_.size(); ++at_) word();
    return std::move(out_);
  }

 private:
  void note(CommandNote::Kind kind, std::string word, std::string message) {
    out_.notes.push_back({.kind = kind, .word = std::move(word), .message = std::move(message)});
  }

  void before_program() {
    for (std::size_t i = 0; i < program_; ++i) {
      if (auto variable = assignment(words_[i])) {
        out_.variables.push_back(std::move(*variable));
      } else if (words_[i] != "env") {
        note(CommandNote::Kind::kNotRead, words_[i], "a word before the program is not read");
      }
    }
  }

  void word() {
    const std::string& text = words_[at_];
    if (only_positionals_ || text.size() < 2 || text[0] != '-') {
      positional(text);
    } else if (text == "--") {
      only_positionals_ = true;
    } else {
      option(text);
    }
  }

  void positional(const std::string& text) {
    if (out_.model.empty()) {
      out_.model = text;
    } else {
      note(CommandNote::Kind::kUnknown, text, "a second positional argument");
    }
  }

  void option(const std::string& text) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const auto found =
        std::find_if(table_.options.begin(), table_.options.end(),
                     [&name](const CommandOption& o) { return contains(o.flags, name); });
    if (found == table_.options.end()) {
      unknown(name);
      return;
    }
    if (found->type == "flag") {
      if (equals != std::string::npos) {
        note(CommandNote::Kind::kBadValue, text, "the flag takes no value");
      } else {
        state(*found, name, json::Value::boolean(!name.starts_with("--no-")));
      }
      return;
    }
    std::string value = equals == std::string::npos ? std::string() : text.substr(equals + 1);
    if (equals == std::string::npos) {
      if (at_ + 1 == words_.size()) {
        note(CommandNote::Kind::kBadValue, name, "the option's value is missing");
        return;
      }
      value = words_[++at_];
    }
    valued(*found, name, value);
  }

  void valued(const CommandOption& option, const std::string& name, const std::string& value) {
    if (option.options_file) {
      out_.options_files.push_back(value);
      return;
    }
    if (!option.choices.empty() && !contains(option.choices, value)) {
      note(CommandNote::Kind::kBadValue, name,
           fmt::format("{} is none of {}", value, join(option.choices, ", ")));
      return;
    }
    auto read = typed(option, value);
    if (!read) {
      note(CommandNote::Kind::kBadValue, name, fmt::format("{} is no {}", value, option.type));
      return;
    }
    state(option, name, std::move(*read));
  }

  void state(const CommandOption& option, const std::string& name, json::Value value) {
    if (!option.deprecated.empty()) {
      note(CommandNote::Kind::kDeprecated, name, "deprecated: " + option.deprecated);
    }
    if (option.sets.empty()) {
      note(CommandNote::Kind::kUnused, name, "does not concern the engine's arguments");
      return;
    }
    out_.arguments = with_argument(out_.arguments, option.sets, std::move(value));
    out_.stated_by.emplace_back(option.sets, name);
    if (option.file_wins) out_.file_wins.push_back(option.sets);
  }

  void unknown(const std::string& name) {
    std::vector<std::string_view> known;
    for (const CommandOption& option : table_.options) {
      known.insert(known.end(), option.flags.begin(), option.flags.end());
    }
    CommandNote note{.kind = CommandNote::Kind::kUnknown,
                     .word = name,
                     .message = fmt::format("{} has no such option", table_.program)};
    note.near_matches = near_matches(name, known);
    out_.notes.push_back(std::move(note));
    // What follows an unknown option may be its value: it must not become the model.
    const bool value = at_ + 1 < words_.size() && !words_[at_ + 1].starts_with('-');
    if (value && !out_.model.empty()) {
      ++at_;
      out_.notes.push_back({.kind = CommandNote::Kind::kUnknown,
                            .word = words_[at_],
                            .message = "taken as the value of " + name});
    }
  }

  const CommandTable& table_;
  std::vector<std::string> words_;
  std::size_t program_;
  std::size_t at_ = 0;
  bool only_positionals_ = false;
  CommandReading out_;
};

}  // namespace

Result<CommandReading> read_command(std::string_view command) {
  KERNELPATH_TRY(words, split_words(command));
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const CommandTable& table : tables()) {
      if (base_name(words[i]) == table.program) return CommandReader(table, words, i).run();
    }
  }
  return fail({.code = ErrorCode::kUsage,
               .message = "no program whose options are known stands in the command",
               .where = "--command",
               .value = shorten(command, 80),
               .hint = "known programs: " + join(known_programs(), ", ")});
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
  for (const CommandTable& table : tables()) out.push_back(table.program);
  return out;
}

}  // namespace kernelpath::features
