// The comparison itself: what it must notice, and what it must pass over.
#include "equality.h"

#include "json/document.h"

#include <gtest/gtest.h>

namespace kernelpath::golden {
namespace {

json::Value value(const std::string& text) { return json::parse(text, "test")->root; }

constexpr const char* kRecord = R"json({"in": {}, "out": {
  "class": "A", "module": "m", "by": "run",
  "error": {"type": "ValueError", "code": "UNKNOWN-ARCH:A (as the engine says)", "name": "x"},
  "steps": [{"rule": "R1", "arch": "A"}, {"rule": "R2"}],
  "effects": {"window": 4, "why": "because of this"}, "bytes": 1}})json";

TEST(TrtllmDifference, SameAnswer_IsEqual) {
  EXPECT_EQ(trtllm_difference(value(kRecord), *value(kRecord).find("out")), "");
}

TEST(TrtllmDifference, EvidenceTextsAndOrderOfKeys_ArePassedOver) {
  EXPECT_EQ(trtllm_difference(value(kRecord), value(R"({
    "bytes": 1.0, "effects": {"why": "in other words", "window": 4}, "log": ["more"],
    "steps": [{"rule": "R1", "arch": "B", "more": 1}, {"rule": "R2"}],
    "error": {"name": "x", "code": "UNKNOWN-ARCH:A", "type": "ValueError"},
    "module": "m", "class": "A"})")),
            "");
}

struct Change {
  const char* what;
  const char* answer;
};

TEST(TrtllmDifference, AnyChangedField_IsNoticed) {
  const Change changes[] = {
      {"class", R"({"class": "B"})"},
      {"module", R"({"module": null})"},
      {"error/type", R"({"error": {"type": "E", "code": "UNKNOWN-ARCH:A", "name": "x"}})"},
      {"error/code", R"({"error": {"type": "ValueError", "code": "UNKNOWN-ARCH:B", "name": "x"}})"},
      {"error/name", R"({"error": {"type": "ValueError", "code": "UNKNOWN-ARCH:A"}})"},
      {"error/more", R"({"error": {"type": "ValueError", "code": "UNKNOWN-ARCH:A", "name": "x",
                         "more": 1}})"},
      {"error", R"({"error": null})"},
      {"steps", R"({"steps": [{"rule": "R2"}, {"rule": "R1"}]})"},
      {"steps", R"({"steps": [{"rule": "R1"}]})"},
      {"effects/window", R"({"effects": {"window": 5, "why": "x y"}})"},
      {"effects/why", R"({"effects": {"window": 4}})"},
      {"effects/more", R"({"effects": {"window": 4, "why": "x y", "more": 1}})"},
      {"bytes", R"({"bytes": 2})"},
      {"unknown", R"({"unknown": 1})"},
  };
  for (const Change& change : changes) {
    // The recorded answer with some members replaced.
    const json::Value patch = value(change.answer);
    const json::Value record = value(kRecord);
    std::vector<json::Member> members(patch.members().begin(), patch.members().end());
    for (const json::Member& member : record.find("out")->members()) {
      if (patch.find(member.key) == nullptr) members.push_back(member);
    }
    const std::string text = trtllm_difference(record, json::Value::object(std::move(members)));
    EXPECT_EQ(text.substr(0, text.find(':')), change.what) << change.answer;
  }
}

TEST(TrtllmDifference, MissingField_IsNoticed) {
  EXPECT_NE(trtllm_difference(value(kRecord), value(R"({"class": "A"})")), "");
}

TEST(TrtllmDifference, CodeThatIsNoId_ComparesTheTypeOnly) {
  const json::Value record =
      value(R"({"in": {}, "out": {"error": {"type": "TypeError", "code": "not an id"}}})");
  EXPECT_EQ(trtllm_difference(record, value(R"({"error": {"type": "TypeError"}})")), "");
  EXPECT_NE(trtllm_difference(record, value(R"({"error": {"type": "ValueError"}})")), "");
}

TEST(TrtllmDifference, CaseWithANote_DoesNotCompareTheClass) {
  const json::Value record = value(R"({"in": {}, "out": {"class": "A", "note": "n", "x": 1}})");
  EXPECT_EQ(trtllm_difference(record, value(R"({"class": "B", "x": 1})")), "");
  EXPECT_NE(trtllm_difference(record, value(R"({"class": "B", "x": 2})")), "");
}

}  // namespace
}  // namespace kernelpath::golden
