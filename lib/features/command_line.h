#pragma once

#include "base/result.h"
#include "features/command_table.h"
#include "features/yaml.h"
#include "json/value.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::features {

// Something in an engine's command line that did not become an argument.
struct CommandNote {
  enum class Kind {
    kUnknown,   // the engine has no such option; near names are given
    kBadValue,  // no value, or one of the wrong type or not among the choices
    kUnused,    // an option that does not concern the arguments (--port)
    kNotRead,   // words before the program (mpirun …)
    kDeprecated,
    kDropped,  // the engine reads it and then drops it without a word
  };
  Kind kind = Kind::kUnused;
  std::string word = {};  // as written: "--tp_szie"
  std::string message = {};
  std::vector<std::string> near_matches = {};
  std::string value_of = {};  // the unknown option whose value this word was taken for
};

// What an engine's command line says.
struct CommandReading {
  std::string engine = {};
  std::string version = {};  // whose options these are
  std::string program = {};  // "llama-server"; empty where no command line was read
  std::string model = {};    // the positional argument; empty if there is none
  json::Value arguments = json::Value::object({});                  // as the options state them
  std::vector<std::pair<std::string, std::string>> stated_by = {};  // argument → option as written
  std::vector<std::string> options_files = {};                      // --config FILE, in order
  // Arguments that an options file states, and where they stand in it.
  struct InFile {
    std::string argument = {};
    std::size_t file = 0;  // index into the files that were given
    std::string pointer = {};
  };
  std::vector<InFile> in_files = {};
  // Arguments that an options file states win over these, in this engine.
  std::vector<std::string> file_wins = {};
  std::vector<std::pair<std::string, std::string>> variables = {};  // NAME=VALUE before the program
  std::vector<CommandNote> notes = {};                              // nothing is dropped silently
};

// Reads "trtllm-serve MODEL --tp_size 8 …", "vllm serve MODEL -tp 8 …" or "python -m MODULE …" by
// the table of the program's options, of the engine's newest version if `version` is empty.
// `files`: the options files that the command names, for a program whose files hold options by
// their names; they stand before those of the command line, as the engine reads them. Errors:
// kUsage (quotes, no known program in it, a subcommand without engine arguments).
Result<CommandReading> read_command(std::string_view command, std::string_view version = {},
                                    std::span<const YamlDocument> files = {});

// True if an options file of the engine holds its command-line options and not its arguments.
bool file_holds_options(std::string_view engine);

// Reads such files alone. Error kUsage: the engine has none.
Result<CommandReading> read_options_files(std::span<const YamlDocument> files,
                                          std::string_view engine, std::string_view version = {});

// The option that an environment variable states, or turns off; null pointer: none.
const CommandOption* option_of_variable(const CommandTable& table, std::string_view name);

// What environment variables state of a program's options, each as its text says; origins are the
// names of the variables.
CommandReading read_option_variables(
    const CommandTable& table, std::span<const std::pair<std::string, std::string>> variables);

// The arguments of the options over those of the options file, as the engine merges them.
json::Value merge_with_file(const CommandReading& command, const json::Value& file);

// "trtllm-serve", … : programs whose command lines can be read.
std::vector<std::string> known_programs();

}  // namespace kernelpath::features
