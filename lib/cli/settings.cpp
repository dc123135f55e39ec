#include "cli/settings.h"

#include "base/text.h"
#include "base/units.h"
#include "cli/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace kernelpath::cli {
namespace {

constexpr std::array<std::string_view, 4> kTrueWords = {"true", "1", "yes", "on"};
constexpr std::array<std::string_view, 4> kFalseWords = {"false", "0", "no", "off"};

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view known) { return equal_ignoring_case(known, word); });
}

Error bad_value(std::string_view where, std::string message, std::string_view value) {
  return {.code = ErrorCode::kUsage,
          .message = std::move(message),
          .where = std::string(where),
          .value = shorten(value, 64)};
}

Result<std::string> read_flag(std::string_view value, std::string_view where) {
  if (is_one_of(value, kTrueWords)) return "true";
  if (is_one_of(value, kFalseWords)) return "false";
  return fail(bad_value(where, "not true or false", value));
}

Result<std::string> read_choice(const OptionRow& row, std::string_view value,
                                std::string_view where) {
  const std::vector<std::string> choices = option_choices(row);
  for (const std::string& choice : choices) {
    if (equal_ignoring_case(choice, value)) return choice;
  }
  Error error = bad_value(where, "not one of " + join_words(choices, "or"), value);
  const std::vector<std::string_view> names(choices.begin(), choices.end());
  error.near_matches = near_matches(value, names);
  return fail(std::move(error));
}

Result<std::string> read_integer(const OptionRow& row, std::string_view value,
                                 std::string_view where) {
  const Result<std::int64_t> number = parse_integer(value);
  if (!number) return fail(bad_value(where, number.error().message, value));
  if (*number < row.minimum) {
    return fail(bad_value(where, fmt::format("must be at least {}", row.minimum), value));
  }
  if (*number > row.maximum) {
    return fail(bad_value(where, fmt::format("must be at most {}", row.maximum), value));
  }
  return std::to_string(*number);
}

// A finite number in the spelling of JSON and C, whatever the locale.
std::optional<double> parse_number(std::string_view text) {
  double out = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, out);
  if (error != std::errc() || rest != end || !std::isfinite(out)) return std::nullopt;
  return out;
}

Result<std::string> read_size(std::string_view value, std::string_view where) {
  Result<std::int64_t> bytes = parse_bytes(value);
  if (bytes && *bytes > 0) return std::to_string(*bytes);
  if (bytes) return fail(bad_value(where, "must be more than 0", value));
  bytes.error().where = where;
  return fail(std::move(bytes).error());
}

// "3%" and "0.03" are 0.03.
std::optional<double> share_of(std::string_view value) {
  const bool percent = value.ends_with('%');
  const auto number = parse_number(percent ? value.substr(0, value.size() - 1) : value);
  if (!number || *number < 0) return std::nullopt;
  return percent ? *number / 100.0 : *number;
}

// As it was written. 3 could mean either, and as 300 % it would let everything pass.
Result<std::string> read_percent(std::string_view value, std::string_view where) {
  const std::optional<double> share = share_of(value);
  if (!share) return fail(bad_value(where, "not a share of at least 0, as 3% or 0.03", value));
  if (*share <= 1 || value.ends_with('%')) return std::string(value);
  Error error = bad_value(where, "more than 1 without a percent sign", value);
  error.hint = fmt::format("write {}%", value);
  return fail(std::move(error));
}

// "0.5s", "20ms" and "0.5" → seconds.
Result<std::string> read_seconds(std::string_view value, std::string_view where) {
  const bool milliseconds = value.ends_with("ms");
  const bool seconds = !milliseconds && value.ends_with('s');
  const std::size_t unit = milliseconds ? 2 : seconds ? 1 : 0;
  const auto number = parse_number(value.substr(0, value.size() - unit));
  if (!number || *number < 0) {
    return fail(bad_value(where, "not a time of at least 0, as 0.5s or 20ms", value));
  }
  return fmt::format("{}", milliseconds ? *number / 1000.0 : *number);
}

// The stored form of one value, checked.
Result<std::string> read_value(const OptionRow& row, std::string_view value,
                               std::string_view where) {
  switch (row.kind) {
    case ValueKind::kPercent:
      return read_percent(value, where);
    case ValueKind::kSeconds:
      return read_seconds(value, where);
    case ValueKind::kFlag:
      return read_flag(value, where);
    case ValueKind::kChoice:
      return read_choice(row, value, where);
    case ValueKind::kInteger:
      return read_integer(row, value, where);
    case ValueKind::kSize:
      return read_size(value, where);
    case ValueKind::kNumber:
      if (parse_number(value)) return std::string(value);
      return fail(bad_value(where, "not a number", value));
    default:
      break;
  }
  if (value.empty() && row.kind != ValueKind::kOptionalText) {
    return fail(bad_value(where, "the value is empty", ""));
  }
  return std::string(value);
}

// A list's parts; of other kinds the value itself.
std::vector<std::string> parts_of(const OptionRow& row, const std::string& value) {
  const bool splits = row.kind == ValueKind::kList || row.kind == ValueKind::kPair;
  if (!splits || value.empty()) return {value};
  std::vector<std::string> parts = split(value, ',');
  for (std::string& part : parts) part = std::string(trim(part));
  return parts;
}

bool keeps_all_values(const OptionRow& row) {
  return row.kind == ValueKind::kList || row.kind == ValueKind::kRepeated ||
         row.kind == ValueKind::kPair;
}

Result<void> apply_command_line(Settings& settings, const Arguments& arguments) {
  for (const OptionRow& row : option_table()) {
    const std::vector<std::string>& values = arguments.of(row.id);
    if (values.empty()) continue;
    KERNELPATH_CHECK_OK(
        settings.set(row.id, values, SetBy::kCommandLine, "--" + std::string(row.name)));
  }
  if (!settings.flag(Option::kJson)) return {};
  const std::vector<std::string>& format = arguments.of(Option::kFormat);
  if (!format.empty() && settings.text(Option::kFormat) != "json") {
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = "--json and --format " + settings.text(Option::kFormat) +
                            " ask for two formats"});
  }
  return settings.set(Option::kFormat, {"json"}, SetBy::kCommandLine, "--json");
}

Result<void> apply_environment(Settings& settings, const ProcessEnvironment& environment) {
  for (const OptionRow& row : option_table()) {
    if (row.scope == Scope::kCommandLine) continue;
    for (const std::string_view name : {row.alias, row.name}) {
      if (name.empty()) continue;
      const std::string variable = environment_name(name);
      const std::string* value = environment.find(variable);
      if (value == nullptr || value->empty()) continue;
      KERNELPATH_CHECK_OK(settings.set(row.id, {*value}, SetBy::kEnvironment, variable));
    }
  }
  return {};
}

}  // namespace

Settings::Settings(ProgramKind program) : program_(program) {
  settings_.resize(option_table().size());
  for (const OptionRow& row : option_table()) {
    const std::string_view value = default_value(program, row);
    if (value.empty()) continue;
    settings_[static_cast<std::size_t>(row.id)].values = {std::string(value)};
  }
}

const std::string& Settings::text(Option option) const {
  static const std::string kEmpty;
  const Setting& setting = of(option);
  return setting.values.empty() ? kEmpty : setting.values.front();
}

std::optional<std::string> Settings::optional_text(Option option) const {
  const Setting& setting = of(option);
  if (setting.values.empty()) return std::nullopt;
  return setting.values.front();
}

std::optional<std::int64_t> Settings::integer(Option option) const {
  const std::string& value = text(option);
  if (value.empty()) return std::nullopt;
  const Result<std::int64_t> number = parse_integer(value);
  if (!number) return std::nullopt;
  return *number;
}

double Settings::number(Option option) const {
  const std::string& value = text(option);
  const ValueKind kind = option_row(option).kind;
  if (kind == ValueKind::kPercent) return share_of(value).value_or(0);
  // Defaults stand as a user would write them.
  Result<std::string> read = value;
  if (kind == ValueKind::kSeconds) read = read_seconds(value, "");
  return read ? parse_number(*read).value_or(0) : 0;
}

Result<void> Settings::set(Option option, const std::vector<std::string>& values, SetBy set_by,
                           std::string_view where) {
  OptionRow row = option_row(option);
  row.kind = value_kind(program_, row);
  Setting& setting = settings_[static_cast<std::size_t>(option)];
  if (set_by < setting.set_by) return {};
  Setting replacement{.values = {}, .set_by = set_by, .where = std::string(where)};
  if (row.kind == ValueKind::kCount) {
    replacement.values = {std::to_string(values.size())};
    setting = std::move(replacement);
    return {};
  }
  for (const std::string& value : values) {
    for (const std::string& part : parts_of(row, value)) {
      KERNELPATH_TRY(checked, read_value(row, part, where));
      const bool repeated = !keeps_all_values(row) && !replacement.values.empty();
      if (repeated && replacement.values.front() != checked) {
        return fail({.code = ErrorCode::kUsageConflict,
                     .message = fmt::format("given twice, as {} and {}", replacement.values.front(),
                                            checked),
                     .where = std::string(where)});
      }
      if (!repeated) replacement.values.push_back(std::move(checked));
    }
  }
  setting = std::move(replacement);
  return {};
}

const std::string* ProcessEnvironment::find(std::string_view name) const {
  for (const auto& [key, value] : variables) {
    if (key == name) return &value;
  }
  return nullptr;
}

Result<Settings> make_settings(const Arguments& arguments, const ProcessEnvironment& environment,
                               const Program& program) {
  Settings settings(program.kind);
  KERNELPATH_CHECK_OK(apply_config_file(settings, arguments, environment, program.name));
  KERNELPATH_CHECK_OK(apply_environment(settings, environment));
  KERNELPATH_CHECK_OK(apply_command_line(settings, arguments));
  return settings;
}

}  // namespace kernelpath::cli
