#include "engines/vllm/table_fields.h"

#include <fmt/format.h>

#include <charconv>

namespace kernelpath::engines::vllm {
namespace {

bool read_number(std::string_view text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// "9.0"; nothing for anything else.
std::optional<hardware::Capability> parse_bound(std::string_view text) {
  const std::size_t dot = text.find('.');
  hardware::Capability capability;
  if (dot == std::string_view::npos || !read_number(text.substr(0, dot), capability.major) ||
      !read_number(text.substr(dot + 1), capability.minor)) {
    return std::nullopt;
  }
  return capability;
}

// Null or a capability; false for anything else.
bool read_bound(const json::Value& value, std::optional<hardware::Capability>& bound) {
  if (value.is_null()) return true;
  if (!value.is_string()) return false;
  bound = parse_bound(value.as_string());
  return bound.has_value();
}

}  // namespace

Result<std::vector<std::int64_t>> read_integers(const JsonFields& row, std::string_view name) {
  const json::Value* member = row.find(name);
  if (member == nullptr || !member->is_array()) {
    return fail(row.error(name, "expected a list of integers"));
  }
  std::vector<std::int64_t> out;
  for (const json::Value& item : member->items()) {
    if (!item.is_integer()) return fail(row.error(name, "expected a list of integers only"));
    out.push_back(item.as_integer());
  }
  return out;
}

Result<std::vector<CapabilityRange>> read_capabilities(const JsonFields& row,
                                                       std::string_view name) {
  const json::Value* member = row.find(name);
  if (member == nullptr || !member->is_array()) {
    return fail(row.error(name, "expected a list of ranges"));
  }
  std::vector<CapabilityRange> out;
  for (const json::Value& item : member->items()) {
    CapabilityRange range;
    const bool pair = item.is_array() && item.items().size() == 2;
    if (!pair || !read_bound(item.items()[0], range.first) ||
        !read_bound(item.items()[1], range.last)) {
      return fail(row.error(name, "expected pairs of capabilities such as [\"8.0\", null]"));
    }
    out.push_back(range);
  }
  return out;
}

Result<std::string> read_rule(const JsonFields& row, std::string_view name) {
  const json::Value* member = row.find(name);
  if (member == nullptr) return fail(row.error(name, "missing"));
  const json::Value* rule = member->find("rule");
  if (rule == nullptr) return std::string();
  if (!rule->is_string()) return fail(row.error(name, "expected the name of a rule"));
  return rule->as_string();
}

Error unknown_rule(const JsonFields& row, std::string_view name, std::string_view rule) {
  Error error = row.error(name, fmt::format("this build has no rule {}", rule));
  error.hint = "the table is of an engine version whose code this build does not know";
  return error;
}

}  // namespace kernelpath::engines::vllm
