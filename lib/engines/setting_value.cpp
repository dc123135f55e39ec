#include "engines/setting_value.h"

#include "base/text.h"
#include "base/units.h"

#include <array>
#include <charconv>
#include <utility>

namespace kernelpath::engines {

std::string_view type_words(SettingType type) {
  constexpr std::array<std::string_view, 4> kWords = {"true or false", "a whole number", "a number",
                                                      "a text"};
  return kWords.at(static_cast<std::size_t>(type));
}

bool is_none(std::string_view text) {
  return text.empty() || equal_ignoring_case(text, "none") || equal_ignoring_case(text, "null");
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<bool> parse_flag(std::string_view text) {
  if (equal_ignoring_case(text, "true") || text == "1") return true;
  if (equal_ignoring_case(text, "false") || text == "0") return false;
  return std::nullopt;
}

std::optional<std::string> normalised(SettingType type, const std::string& text) {
  switch (type) {
    case SettingType::kBool: {
      const std::optional<bool> flag = parse_flag(text);
      if (!flag) return std::nullopt;
      return *flag ? "true" : "false";
    }
    case SettingType::kInteger:
      return parse_integer(text) ? std::optional(text) : std::nullopt;
    case SettingType::kNumber:
      return parse_number(text) ? std::optional(text) : std::nullopt;
    case SettingType::kText:
      return text;
  }
  return std::nullopt;
}

std::string torch_dtype_name(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kNames = {
      std::pair{"bf16", "bfloat16"}, std::pair{"f16", "float16"}, std::pair{"fp16", "float16"},
      std::pair{"fp32", "float32"}};
  std::string lower = to_lower(name);
  for (const auto& [shared, torch] : kNames) {
    if (lower == shared) return std::string(torch);
  }
  return lower;
}

}  // namespace kernelpath::engines
