#pragma once

#include "json/value.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::features {

// One option of a program, as its table says.
struct CommandOption {
  std::vector<std::string> flags = {};
  std::vector<std::string> negative_flags = {};  // those of them that state false
  std::string type = {};  // string, integer, number, flag, json, string_or_json, integer_or_word
  std::string sets = {};  // the argument; empty: none
  std::vector<std::string> choices = {};
  std::string deprecated = {};
  bool options_file = false;                   // its value names one
  bool file_wins = false;                      // an options file overrides it
  bool multiple = false;                       // takes all words up to the next option
  bool optional_value = false;                 // may stand alone
  bool nullable = false;                       // None or nothing states no value
  bool suffixes = false;                       // 1k is 1000, 1K is 1024
  bool iec_suffixes = false;                   // 1k is 1000, 1Ki is 1024
  bool not_in_file = false;                    // an options file that names it is refused
  std::optional<std::int64_t> automatic = {};  // what "auto" stands for
  std::size_t words = 1;                       // that its value takes
  std::string separators = {};                 // between the items of a value that is a list
  bool appends = false;                        // stated again, it adds to the list
  bool inverse = false;                        // the argument is one over the number
  bool number_prefix = false;                  // a number is read as far as it goes: 4k is 4
  std::string removed = {};                    // the program refuses it, with these words
  std::string variable = {};                   // of the environment, that states the option too
  std::vector<std::pair<std::string, std::string>> spellings = {};  // word → the choice it means
  // Arguments that a flag states beside none of its own, or instead.
  std::vector<std::pair<std::string, json::Value>> states = {};

  [[nodiscard]] bool is_flag() const { return type == "flag"; }
};

// The command line of one version of an engine's server.
struct CommandTable {
  std::string engine = {};
  std::string version = {};
  std::string program = {};                         // "vllm"
  std::string module = {};                          // of `python -m MODULE`; empty: there is none
  std::vector<std::string> subcommands = {};        // may, or must, stand before MODEL
  std::vector<std::string> other_subcommands = {};  // read no engine arguments
  bool subcommand_required = false;
  bool abbreviations = false;  // an unambiguous beginning of a long option will do
  bool underscores = false;    // --a_b is --a-b
  bool dotted = false;         // --a.b=1 states the member of a JSON option
  // The option that a first word after the sub-command states; no other word stands alone then.
  // Empty: MODEL may stand anywhere.
  std::string first_word = {};
  // "-O3" is "--optimization-level 3".
  std::vector<std::pair<std::string, std::string>> levels = {};
  // An options file holds options by their names; else it holds arguments.
  bool file_of_options = false;
  bool file_negates = false;       // "name: false" there means --no-name; else it is dropped
  bool file_spells_bools = false;  // "name: true" of an option with a value is "--name true"
  bool equals = true;              // --option=value is --option value
  bool positionals = true;         // a word alone is MODEL
  std::string model = "model";     // the argument that names MODEL
  // What the program's own defaults state where nobody else does.
  std::vector<std::pair<std::string, json::Value>> defaults = {};
  std::vector<CommandOption> options = {};

  // By any of its flags; null pointer if the program has none.
  [[nodiscard]] const CommandOption* find(std::string_view flag) const;
  // All flags that begin so.
  [[nodiscard]] std::vector<std::string_view> beginning_with(std::string_view prefix) const;
  [[nodiscard]] std::vector<std::string> near(std::string_view flag) const;
};

// All programs, the newest version of each last.
const std::vector<CommandTable>& command_tables();

// Of an engine's version, of its newest if `version` is empty, and of its main program if `program`
// is empty; null pointer if there is none.
const CommandTable* find_command_table(std::string_view engine, std::string_view version = {},
                                       std::string_view program = {});

}  // namespace kernelpath::features
