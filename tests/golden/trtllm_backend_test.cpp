// Every recorded answer about TensorRT-LLM's attention side, through answer_backend().

#include "engines/trtllm/answer_backend.h"
#include "json/document.h"
#include "json/writer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

namespace kernelpath::engines::trtllm {
namespace {

// Fields of `out` that are evidence and never compared.
const std::set<std::string> kEvidence = {"log",     "model_log", "note",  "notes",
                                         "assumes", "by",        "source"};

json::Value comparable(const json::Value& out, bool class_unknown) {
  std::vector<json::Member> members;
  for (const json::Member& member : out.members()) {
    const bool skipped = kEvidence.contains(member.key) || (class_unknown && member.key == "class");
    if (!skipped) members.push_back(member);
  }
  return json::Value::object(std::move(members));
}

TEST(TrtllmBackend, EveryRecordedAnswer_IsGiven) {
  std::ifstream file(KERNELPATH_GOLDEN_DIR "/trtllm/backend.jsonl");
  ASSERT_TRUE(file) << KERNELPATH_GOLDEN_DIR "/trtllm/backend.jsonl";
  std::set<std::string> ops;
  std::string line;
  int cases = 0;
  while (std::getline(file, line)) {
    const auto document = json::parse_object(line, "backend.jsonl");
    ASSERT_TRUE(document) << document.error().text();
    const json::Value& in = *document->root.find("in");
    const json::Value& expected = *document->root.find("out");
    const std::string id = document->root.find("id")->as_string();
    ops.insert(in.find("op")->as_string());
    const auto answer = answer_backend(in);
    ASSERT_TRUE(answer) << id << ": " << answer.error().text();
    const bool class_unknown = expected.find("note") != nullptr;
    EXPECT_TRUE(comparable(*answer, class_unknown) == comparable(expected, class_unknown))
        << id << ": " << json::to_text(in) << "\n  given:    " << json::to_text(*answer)
        << "\n  recorded: " << json::to_text(expected);
    ++cases;
  }
  EXPECT_EQ(cases, 594);
  EXPECT_EQ(ops.size(), backend_ops().size()) << "an op without a recorded answer";
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
