#pragma once

#include "json/value.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kernelpath::config {

// The integer and boolean members of an object (true is 1), sorted by name; empty for anything
// else. Numbers that do not fit 64 bits and numbers with a fraction are left out.
std::vector<std::pair<std::string, std::int64_t>> integer_members(const json::Value& object);

// The string members of an object, sorted by name; empty for anything else.
std::vector<std::pair<std::string, std::string>> string_members(const json::Value& object);

}  // namespace kernelpath::config
