#include "equality.h"

#include "json/document.h"
#include "json/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <set>
#include <string_view>

namespace kernelpath::golden {
namespace {

// Evidence of how a case was got; never compared.
constexpr std::array<std::string_view, 7> kEvidence = {"log",     "model_log", "note",  "notes",
                                                       "assumes", "by",        "source"};

std::string text_of(const json::Value* value) {
  return value == nullptr ? "nothing" : json::to_text(*value);
}

std::string difference(const std::string& where, const json::Value* given,
                       const json::Value* recorded) {
  return where + ": given " + text_of(given) + ", recorded " + text_of(recorded);
}

std::string compare_exactly(const std::string& where, const json::Value* given,
                            const json::Value* recorded) {
  const bool both = given != nullptr && recorded != nullptr;
  if ((!both && given == recorded) || (both && *given == *recorded)) return {};
  return difference(where, given, recorded);
}

// The rule ids in their order, and nothing else of a step.
std::vector<std::string> rule_ids(const json::Value* steps) {
  std::vector<std::string> ids;
  if (steps == nullptr || !steps->is_array()) return ids;
  for (const json::Value& step : steps->items()) {
    const json::Value* rule = step.find("rule");
    ids.push_back(rule != nullptr && rule->is_string() ? rule->as_string()
                                                       : "a step without a rule");
  }
  return ids;
}

std::string compare_steps(const json::Value* given, const json::Value* recorded) {
  const bool same_kind = (given == nullptr) == (recorded == nullptr);
  if (same_kind && rule_ids(given) == rule_ids(recorded)) return {};
  return difference("steps", given, recorded);
}

std::string first_word(const json::Value* code) {
  if (code == nullptr || !code->is_string()) return {};
  return code->as_string().substr(0, code->as_string().find(' '));
}

// `code` by its first word; where that is no id, the whole error by its type only.
std::string compare_error(const json::Value* given, const json::Value* recorded) {
  if (given == nullptr || recorded == nullptr || !given->is_object() || !recorded->is_object()) {
    return compare_exactly("error", given, recorded);
  }
  if (auto text = compare_exactly("error/type", given->find("type"), recorded->find("type"));
      !text.empty()) {
    return text;
  }
  const std::string code = first_word(recorded->find("code"));
  if (code.empty() || std::isupper(static_cast<unsigned char>(code[0])) == 0) return {};
  if (first_word(given->find("code")) != code) {
    return difference("error/code", given->find("code"), recorded->find("code"));
  }
  for (const json::Value* side : {recorded, given}) {
    for (const json::Member& member : side->members()) {
      if (member.key == "code") continue;
      auto text = compare_exactly("error/" + member.key, given->find(member.key),
                                  recorded->find(member.key));
      if (!text.empty()) return text;
    }
  }
  return {};
}

bool is_sentence(const json::Value& value) {
  return value.is_string() && value.as_string().find(' ') != std::string::npos;
}

// The same keys; a value that is a sentence is read by people only.
std::string compare_effects(const json::Value* given, const json::Value* recorded) {
  if (given == nullptr || recorded == nullptr || !given->is_object() || !recorded->is_object()) {
    return compare_exactly("effects", given, recorded);
  }
  for (const json::Member& member : given->members()) {
    if (recorded->find(member.key) == nullptr) {
      return difference("effects/" + member.key, &member.value, nullptr);
    }
  }
  for (const json::Member& member : recorded->members()) {
    const json::Value* ours = given->find(member.key);
    if (ours == nullptr) return difference("effects/" + member.key, nullptr, &member.value);
    if (is_sentence(member.value)) continue;
    auto text = compare_exactly("effects/" + member.key, ours, &member.value);
    if (!text.empty()) return text;
  }
  return {};
}

std::string compare_member(const std::string& key, const json::Value* given,
                           const json::Value* recorded) {
  if (key == "steps") return compare_steps(given, recorded);
  if (key == "error") return compare_error(given, recorded);
  if (key == "effects") return compare_effects(given, recorded);
  return compare_exactly(key, given, recorded);
}

// An entry of SGLang's rewrites without the " [function]" or " [RULE]" that ends it.
std::string without_origin(const std::string& entry) {
  const std::size_t at = entry.rfind(" [");
  return at != std::string::npos && entry.ends_with("]") ? entry.substr(0, at) : entry;
}

struct Rewrites {
  json::Value sets;
  json::Value kinds;  // "info" and "warning", in order
};

Rewrites split_rewrites(const json::Value* list, bool ours) {
  // Said by the recorder's machine, which had no GPU to ask.
  constexpr std::string_view kOfTheRecorder = "warning: GPU fabric readiness query failed";
  std::vector<json::Value> sets;
  std::vector<json::Value> kinds;
  if (list == nullptr || !list->is_array()) return {};
  for (const json::Value& item : list->items()) {
    const std::string& entry = item.as_string();
    if (entry.starts_with("set ")) {
      sets.push_back(json::Value::string(without_origin(entry)));
    } else if (!entry.starts_with(kOfTheRecorder)) {
      const bool has_rule = !ours || entry.rfind(" [SGL-") != std::string::npos;
      kinds.push_back(
          json::Value::string(has_rule ? entry.substr(0, entry.find(':')) : "no rule: " + entry));
    }
  }
  return {.sets = json::Value::array(std::move(sets)),
          .kinds = json::Value::array(std::move(kinds))};
}

std::string compare_rewrites(const json::Value* given, const json::Value* recorded) {
  const Rewrites ours = split_rewrites(given, true);
  const Rewrites theirs = split_rewrites(recorded, false);
  auto text = compare_exactly("rewrites", &ours.sets, &theirs.sets);
  return text.empty() ? compare_exactly("rewrites' messages", &ours.kinds, &theirs.kinds) : text;
}

// "ValueError" of "ValueError: Model …".
json::Value error_name(const json::Value* text) {
  if (text == nullptr || !text->is_string()) return json::Value::null();
  return json::Value::string(text->as_string().substr(0, text->as_string().find(':')));
}

std::string compare_sglang_member(const std::string& key, const json::Value* given,
                                  const json::Value* recorded) {
  if (key == "rewrites") return compare_rewrites(given, recorded);
  if (key == "model_error") {
    const json::Value ours = error_name(given);
    const json::Value theirs = error_name(recorded);
    return compare_exactly(key, &ours, &theirs);
  }
  if (key != "error" || given == nullptr || recorded == nullptr || given->is_null() ||
      recorded->is_null()) {
    return compare_exactly(key, given, recorded);
  }
  auto text = compare_exactly("error/stage", given->find("stage"), recorded->find("stage"));
  if (!text.empty()) return text;
  return compare_exactly("error/type", given->find("type"), recorded->find("type"));
}

}  // namespace

std::vector<Case> read_cases(const std::string& name) {
  const std::string path = std::string(KERNELPATH_GOLDEN_DIR) + "/" + name;
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    const auto document = json::parse_object(line, name);
    if (!document || document->root.find("in") == nullptr ||
        document->root.find("out") == nullptr) {
      ADD_FAILURE() << name << ": line " << cases.size() + 1 << " is no case";
      return {};
    }
    const json::Value* id = document->root.find("id");
    cases.push_back({.id = id != nullptr ? id->as_string() : std::to_string(cases.size() + 1),
                     .record = document->root});
  }
  return cases;
}

std::string trtllm_difference(const json::Value& record, const json::Value& answer) {
  const json::Value& recorded = *record.find("out");
  std::set<std::string> keys;
  for (const json::Member& member : recorded.members()) keys.insert(member.key);
  for (const json::Member& member : answer.members()) keys.insert(member.key);
  const bool noted = record.find("note") != nullptr || recorded.find("note") != nullptr;
  for (const std::string& key : keys) {
    if (std::find(kEvidence.begin(), kEvidence.end(), key) != kEvidence.end()) continue;
    if (noted && key == "class") continue;
    auto text = compare_member(key, answer.find(key), recorded.find(key));
    if (!text.empty()) return text;
  }
  return {};
}

std::string vllm_select_difference(const json::Value& record, const json::Value& answer) {
  const json::Value& recorded = *record.find("out");
  std::set<std::string> keys;
  for (const json::Member& member : recorded.members()) keys.insert(member.key);
  for (const json::Member& member : answer.members()) keys.insert(member.key);
  const bool noted = recorded.find("note") != nullptr;
  for (const std::string& key : keys) {
    if (std::find(kEvidence.begin(), kEvidence.end(), key) != kEvidence.end()) continue;
    if (noted && (key == "rejected" || key == "valid")) continue;
    auto text = compare_exactly(key, answer.find(key), recorded.find(key));
    if (!text.empty()) return text;
  }
  return {};
}

std::string sglang_select_difference(const json::Value& record, const json::Value& answer) {
  const json::Value& recorded = *record.find("out");
  std::set<std::string> keys;
  for (const json::Member& member : recorded.members()) keys.insert(member.key);
  for (const json::Member& member : answer.members()) keys.insert(member.key);
  for (const std::string& key : keys) {
    const bool evidence = std::find(kEvidence.begin(), kEvidence.end(), key) != kEvidence.end();
    if (evidence || key == "model_log") continue;
    // Not every recording asked for the class.
    const bool of_class = key.starts_with("model_") || key == "resolved_arch";
    if (of_class && recorded.find(key) == nullptr) continue;
    auto text = compare_sglang_member(key, answer.find(key), recorded.find(key));
    if (!text.empty()) return text;
  }
  return {};
}

std::string deepinfer_difference(const json::Value& record, const json::Value& answer) {
  const json::Value& recorded = *record.find("out");
  std::set<std::string> keys;
  for (const json::Member& member : recorded.members()) keys.insert(member.key);
  for (const json::Member& member : answer.members()) keys.insert(member.key);
  for (const std::string& key : keys) {
    const json::Value* given = answer.find(key);
    const json::Value* wanted = recorded.find(key);
    std::string text;
    if (key == "error" && given != nullptr && wanted != nullptr && !wanted->is_null()) {
      for (const std::string_view part : {"type", "rule"}) {
        if (!text.empty()) continue;
        text = compare_exactly("error/" + std::string(part), given->find_non_null(part),
                               wanted->find_non_null(part));
      }
    } else {
      text = compare_exactly(key, given, wanted);
    }
    if (!text.empty()) return text;
  }
  return {};
}

std::string exact_difference(const json::Value& record, const json::Value& answer) {
  const json::Value& recorded = *record.find("out");
  std::set<std::string> keys;
  for (const json::Member& member : recorded.members()) keys.insert(member.key);
  for (const json::Member& member : answer.members()) keys.insert(member.key);
  for (const std::string& key : keys) {
    if (std::find(kEvidence.begin(), kEvidence.end(), key) != kEvidence.end()) continue;
    auto text = compare_exactly(key, answer.find(key), recorded.find(key));
    if (!text.empty()) return text;
  }
  return {};
}

}  // namespace kernelpath::golden
