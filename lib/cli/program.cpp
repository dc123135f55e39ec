#include "cli/program.h"

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/information.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "engines/engine.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <unistd.h>

// The environment of the process; read once, here. unistd.h has it only with GNU's extensions.
// NOLINTNEXTLINE(readability-redundant-declaration,cppcoreguidelines-avoid-*)
extern char** environ;

namespace kernelpath::cli {
namespace {

ProcessEnvironment read_environment() {
  ProcessEnvironment out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    out.variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

// Whether a JSON format was asked for, as far as a command line tells that may be wrong elsewhere.
bool asks_for_json(const std::vector<std::string>& arguments) {
  const auto is_json = [](std::string_view value) { return value == "json" || value == "jsonl"; };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--json" || argument == "--format=json" || argument == "--format=jsonl" ||
        argument == "-fjson" || argument == "-fjsonl") {
      return true;
    }
    const bool names_format = argument == "-f" || argument == "--format";
    if (names_format && i + 1 < arguments.size() && is_json(arguments[i + 1])) return true;
  }
  return false;
}

LogStyle log_style(const Settings& settings, const ProcessEnvironment& environment) {
  const std::string& format = settings.text(Option::kFormat);
  LogStyle style{
      .json = settings.flag(Option::kLogJson),
      .json_errors = format == "json" || format == "jsonl",
      .hints = !settings.flag(Option::kQuiet),
      .color = use_color(settings.text(Option::kColor), environment, is_terminal(STDERR_FILENO))};
  const std::string& word = settings.text(Option::kLogLevel);
  style.level = word == "error"   ? LogLevel::kError
                : word == "info"  ? LogLevel::kInfo
                : word == "debug" ? LogLevel::kDebug
                                  : LogLevel::kWarn;
  const std::int64_t verbose = settings.integer(Option::kVerbose).value_or(0);
  if (verbose == 1) style.level = std::max(style.level, LogLevel::kInfo);
  if (verbose > 1) style.level = LogLevel::kDebug;
  if (settings.flag(Option::kQuiet)) style.level = LogLevel::kError;
  return style;
}

// The table has the formats of all programs.
Result<void> check_format(const Program& program, const Settings& settings) {
  const std::string& format = settings.text(Option::kFormat);
  const std::vector<std::string> formats = split(program.formats, '|');
  if (std::find(formats.begin(), formats.end(), format) != formats.end()) return {};
  return fail({.code = ErrorCode::kUsage,
               .message = "not one of " + join_words(formats, "or"),
               .where = settings.of(Option::kFormat).where,
               .value = format});
}

int print(const Log& log, std::string_view text) {
  Output out = Output::standard_output();
  Result<void> written = out.write(text);
  if (written) written = out.commit();
  return written ? kExitOk : report_error(log, written.error());
}

int run(const Program& program, Log& log, const std::vector<std::string>& arguments,
        ProgramBody body) {
  const Result<Arguments> parsed = parse_arguments(arguments, program.kind);
  if (!parsed) return report_error(log, parsed.error());
  // Help is answered before any value is judged: who asks for it may have a broken config file.
  if (const std::optional<std::string> help = help_answer(program, *parsed, arguments)) {
    return print(log, *help);
  }
  ProcessEnvironment environment = read_environment();
  Result<Settings> settings = make_settings(*parsed, environment, program);
  if (!settings) return report_error(log, settings.error());
  const Result<void> format = check_format(program, *settings);
  if (!format) return report_error(log, format.error());
  log.set_style(log_style(*settings, environment));
  if (settings->is_set(Option::kProfileDir)) {
    const Result<void> used = engines::use_profile_folder(settings->text(Option::kProfileDir));
    if (!used) return report_error(log, used.error());
  }
  const Result<std::optional<std::string>> information = information_answer(program, *settings);
  if (!information) return report_error(log, information.error());
  if (*information) return print(log, **information);
  return body({.program = program,
               .log = log,
               .settings = std::move(*settings),
               .models = parsed->models,
               .environment = std::move(environment)});
}

}  // namespace

int report_error(const Log& log, const Error& error) {
  log.error(error);
  return error_info(error.code).exit_code;
}

int wrong_use(const Invocation& invocation, const Error& error) {
  const int code = report_error(invocation.log, error);
  const LogStyle& style = invocation.log.style();
  if (!style.json && !style.json_errors) {
    static_cast<void>(write_all(STDERR_FILENO, "\n" + short_help(invocation.program)));
  }
  return code;
}

Error error_of(const std::exception& exception) {
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) {
    return {.code = ErrorCode::kResource, .message = "out of memory"};
  }
  const auto* const system = dynamic_cast<const std::system_error*>(&exception);
  // What a thread that cannot be started throws.
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again) {
    return {.code = ErrorCode::kResource,
            .message = std::string("no more threads can be started: ") + exception.what(),
            .hint = "say fewer --threads, or allow the process more memory and threads (ulimit)"};
  }
  return {.code = ErrorCode::kInternal, .message = exception.what()};
}

int worse(int a, int b) { return std::max(a, b); }

int run_program(const Program& program, int argc, char** argv, ProgramBody body) {
  open_standard_streams();
  install_signal_handlers();
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  Log log{std::string(program.name), {.json_errors = asks_for_json(arguments)}};
  int code = kExitOk;
  try {
    code = run(program, log, arguments, body);
  } catch (const std::exception& error) {
    code = report_error(log, error_of(error));
  }
  return stop_signal() == 0 ? code : 128 + stop_signal();
}

}  // namespace kernelpath::cli
