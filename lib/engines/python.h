#pragma once

#include "json/value.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// How Python writes values, for the words of engines that are written in it.

namespace kernelpath::engines {

// repr() of a str: single quotes, unless the text has one and no double quote.
std::string python_repr(std::string_view text);
// repr() of a value that Python's json module read: "[1, 'a', None, True]".
std::string python_repr(const json::Value& value);
// repr() of a list of str.
std::string python_list(std::span<const std::string> names);
// "64" or "None".
std::string python_integer(std::optional<std::int64_t> value);

}  // namespace kernelpath::engines
