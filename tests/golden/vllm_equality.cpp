#include "vllm_equality.h"

#include "json/writer.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

namespace kernelpath::golden {
namespace {

using Names = std::vector<std::string_view>;

const Names& evidence() {
  static const Names names = {"log", "model_log", "note", "notes", "assumes", "by", "source"};
  return names;
}

bool is_one_of(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The rows of a list of objects with some members only, or without some.
json::Value filtered(const json::Value* list, const Names& names, bool keep) {
  if (list == nullptr || !list->is_array()) return json::Value::null();
  std::vector<json::Value> rows;
  for (const json::Value& row : list->items()) {
    std::vector<json::Member> members;
    for (const json::Member& member : row.members()) {
      if (is_one_of(names, member.key) == keep) members.push_back(member);
    }
    rows.push_back(json::Value::object(std::move(members)));
  }
  return json::Value::array(std::move(rows));
}

std::string compare(std::string_view key, const json::Value& given, const json::Value& recorded) {
  if (given == recorded) return {};
  return std::string(key) + ": given " + json::to_text(given) + ", recorded " +
         json::to_text(recorded);
}

json::Value or_null(const json::Value* value) {
  return value == nullptr ? json::Value::null() : *value;
}

// Whether a row of ours states everything that the recorded row does. A noted row counts bytes in a
// unit of its own.
bool states(const json::Value& ours, const json::Value& recorded) {
  const bool noted = recorded.find("note") != nullptr;
  return std::all_of(recorded.members().begin(), recorded.members().end(), [&](const auto& member) {
    if (member.key == "note" || (noted && member.key == "bytes_per_token")) return true;
    return or_null(ours.find(member.key)) == member.value;
  });
}

std::string compare_read_layers(const json::Value* given, const json::Value& recorded) {
  for (const json::Value& row : recorded.items()) {
    const bool found =
        given != nullptr && std::any_of(given->items().begin(), given->items().end(),
                                        [&](const auto& ours) { return states(ours, row); });
    if (!found) return "layers: no row like " + json::to_text(row);
  }
  return {};
}

std::string compare_member(std::string_view key, const json::Value* given,
                           const json::Value* recorded, bool read) {
  if (key == "errors") {
    return compare(key, filtered(given, {"stage", "type"}, true),
                   filtered(recorded, {"stage", "type"}, true));
  }
  if (key == "layers" && read) return compare_read_layers(given, *recorded);
  if (key == "layers") {
    return compare(key, filtered(given, {"example", "note"}, false),
                   filtered(recorded, {"example", "note"}, false));
  }
  return compare(key, or_null(given), or_null(recorded));
}

}  // namespace

std::string vllm_end_to_end_difference(const json::Value& record, const json::Value& answer) {
  const json::Value& recorded = *record.find("out");
  const json::Value* by = record.find("by");
  const bool read = by != nullptr && by->as_string() == "read";
  std::set<std::string> keys;
  for (const json::Member& member : recorded.members()) keys.insert(member.key);
  if (!read) {
    for (const json::Member& member : answer.members()) keys.insert(member.key);
  }
  for (const std::string& key : keys) {
    if (is_one_of(evidence(), key)) continue;
    std::string text = compare_member(key, answer.find(key), recorded.find(key), read);
    if (!text.empty()) return text;
  }
  return {};
}

}  // namespace kernelpath::golden
