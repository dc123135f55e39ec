#pragma once

#include "cli/log.h"
#include "cli/option_table.h"
#include "cli/settings.h"

#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFinding = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInternal = 70;

// What a program was started with.
struct Invocation {
  const Program& program;
  const Log& log;
  Settings settings;
  std::vector<std::string> models;
  ProcessEnvironment environment;
};

// The program's own work: prints the answer and returns the exit code.
using ProgramBody = int (*)(const Invocation&);

// Everything that the programs have in common: signals, the command line, --help, --version,
// --list,
// --explain, --completions and --print-config, and errors on the way there. Calls `body` for the
// rest and returns the exit code of the process: 128 + n where signal n asked to stop.
int run_program(const Program& program, int argc, char** argv, ProgramBody body);

// Logs the error and returns its exit code.
int report_error(const Log& log, const Error& error);
// For a command line that asks for nothing: for people with the short help.
int wrong_use(const Invocation& invocation, const Error& error);

// What an exception that reached the end of the program means: kResource for memory and threads
// that the system does not give, else kInternal.
Error error_of(const std::exception& exception);

// The larger of two exit codes: the worst of several errors is the program's.
int worse(int a, int b);

}  // namespace kernelpath::cli
