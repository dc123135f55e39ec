#include "json/document.h"
#include "report/inspect.h"
#include "sample_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const Tool kTool{"llm-inspect", "0.1.0"};

json::Value parsed(const std::string& text) {
  Result<json::Document> document = json::parse(text, "");
  EXPECT_TRUE(document) << document.error().text();
  return document ? document->root : json::Value();
}

std::vector<std::string> keys(const json::Value& object) {
  std::vector<std::string> out;
  for (const json::Member& member : object.members()) out.push_back(member.key);
  return out;
}

TEST(InspectJson, Schema_StandsFirst) {
  EXPECT_THAT(inspect_json(kTool, {}, {}), StartsWith("{\n  \"schema\": \"kernelpath/inspect\",\n"
                                                      "  \"schema_version\": \"1.1.0\",\n"));
}

TEST(InspectJson, Keys_AreInTheDocumentedOrder) {
  const json::Value root = parsed(inspect_json(kTool, {sample_answer()}, {}));
  EXPECT_THAT(keys(root), ElementsAre("schema", "schema_version", "tool", "inputs"));
  const json::Value& input = root.find("inputs")->items()[0];
  EXPECT_THAT(keys(input), ElementsAre("model", "path", "sha256", "device", "device_facts", "lacks",
                                       "has", "facts", "warnings", "engines"));
  const json::Value& engine = input.find("engines")->items()[0];
  EXPECT_THAT(keys(engine),
              ElementsAre("engine", "version", "status", "model_class", "model_module", "attention",
                          "options", "layers", "memory", "warnings", "steps"));
  EXPECT_THAT(keys(*engine.find("attention")),
              ElementsAre("requested", "requested_by", "selected", "class", "fallback"));
  EXPECT_EQ(input.find("facts")->find("attention")->as_string(), "gqa");
  EXPECT_EQ(input.find("facts")->find("kv_bytes_per_token")->as_integer(), 131072);
}

TEST(InspectJson, Unknown_IsNullAndNotApplicable_IsAbsent) {
  const json::Value root = parsed(inspect_json(kTool, {sample_answer()}, {}));
  const json::Value& memory =
      *root.find("inputs")->items()[0].find("engines")->items()[0].find("memory");
  ASSERT_NE(memory.find("kv_pool_bytes"), nullptr);
  EXPECT_TRUE(memory.find("kv_pool_bytes")->is_null());
  EXPECT_EQ(memory.find("state_bytes_per_sequence"), nullptr);
  EXPECT_EQ(memory.find("kv_bytes_per_batch"), nullptr);
}

TEST(InspectJson, Batch_HasItsBytesOrNull) {
  InputAnswer answer = sample_answer();
  engines::Memory& memory = answer.engines[0].resolution.memory;
  memory.batch_sequences = 8;
  EXPECT_THAT(inspect_json(kTool, {answer}, {}), HasSubstr("\"kv_bytes_per_batch\": null"));
  memory.kv_bytes_per_batch = 4096;
  const std::string text = inspect_json(kTool, {answer}, {});
  EXPECT_THAT(text, HasSubstr("\"batch_sequences\": 8"));
  EXPECT_THAT(text, HasSubstr("\"kv_bytes_per_batch\": 4096"));
}

TEST(InspectJson, Phase_LeavesTheOtherOut) {
  const std::string text = inspect_json(kTool, {sample_answer()}, {.decode = false});
  EXPECT_THAT(text, HasSubstr("\"prefill\""));
  EXPECT_THAT(text, testing::Not(HasSubstr("\"decode\"")));
}

TEST(InspectJson, SameAnswer_GivesTheSameBytes) {
  EXPECT_EQ(inspect_json(kTool, {sample_answer()}, {}), inspect_json(kTool, {sample_answer()}, {}));
}

TEST(InspectJsonl, Header_IsALineOfItsOwn) {
  EXPECT_EQ(inspect_jsonl_header(kTool),
            "{\"schema\":\"kernelpath/inspect\",\"schema_version\":\"1.1.0\","
            "\"tool\":{\"name\":\"llm-inspect\",\"version\":\"0.1.0\"}}\n");
  const std::string line = inspect_jsonl_line(sample_answer(), {});
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(parsed(line),
            parsed(inspect_json(kTool, {sample_answer()}, {})).find("inputs")->items()[0]);
}

}  // namespace
}  // namespace kernelpath::report
