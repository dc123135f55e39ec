#include "engines/python.h"

#include "base/text.h"

#include <vector>

namespace kernelpath::engines {
namespace {

std::string list_repr(const json::Value& value) {
  std::vector<std::string> parts;
  for (const json::Value& item : value.items()) parts.push_back(python_repr(item));
  return "[" + join(parts, ", ") + "]";
}

std::string dictionary_repr(const json::Value& value) {
  std::vector<std::string> parts;
  for (const json::Member& member : value.members()) {
    parts.push_back(python_repr(member.key) + ": " + python_repr(member.value));
  }
  return "{" + join(parts, ", ") + "}";
}

}  // namespace

std::string python_repr(std::string_view text) {
  const bool double_quotes =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = double_quotes ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\\' || c == quote) {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
  }
  return out + quote;
}

std::string python_repr(const json::Value& value) {
  switch (value.type()) {
    case json::Type::kNull:
      return "None";
    case json::Type::kBool:
      return value.as_bool() ? "True" : "False";
    case json::Type::kString:
      return python_repr(std::string_view(value.as_string()));
    case json::Type::kArray:
      return list_repr(value);
    case json::Type::kObject:
      return dictionary_repr(value);
    default:
      return value.number_text();
  }
}

std::string python_list(std::span<const std::string> names) {
  std::vector<std::string> parts;
  parts.reserve(names.size());
  for (const std::string& name : names) parts.push_back(python_repr(std::string_view(name)));
  return "[" + join(parts, ", ") + "]";
}

std::string python_integer(std::optional<std::int64_t> value) {
  return value ? std::to_string(*value) : "None";
}

}  // namespace kernelpath::engines
