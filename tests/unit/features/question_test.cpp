#include "features/question.h"

#include "json/document.h"
#include "json/writer.h"

#include <gmock/gmock.h>

namespace kernelpath::features {
namespace {

using testing::ElementsAre;

const RuleTable& trtllm() { return *find_rule_table("trtllm"); }

std::vector<std::string> ids(const CombinationAnswer& answer) {
  std::vector<std::string> out;
  for (const Finding& finding : answer.findings) out.push_back(finding.id);
  return out;
}

TEST(ArgumentsOf, CommonOptions_AreSpelledAsTheEngineDoes) {
  engines::Deployment deployment;
  deployment.backend = "flashinfer";
  deployment.kv_dtype = "fp8_e4m3";
  deployment.speculative = "eagle3";
  deployment.draft_tokens = 3;
  deployment.tp = 8;
  deployment.dcp = 2;
  deployment.settings = {{"kv_cache_config.max_attention_window", "[4096, 512]"},
                         {"enable_lora", "yes"}};
  const StatedArguments stated = arguments_of(trtllm(), deployment);
  EXPECT_EQ(json::to_text(stated.tree()),
            R"({"attn_backend":"FLASHINFER","kv_cache_config":{"dtype":"fp8",)"
            R"("max_attention_window":[4096,512]},"tensor_parallel_size":8,)"
            R"("speculative_config":{"decoding_type":"Eagle3","max_draft_len":3},)"
            R"("enable_lora":true})");
  EXPECT_THAT(stated.unread(), ElementsAre("--dcp: trtllm does not read it"));
  EXPECT_EQ(stated.origin("kv_cache_config.dtype")->shown, "--kv");
  EXPECT_EQ(stated.origin("enable_lora")->shown, "--set trtllm.enable_lora");
  EXPECT_EQ(stated.origin("max_batch_size"), nullptr);
}

TEST(StatedArguments, LaterSources_WinAndAreNamed) {
  StatedArguments stated;
  YamlDocument file{.file = "options.yaml"};
  file.root = json::parse_object(R"({"kv_cache_config": {"dtype": "auto"}})", "o")->root;
  file.places = {{"", {1, 1}}, {"/kv_cache_config", {2, 3}}, {"/kv_cache_config/dtype", {2, 10}}};
  stated.add_file(file);
  EXPECT_EQ(stated.origin("kv_cache_config.dtype")->position->column, 10U);
  EXPECT_EQ(stated.origin("kv_cache_config.max_tokens")->position->column, 3U);
  stated.add_command(*read_command("trtllm-serve m --kv_cache_dtype fp8"));
  EXPECT_EQ(json::to_text(stated.tree()), R"({"kv_cache_config":{"dtype":"fp8"}})");
  EXPECT_EQ(stated.origin("kv_cache_config.dtype")->shown, "--kv_cache_dtype");
}

TEST(JudgeCombination, UnknownArguments_AreFindings) {
  CombinationQuestion question{.table = &trtllm()};
  question.arguments.set("attn_backand", json::Value::string("TRTLLM"), {.shown = "--set"});
  EXPECT_THAT(ids(judge_combination(question)), ElementsAre("ARG-UNKNOWN"));
}

TEST(NamesOf, StatedArguments_AreCalledAsTheUserDid) {
  CombinationQuestion question{.table = &trtllm()};
  question.arguments.set("attn_backend", json::Value::string("VANILLA"), {.shown = "--backend"});
  question.arguments.set("load_format", json::Value::boolean(true),
                         {.shown = "--set trtllm.load_format"});
  EXPECT_EQ(names_of(question),
            (std::map<std::string, std::string>{{"attn_backend", "--backend"},
                                                {"load_format", "load_format"}}));
}

TEST(JudgeShared, UnreadOptions_AreFindings) {
  CombinationQuestion question{.table = &trtllm()};
  question.arguments.add_unread("--dcp: trtllm does not read it");
  const auto answer = judge_shared(question);
  ASSERT_THAT(ids(answer), ElementsAre("OPTION-UNREAD"));
  EXPECT_EQ(answer.findings[0].field, "--dcp");
}

}  // namespace
}  // namespace kernelpath::features
