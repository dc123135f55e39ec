#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Values that a user states with --set or an option, for engines whose arguments are Python's.
namespace kernelpath::engines {

enum class SettingType : std::uint8_t { kBool, kInteger, kNumber, kText };

// What a message says that an argument takes: "a whole number".
std::string_view type_words(SettingType type);

// Nothing, "none" and "null", in any case: the engine's None.
bool is_none(std::string_view text);

// A number that is the whole text.
std::optional<double> parse_number(std::string_view text);
std::optional<bool> parse_flag(std::string_view text);  // true, false in any case, 1 and 0

// `text` as reports spell it, or nothing where the type does not fit.
std::optional<std::string> normalised(SettingType type, const std::string& text);

// PyTorch's name of a dtype under one of the names that engines share ("bf16" → "bfloat16"); other
// names pass in lower case.
std::string torch_dtype_name(const std::string& name);

}  // namespace kernelpath::engines
