#pragma once

#include <span>
#include <string_view>

namespace kernelpath::config {

// A warning of the config reader: its stable code and what --explain prints.
struct WarningInfo {
  std::string_view code;
  std::string_view sentence;
};

// All of them, in alphabetical order. Every warning that this folder gives has its row here.
std::span<const WarningInfo> warning_table();

// The row of a code (any case), or null pointer.
const WarningInfo* find_warning_info(std::string_view code);

}  // namespace kernelpath::config
