#pragma once

#include "features/command_table.h"
#include "json/value.h"

#include <string>
#include <string_view>

namespace kernelpath::features {

// A word read as an option's value, or what is wrong with it.
struct CommandValue {
  json::Value value = {};
  std::string fault = {};    // "eight is no integer"; empty: nothing
  std::string dropped = {};  // "only 32 of 32k is read"; empty: nothing
};

// Reads a word as the option's converter does: its type, its choices, 1k and 1K, None, JSON, lists.
CommandValue read_command_value(const CommandOption& option, std::string_view written);

// The value of --option.member: JSON where it reads as JSON, a number with a suffix, else the text.
json::Value read_member_value(const std::string& text);

}  // namespace kernelpath::features
