#include "features/argument_tree.h"

#include <algorithm>
#include <string>
#include <vector>

namespace kernelpath::features {
namespace {

std::vector<json::Member> members_of(const json::Value& value) {
  if (!value.is_object()) return {};
  return {value.members().begin(), value.members().end()};
}

auto find_member(std::vector<json::Member>& members, std::string_view key) {
  return std::find_if(members.begin(), members.end(),
                      [key](const json::Member& member) { return member.key == key; });
}

}  // namespace

json::Value with_argument(const json::Value& arguments, std::string_view path, json::Value value) {
  const std::size_t dot = path.find('.');
  const std::string_view key = path.substr(0, dot);
  std::vector<json::Member> members = members_of(arguments);
  auto found = find_member(members, key);
  if (found == members.end()) {
    members.push_back({.key = std::string(key), .value = json::Value::object({})});
    found = members.end() - 1;
  }
  found->value = dot == std::string_view::npos
                     ? std::move(value)
                     : with_argument(found->value, path.substr(dot + 1), std::move(value));
  return json::Value::object(std::move(members));
}

json::Value without_argument(const json::Value& arguments, std::string_view path) {
  const std::size_t dot = path.find('.');
  std::vector<json::Member> members = members_of(arguments);
  const auto found = find_member(members, path.substr(0, dot));
  if (found == members.end()) return arguments;
  if (dot == std::string_view::npos) {
    members.erase(found);
  } else {
    found->value = without_argument(found->value, path.substr(dot + 1));
  }
  return json::Value::object(std::move(members));
}

json::Value merge_arguments(const json::Value& base, const json::Value& over) {
  if (!base.is_object() || !over.is_object()) return over;
  std::vector<json::Member> members = members_of(base);
  for (const json::Member& member : over.members()) {
    const auto found = find_member(members, member.key);
    if (found == members.end()) {
      members.push_back(member);
    } else {
      found->value = merge_arguments(found->value, member.value);
    }
  }
  return json::Value::object(std::move(members));
}

const json::Value* find_argument_value(const json::Value& arguments, std::string_view path) {
  const json::Value* at = &arguments;
  while (at != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    at = at->find(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return at;
}

}  // namespace kernelpath::features
