#include "config/integer_members.h"

#include <algorithm>

namespace kernelpath::config {

std::vector<std::pair<std::string, std::int64_t>> integer_members(const json::Value& object) {
  std::vector<std::pair<std::string, std::int64_t>> out;
  if (!object.is_object()) return out;
  for (const json::Member& member : object.members()) {
    if (member.value.is_integer()) out.emplace_back(member.key, member.value.as_integer());
    if (member.value.is_bool()) out.emplace_back(member.key, member.value.as_bool() ? 1 : 0);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::pair<std::string, std::string>> string_members(const json::Value& object) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!object.is_object()) return out;
  for (const json::Member& member : object.members()) {
    if (member.value.is_string()) out.emplace_back(member.key, member.value.as_string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace kernelpath::config
