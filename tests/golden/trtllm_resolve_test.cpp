// Every recorded answer about TensorRT-LLM's model classes, through answer_resolve().
#include "engines/trtllm/answer_resolve.h"
#include "engines/trtllm/class_question.h"
#include "engines/trtllm/rules_resolve.h"
#include "equality.h"
#include "json/document.h"
#include "json/writer.h"

#include <gtest/gtest.h>

#include <set>

namespace kernelpath::engines::trtllm {
namespace {

constexpr const char* kFile = "trtllm/resolve.jsonl";

TEST(TrtllmResolve, EveryRecordedAnswer_IsGiven) {
  std::set<std::string> ops;
  const auto cases = golden::read_cases(kFile);
  for (const golden::Case& recorded : cases) {
    ops.insert(recorded.in().find("op")->as_string());
    const auto answer = answer_resolve(recorded.in());
    ASSERT_TRUE(answer) << recorded.id << ": " << answer.error().text();
    EXPECT_EQ(golden::trtllm_difference(recorded.record, *answer), "")
        << recorded.id << ": " << json::to_text(recorded.in());
    // The rules ask for the ids of the steps only; ours carry the recorded fields as well.
    EXPECT_TRUE(*answer->find("steps") == *recorded.out().find("steps"))
        << recorded.id << ": " << json::to_text(*answer);
  }
  EXPECT_EQ(cases.size(), 231U);
  for (const std::string& op : ops) EXPECT_TRUE(is_resolve_op(op)) << op;
  EXPECT_EQ(ops.size(), 9U);
}

// A recorded answer with one member of `out` replaced.
json::Value changed(const json::Value& record, const std::string& key, const json::Value& value) {
  std::vector<json::Member> out = {{.key = key, .value = value}};
  for (const json::Member& member : record.find("out")->members()) {
    if (member.key != key) out.push_back(member);
  }
  return json::Value::object({{.key = "in", .value = *record.find("in")},
                              {.key = "out", .value = json::Value::object(std::move(out))}});
}

TEST(TrtllmResolve, ChangedRecord_IsNoticed) {
  for (const golden::Case& recorded : golden::read_cases(kFile)) {
    const auto answer = answer_resolve(recorded.in());
    ASSERT_TRUE(answer) << recorded.id;
    const json::Value other = json::Value::string("SomethingElse");
    const json::Value step = json::Value::object({{.key = "rule", .value = other}});
    for (const json::Member& member : recorded.out().members()) {
      const json::Value value = member.key == "steps" ? json::Value::array({step}) : other;
      EXPECT_NE(golden::trtllm_difference(changed(recorded.record, member.key, value), *answer), "")
          << recorded.id << " with another " << member.key;
    }
  }
}

// Adds the rules of an answer: those of its steps and the code of its error.
void collect(const json::Value& answer, std::set<std::string>& ids) {
  for (const json::Value& step : answer.find("steps")->items()) {
    ids.insert("TRT-" + step.find("rule")->as_string());
  }
  if (!answer.find("error")->is_object()) return;
  const std::string& code = answer.find("error")->find("code")->as_string();
  ids.insert("TRT-" + code.substr(0, code.find(':')));
}

// What no recorded case shows.
constexpr const char* kUnrecorded[] = {
    R"({"op": "from_config", "config": {"architectures": ["Qwen3VLForConditionalGeneration"]},
        "options": {"mm_encoder_only": true}})",
    R"({"op": "from_config", "config": {"architectures": ["LlamaForCausalLM"]},
        "options": {"modeling_v2": "require", "sm": [10, 3]}})",
    R"({"op": "from_config", "config": {"architectures": ["GptOssForCausalLM"],
        "num_hidden_layers": 36, "hidden_size": 2880, "num_local_experts": 128},
        "options": {"modeling_v2": "require", "sm": [10, 3], "raises_no_target": true}})",
    R"({"op": "getattr", "name": "modeling_llama", "broken_modules":
        {"tensorrt_llm._torch.models.modeling_llama": {"attribute_error": "x"}}})",
};

TEST(TrtllmResolve, RulesOfTheTable_AreExactlyThoseThatAnswersCarry) {
  std::set<std::string> emitted;
  for (const golden::Case& recorded : golden::read_cases(kFile)) {
    collect(*answer_resolve(recorded.in()), emitted);
  }
  for (const char* question : kUnrecorded) {
    const auto answer = answer_resolve(json::parse(question, "question")->root);
    ASSERT_TRUE(answer) << answer.error().text();
    collect(*answer, emitted);
  }
  // Only a provider that is a function or a shared object can fail like this.
  for (const auto kind :
       {registry::FailureKind::kRegistration, registry::FailureKind::kStartFailed}) {
    emitted.insert("TRT-" + class_error({.kind = kind}).code);
  }
  std::set<std::string> table;
  for (const RuleInfo& rule : resolve_rules()) table.emplace(rule.id);
  EXPECT_EQ(emitted, table);
  EXPECT_EQ(table.size(), resolve_rules().size()) << "an id stands twice";
}

TEST(TrtllmResolve, EveryRule_IsExplainedWithItsSource) {
  for (const RuleInfo& rule : resolve_rules()) {
    EXPECT_EQ(find_resolve_rule(rule.id), &rule);
    EXPECT_EQ(find_resolve_rule(rule.id.substr(4)), &rule);
    EXPECT_TRUE(rule.summary.ends_with('.')) << rule.id;
    EXPECT_TRUE(rule.why.ends_with('.')) << rule.id;
    EXPECT_TRUE(rule.file.starts_with("tensorrt_llm/")) << rule.id;
    EXPECT_FALSE(rule.version.empty()) << rule.id;
  }
  EXPECT_EQ(find_resolve_rule("NO-SUCH-RULE"), nullptr);
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
