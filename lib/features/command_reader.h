#pragma once

#include "features/command_line.h"
#include "features/command_table.h"

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::features {

// A word of a command line; `pointer` says where it stands in an options file, else it is empty.
struct CommandWord {
  std::string text = {};
  std::size_t file = 0;
  std::string pointer = {};
};

// The words that stand for options files, and what the engine drops of them.
std::vector<CommandWord> words_of_files(const CommandTable& table,
                                        std::span<const YamlDocument> files,
                                        std::vector<CommandNote>& notes);

// Reads options and positional words into a reading, as the program's parser does.
class CommandReader {
 public:
  CommandReader(const CommandTable& table, CommandReading& out) : table_(table), out_(out) {}

  void read(std::vector<CommandWord> words);

 private:
  void note(CommandNote::Kind kind, std::string word, std::string message);
  void normalise(CommandWord& word) const;
  void expand_level(std::size_t index);
  void word();
  void positional(const std::string& text);
  void option(const CommandWord& word);
  bool take_member(const CommandWord& word);
  const CommandOption* find(const std::string& name);
  void flag(const CommandOption& option, const std::string& name, bool has_value);
  void several(const CommandOption& option, const CommandWord& word, const std::string& name);
  void fixed_words(const CommandOption& option, const CommandWord& word, const std::string& name);
  void one(const CommandOption& option, const CommandWord& word, const std::string& name);
  [[nodiscard]] bool is_value(std::size_t index) const;
  void valued(const CommandOption& option, const std::string& name, const std::string& value,
              const CommandWord& word);
  void state(const CommandOption& option, const std::string& name, json::Value value,
             const CommandWord& word);
  void state_members();
  void state_defaults();
  void unknown(const std::string& name);

  // Members of a JSON option, stated one by one; the parser passes them as one value at the end.
  struct Members {
    const CommandOption* option = nullptr;
    json::Value value = json::Value::object({});
    std::vector<std::pair<std::string, std::string>> stated_by = {};
  };

  const CommandTable& table_;
  CommandReading& out_;
  std::vector<CommandWord> words_;
  std::size_t at_ = 0;
  bool only_positionals_ = false;
  std::map<std::string, bool> stated_;  // argument → it was stated outside an options file
  std::vector<std::pair<std::string, Members>> members_;
};

}  // namespace kernelpath::features
