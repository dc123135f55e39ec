#include "engines/llamacpp/setting_values.h"

#include "base/text.h"
#include "engines/llamacpp/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr std::string_view kDefault = "engine default";
constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

template <class Number>
std::optional<Number> parse(std::string_view text) {
  Number out{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

Error unknown_setting(std::string_view name, std::string_view set_by) {
  std::vector<std::string_view> names;
  names.reserve(setting_table().size());
  for (const SettingInfo& row : setting_table()) names.push_back(row.name);
  return {.code = ErrorCode::kUsageUnknown,
          .message = "llamacpp has no setting of this name",
          .where = std::string(set_by),
          .value = shorten(name, 64),
          .hint = "llm-inspect --list settings --engine llamacpp prints them all",
          .near_matches = near_matches(name, names)};
}

}  // namespace

SettingValues::SettingValues() {
  values_.reserve(setting_table().size());
  for (const SettingInfo& row : setting_table()) {
    values_.push_back(
        {std::string(row.name), std::string(row.default_value), std::string(kDefault)});
  }
}

Resolution::Option* SettingValues::find(std::string_view name) {
  const auto found = std::ranges::find(values_, name, &Resolution::Option::name);
  return found == values_.end() ? nullptr : &*found;
}

Result<void> SettingValues::set(std::string_view name, const std::string& value,
                                std::string_view set_by) {
  Resolution::Option* const option = find(name);
  if (option == nullptr) return fail(unknown_setting(name, set_by));
  if (option->set_by != kDefault && option->value != value) {
    return fail(Error{
        .code = ErrorCode::kUsageConflict,
        .message = fmt::format("llamacpp: {} is {} by {}", name, option->value, option->set_by),
        .where = std::string(set_by),
        .value = shorten(value, 64)});
  }
  option->value = value;
  option->set_by = set_by;
  return {};
}

void SettingValues::set_if_open(std::string_view name, const std::string& value,
                                std::string_view set_by) {
  if (!is_stated(name)) static_cast<void>(set(name, value, set_by));
}

const Resolution::Option& SettingValues::get(std::string_view name) const {
  return *std::ranges::find(values_, name, &Resolution::Option::name);
}

bool SettingValues::is_stated(std::string_view name) const { return get(name).set_by != kDefault; }

Error SettingValues::error(std::string_view name, std::string expected) const {
  const Resolution::Option& option = get(name);
  return {.code = ErrorCode::kUsage,
          .message = fmt::format("llamacpp: {} must be {}", name, expected),
          .where = option.set_by,
          .value = shorten(option.value, 64)};
}

Result<std::int64_t> SettingValues::integer(std::string_view name, std::int64_t least) const {
  const auto out = parse<std::int64_t>(get(name).value);
  if (!out || *out < least || *out > kMost) {
    return fail(error(name, fmt::format("a whole number of {} or more that fits 32 bits", least)));
  }
  return *out;
}

Result<bool> SettingValues::flag(std::string_view name) const {
  const std::string& text = get(name).value;
  if (equal_ignoring_case(text, "true") || text == "1") return true;
  if (equal_ignoring_case(text, "false") || text == "0") return false;
  return fail(error(name, "true or false"));
}

Result<std::size_t> SettingValues::choice(std::string_view name,
                                          std::span<const std::string_view> choices) const {
  const std::string& text = get(name).value;
  const auto found = std::ranges::find_if(
      choices, [&](std::string_view choice) { return equal_ignoring_case(choice, text); });
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  const std::vector<std::string> words(choices.begin(), choices.end());
  Error out = error(name, fmt::format("one of {}", join_words(words, "or")));
  out.code = ErrorCode::kUsageUnknown;
  out.near_matches = near_matches(text, choices);
  return fail(std::move(out));
}

std::vector<std::string> SettingValues::list(std::string_view name) const {
  std::string text = get(name).value;
  std::ranges::replace(text, '/', ',');
  std::vector<std::string> out = split(text, ',');
  std::erase_if(out, [](const std::string& item) { return item.empty(); });
  return out;
}

Result<std::vector<double>> SettingValues::numbers(std::string_view name) const {
  std::vector<double> out;
  for (const std::string& item : list(name)) {
    const auto number = parse<double>(item);
    if (!number || *number < 0) return fail(error(name, "numbers of 0 or more, between commas"));
    out.push_back(*number);
  }
  return out;
}

std::string switch_word(std::string_view word) {
  struct Same {
    std::string_view word;
    std::string_view stands_for;
  };
  constexpr auto kSame = std::to_array<Same>({{"enabled", "on"},
                                              {"true", "on"},
                                              {"1", "on"},
                                              {"disabled", "off"},
                                              {"false", "off"},
                                              {"0", "off"},
                                              {"-1", "auto"}});
  const std::string lower = to_lower(word);
  const auto* const found = std::ranges::find(kSame, lower, &Same::word);
  return found == kSame.end() ? lower : std::string(found->stands_for);
}

}  // namespace kernelpath::engines::llamacpp
