#include "cli/arguments.h"

#include "base/text.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>

// The only unit that includes CLI11 (header-only and slow to compile). CLI11 takes the command line
// apart; names, help, defaults and values are read from option_table(), so that none of its own
// messages, exit codes and guesses reach a user.

namespace kernelpath::cli {
namespace {

constexpr int kMostModels = 1 << 20;

// CLI11 reads "--device= x" as "--device x"; an empty value is refused here instead.
Result<void> refuse_empty_values(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    const bool ends_empty =
        argument.size() > 3 && argument.back() == '=' && argument.find('=') == argument.size() - 1;
    if (argument.substr(0, 2) != "--" || !ends_empty) continue;
    return fail({.code = ErrorCode::kUsage,
                 .message = "the value after '=' is empty",
                 .where = argument.substr(0, argument.size() - 1)});
  }
  return {};
}

std::string cli11_names(const OptionRow& row) {
  std::string names = "--" + std::string(row.name);
  if (!row.alias.empty()) names += ",--" + std::string(row.alias);
  if (row.short_name != 0) names += std::string(",-") + row.short_name;
  return names;
}

bool takes_value(const OptionRow& row) {
  return row.kind != ValueKind::kFlag && row.kind != ValueKind::kCount &&
         row.kind != ValueKind::kOptionalText;
}

CLI::Option* declare(CLI::App& app, const OptionRow& row) {
  CLI::Option* option =
      takes_value(row) ? app.add_option(cli11_names(row)) : app.add_flag(cli11_names(row));
  // Repetition is judged by Settings; without this CLI11 lets a list swallow the models behind it.
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  const int values = row.kind == ValueKind::kPair ? 2 : 1;
  if (takes_value(row)) option->expected(values)->allow_extra_args(false);
  return option;
}

Error unknown_option(std::string_view argument) {
  const std::string_view name = argument.substr(0, argument.find('='));
  const bool elsewhere = name.substr(0, 2) == "--" && find_option(name) != nullptr;
  return {.code = ErrorCode::kUsageUnknown,
          .message = elsewhere ? "an option of another program of kernelpath" : "unknown option",
          .value = shorten(name, 64),
          .hint = "--help lists all options",
          .near_matches = elsewhere ? std::vector<std::string>() : near_options(name)};
}

Error missing_value(const CLI::Error& error, const std::vector<std::string>& arguments) {
  // Only the last argument can lack its value: every other one takes what follows it.
  const OptionRow* row = arguments.empty() ? nullptr : find_option(arguments.back());
  if (row == nullptr && arguments.size() > 1) {
    const OptionRow* pair = find_option(arguments[arguments.size() - 2]);
    if (pair != nullptr && pair->kind == ValueKind::kPair) row = pair;
  }
  if (row == nullptr) return {.code = ErrorCode::kUsage, .message = error.what()};
  return {.code = ErrorCode::kUsage,
          .message = "needs a value: " + option_signature(*row),
          .where = "--" + std::string(row->name)};
}

Arguments collect(const std::vector<CLI::Option*>& options, const CLI::Option& models) {
  Arguments out;
  for (std::size_t i = 0; i < options.size(); ++i) {
    out.occurrences.emplace_back();
    if (options[i] == nullptr) continue;
    out.occurrences.back() = options[i]->results();
    if (option_table()[i].kind != ValueKind::kOptionalText) continue;
    for (std::string& value : out.occurrences.back()) {
      if (value == "true") value.clear();
    }
  }
  out.models = models.results();
  return out;
}

}  // namespace

Result<Arguments> parse_arguments(const std::vector<std::string>& arguments, ProgramKind program) {
  KERNELPATH_CHECK_OK(refuse_empty_values(arguments));
  try {
    CLI::App app;
    app.set_help_flag();
    app.allow_extras();
    std::vector<CLI::Option*> options;  // null for those of another program
    for (const OptionRow& row : option_table()) {
      options.push_back(is_option_of(program, row) ? declare(app, row) : nullptr);
    }
    CLI::Option* models = app.add_option("MODEL")->expected(0, kMostModels)->allow_extra_args();
    models->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    // CLI11 takes a vector from its back.
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(std::move(reversed));
    for (const std::string& extra : app.remaining()) {
      if (extra.size() > 1 && extra[0] == '-' && extra != "--") return fail(unknown_option(extra));
    }
    return collect(options, *models);
  } catch (const CLI::ArgumentMismatch& error) {
    return fail(missing_value(error, arguments));
  } catch (const std::exception& error) {
    return fail({.code = ErrorCode::kUsage, .message = error.what()});
  }
}

}  // namespace kernelpath::cli
