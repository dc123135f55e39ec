#include "features/command_value.h"

#include "base/text.h"
#include "base/units.h"
#include "json/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace kernelpath::features {
namespace {

// The unit of a size as vLLM's command line writes it: k is 1000, K is 1024.
std::optional<double> unit_of(char suffix) {
  switch (suffix) {
    case 'k':
      return 1e3;
    case 'm':
      return 1e6;
    case 'g':
      return 1e9;
    case 't':
      return 1e12;
    case 'K':
      return 0x1p10;
    case 'M':
      return 0x1p20;
    case 'G':
      return 0x1p30;
    case 'T':
      return 0x1p40;
    default:
      return std::nullopt;
  }
}

std::optional<double> read_number(std::string_view text) {
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

// "4k", "25.6k", "1K"; a fraction of a binary unit is refused.
std::optional<std::int64_t> read_with_suffix(std::string_view text) {
  const std::string_view word = trim(text);
  if (word.empty()) return std::nullopt;
  const auto unit = unit_of(word.back());
  if (!unit) return std::nullopt;
  const std::string_view digits = word.substr(0, word.size() - 1);
  const bool plain = std::all_of(digits.begin(), digits.end(),
                                 [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  const auto number = read_number(digits);
  const bool binary = word.back() >= 'A' && word.back() <= 'Z';
  if (!plain || !number || (binary && digits.find('.') != std::string_view::npos)) {
    return std::nullopt;
  }
  const double value = std::trunc(*number * *unit);
  if (value >= static_cast<double>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

// "4k", "25.6k", "1Ki"; a fraction of a binary unit is refused.
std::optional<std::int64_t> read_with_iec_suffix(std::string_view text) {
  const std::string_view word = trim(text);
  const bool binary = word.ends_with('i');
  const std::string_view rest = word.substr(0, word.size() - (binary ? 1 : 0));
  const char unit = rest.empty() ? '\0' : rest.back();
  const std::string_view units = binary ? "KMGT" : "kMGT";
  if (units.find(unit) == std::string_view::npos) return std::nullopt;
  std::string spelled(rest);  // as the other form has it: K is 1024, m is a million
  spelled.back() = binary ? unit : to_lower(rest.substr(rest.size() - 1)).front();
  return read_with_suffix(spelled);
}

CommandValue fault(std::string text) { return {.value = {}, .fault = std::move(text)}; }

// A number as C++'s std::stoi and std::stof read it: as far as it goes.
template <class Number>
struct Prefix {
  std::optional<Number> number = {};
  std::string dropped = {};
};
template <class Number>
Prefix<Number> read_prefix(std::string_view text) {
  std::string_view word = text;
  while (!word.empty() && (word.front() == ' ' || word.front() == '\t')) word.remove_prefix(1);
  if (word.starts_with('+')) word.remove_prefix(1);
  Number number{};
  const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
  if (read.ec != std::errc()) return {};
  Prefix<Number> out{.number = number};
  const auto used = static_cast<std::size_t>(read.ptr - text.data());
  if (used < text.size()) {
    out.dropped = fmt::format("only {} of {} is read", text.substr(0, used), shorten(text, 60));
  }
  return out;
}

CommandValue number_of_prefix(const CommandOption& option, std::string_view text) {
  if (option.type == "number") {
    const Prefix<float> read = read_prefix<float>(text);
    if (!read.number) return fault(fmt::format("{} is no number", shorten(text, 60)));
    const double number = *read.number;
    if (!option.inverse) return {.value = json::Value::number(number), .dropped = read.dropped};
    if (number == 0) return fault("0 has no inverse");
    return {.value = json::Value::number(1 / number), .dropped = read.dropped};
  }
  const Prefix<std::int32_t> read = read_prefix<std::int32_t>(text);
  if (!read.number) return fault(fmt::format("{} is no integer of 32 bits", shorten(text, 60)));
  return {.value = json::Value::integer(*read.number), .dropped = read.dropped};
}

// The items of a list; each must be one of the choices, where there are some.
CommandValue list_value(const CommandOption& option, std::string_view text) {
  std::vector<json::Value> items;
  while (true) {
    const std::size_t end = std::min(text.find_first_of(option.separators), text.size());
    const std::string_view item = text.substr(0, end);
    const auto& choices = option.choices;
    if (!choices.empty() && std::ranges::find(choices, item) == choices.end()) {
      return fault(fmt::format("{} is none of {}", shorten(item, 60), join(choices, ", ")));
    }
    if (!item.empty()) items.push_back(json::Value::string(std::string(item)));
    if (end == text.size()) return {.value = json::Value::array(std::move(items))};
    text.remove_prefix(end + 1);
  }
}

// The choice that a word means.
std::string_view spelled(const CommandOption& option, std::string_view text) {
  for (const auto& [word, choice] : option.spellings) {
    if (word == text) return choice;
  }
  return text;
}

CommandValue integer_value(const CommandOption& option, std::string_view text) {
  if (option.automatic && equal_ignoring_case(trim(text), "auto")) {
    return {.value = json::Value::integer(*option.automatic)};
  }
  if (option.suffixes) {
    if (const auto number = read_with_suffix(text)) return {.value = json::Value::integer(*number)};
  }
  if (option.iec_suffixes) {
    if (const auto number = read_with_iec_suffix(text)) {
      return {.value = json::Value::integer(*number)};
    }
  }
  const auto number = parse_integer(text);
  if (number) return {.value = json::Value::integer(*number)};
  return fault(fmt::format("{} is no integer", shorten(text, 60)));
}

CommandValue json_value(std::string_view text) {
  const auto document = json::parse(std::string(text), "--command");
  if (document) return {.value = document->root};
  return fault(fmt::format("{} is no JSON: {}", shorten(text, 60), document.error().message));
}

bool looks_like_object(std::string_view text) {
  const std::string_view word = trim(text);
  return word.starts_with('{') && word.ends_with('}');
}

}  // namespace

CommandValue read_command_value(const CommandOption& option, std::string_view written) {
  const std::string_view text = spelled(option, written);
  if (option.nullable && (text.empty() || text == "None")) return {.value = json::Value::null()};
  if (!option.separators.empty()) return list_value(option, text);
  const auto& choices = option.choices;
  if (option.type == "integer_or_word") {
    const bool word = std::ranges::find(choices, text) != choices.end();
    if (word) return {.value = json::Value::string(std::string(text))};
    return number_of_prefix(option, text);
  }
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
    return fault(fmt::format("{} is none of {}", shorten(text, 60), join(choices, ", ")));
  }
  const bool number_type = option.type == "integer" || option.type == "number";
  if (option.number_prefix && number_type) return number_of_prefix(option, text);
  if (option.type == "integer") return integer_value(option, text);
  if (option.type == "number") {
    const auto number = read_number(text);
    if (number) return {.value = json::Value::number(*number)};
    return fault(fmt::format("{} is no number", shorten(text, 60)));
  }
  const bool as_json =
      option.type == "json" || (option.type == "string_or_json" && looks_like_object(text));
  return as_json ? json_value(text) : CommandValue{.value = json::Value::string(std::string(text))};
}

json::Value read_member_value(const std::string& text) {
  const auto document = json::parse(text, "--command");
  if (document) return document->root;
  if (const auto number = read_with_suffix(text)) return json::Value::integer(*number);
  return json::Value::string(text);
}

}  // namespace kernelpath::features
