#pragma once

#include "json/value.h"

#include <string_view>

namespace kernelpath::features {

// `arguments` with the member at a dotted path set; objects on the way are made.
json::Value with_argument(const json::Value& arguments, std::string_view path, json::Value value);

// `arguments` without the member at a dotted path.
json::Value without_argument(const json::Value& arguments, std::string_view path);

// Both, member by member; where both have one, objects are merged and otherwise `over` wins.
json::Value merge_arguments(const json::Value& base, const json::Value& over);

// The value at a dotted path; null pointer where it leads nowhere.
const json::Value* find_argument_value(const json::Value& arguments, std::string_view path);

}  // namespace kernelpath::features
