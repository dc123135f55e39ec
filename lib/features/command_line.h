#pragma once

#include "base/result.h"
#include "json/value.h"

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
  };
  Kind kind = Kind::kUnused;
  std::string word = {};  // as written: "--tp_szie"
  std::string message = {};
  std::vector<std::string> near_matches = {};
};

// What an engine's command line says.
struct CommandReading {
  std::string engine = {};
  std::string model = {};  // the positional argument; empty if there is none
  json::Value arguments = json::Value::object({});                  // as the options state them
  std::vector<std::pair<std::string, std::string>> stated_by = {};  // argument → option as written
  std::vector<std::string> options_files = {};                      // --config FILE, in order
  // Arguments that an options file states win over these, in this engine.
  std::vector<std::string> file_wins = {};
  std::vector<std::pair<std::string, std::string>> variables = {};  // NAME=VALUE before the program
  std::vector<CommandNote> notes = {};                              // nothing is dropped silently
};

// Reads "trtllm-serve MODEL --tp_size 8 …" by the table of the program's options.
// Errors: kUsage (quotes, no known program in it, a subcommand without engine arguments).
Result<CommandReading> read_command(std::string_view command);

// The arguments of the options over those of the options file, as the engine merges them.
json::Value merge_with_file(const CommandReading& command, const json::Value& file);

// "trtllm-serve", … : programs whose command lines can be read.
std::vector<std::string> known_programs();

}  // namespace kernelpath::features
