#include "suggestion.h"
#include "validate_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// --suggest: every change is made and validated again through the program.

namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Call = std::vector<std::string>;

json::Value suggested(Call call) {
  call.insert(call.end(), {"--engine", "trtllm"});
  call.emplace_back("--suggest");
  return validate_document(call, 1);
}

// The suggestion of one error.
std::string suggestion_of(const json::Value& document, const std::string& id) {
  const auto found = findings_of(document, id);
  if (found.size() == 1U) return text_of(found[0], "suggestion");
  ADD_FAILURE() << found.size() << " findings " << id;
  return "";
}

// The one that mends all errors of the engine.
std::string suggestion_of_all(const json::Value& document) {
  const json::Value& engine = document.find("inputs")->items()[0].find("engines")->items()[0];
  return text_of(engine, "suggestion");
}

int code_after(const Call& call, const std::string& suggestion) {
  Call changed = with_suggestion(call, suggestion);
  changed.insert(changed.end(), {"--engine", "trtllm"});
  return validate(changed).exit_code;
}

TEST(ValidateSuggest, EveryChange_RemovesItsError) {
  const Call call = {config_folder("meta-llama__Meta-Llama-3.1-8B"), "--backend", "vanilla", "--kv",
                     "nvfp4"};
  const std::string change = suggestion_of(suggested(call), "KV-NVFP4-BACKEND");
  Call after = with_suggestion(call, change);
  after.insert(after.end(), {"--engine", "trtllm", "--json"});
  EXPECT_THAT(validate(after).out, Not(HasSubstr("KV-NVFP4-BACKEND")));
}

TEST(ValidateSuggest, Argument_IsCalledByTheNameThatTheEngineHas) {
  const TemporaryFolder folder;
  const std::string file = folder.write("o.yaml", "attn_backand: TRTLLM\nmax_beam_width: two\n");
  const json::Value document = validate_document({"--yaml", file, "--suggest"}, 1);
  EXPECT_EQ(suggestion_of(document, "ARG-UNKNOWN"), "attn_backend instead of attn_backand");
  EXPECT_EQ(suggestion_of(document, "ARG-TYPE"), "leave out max_beam_width");
  EXPECT_EQ(suggestion_of_all(document),
            "attn_backend instead of attn_backand, leave out max_beam_width");
}

TEST(ValidateSuggest, ArgumentLikeNoOther_IsLeftOut) {
  const TemporaryFolder folder;
  const std::string file = folder.write("o.yaml", "zzzzqqq: 1\n");
  EXPECT_EQ(suggestion_of(validate_document({"--yaml", file, "--suggest"}, 1), "ARG-UNKNOWN"),
            "leave out zzzzqqq");
}

TEST(ValidateSuggest, ValueOutOfRange_TakesTheBound) {
  const Call call = {"--set", "trtllm.stream_interval=0"};
  const std::string change = suggestion_of(suggested(call), "ARG-RANGE");
  EXPECT_EQ(change, "stream_interval: 1");
  EXPECT_EQ(code_after(call, change), 0);
}

TEST(ValidateSuggest, RefusalOfTheEngine_NamesTheSmallestServerBoardThatRunsIt) {
  const Call call = {config_folder("meta-llama__Meta-Llama-3.1-8B"), "--device", "cpu"};
  const std::string change = suggestion_of(suggested(call), "TRT-DEVICE");
  ASSERT_THAT(change, StartsWith("--device "));
  EXPECT_EQ(code_after(call, change), 0);
}

TEST(ValidateSuggest, NothingThatHelps_IsSaid) {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("config.json",
                   R"({"architectures":["NoSuchForCausalLM"],"model_type":"llama","hidden_size":64,
          "num_attention_heads":4,"num_hidden_layers":2,"intermediate_size":128,"vocab_size":100})");
  EXPECT_THAT(suggestion_of(suggested({path}), "UNKNOWN-ARCH"), HasSubstr("no change"));
}

TEST(ValidateSuggest, WeightsThatDoNotFit_AreSpreadOverRanks) {
  const Call call = {config_folder("meta-llama__Meta-Llama-3.1-70B"), "--max-model-len", "8192"};
  const std::string change = suggestion_of(suggested(call), "MEM-WEIGHTS");
  ASSERT_THAT(change, StartsWith("--tp "));
  EXPECT_EQ(code_after(call, change), 0);
}

TEST(ValidateSuggest, RanksThatDoNotHelp_LeaveTheNextLargerDeviceOfTheGeneration) {
  const TemporaryFolder folder;
  // One head: neither tensor nor pipeline ranks can share a single layer's weights out.
  const std::string path =
      folder.write("config.json",
                   R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":128,
          "num_attention_heads":1,"num_key_value_heads":1,"num_hidden_layers":1,
          "intermediate_size":256,"vocab_size":170000000,"tie_word_embeddings":true,
          "torch_dtype":"float32","max_position_embeddings":2048})");
  const Call call = {path, "--device", "h100-sxm"};
  const std::string change = suggestion_of(suggested(call), "MEM-WEIGHTS");
  EXPECT_THAT(change, Not(HasSubstr("v100")));
  EXPECT_EQ(code_after(call, change), 0);
}

TEST(ValidateSuggest, SequenceThatDoesNotFit_IsLimitedToWhatDoes) {
  const Call call = {config_folder("meta-llama__Llama-4-Scout-17B-16E-Instruct"), "--tp", "8",
                     "--device", "b200"};
  const std::string change = suggestion_of(suggested(call), "MEM-KV");
  ASSERT_THAT(change, StartsWith("--max-model-len "));
  EXPECT_EQ(code_after(call, change), 0);
}

TEST(ValidateSuggest, MemoryAndRules_AreMendedByOneSet) {
  const Call call = {config_folder("meta-llama__Meta-Llama-3.1-70B"),
                     "--max-model-len",
                     "8192",
                     "--backend",
                     "vanilla",
                     "--kv",
                     "nvfp4",
                     "--set",
                     "trtllm.kv_cache_config.free_gpu_memory_fraction=1.5"};
  const json::Value document = suggested(call);
  EXPECT_FALSE(findings_of(document, "MEM-WEIGHTS").empty());
  const std::string change = suggestion_of_all(document);
  EXPECT_THAT(change, HasSubstr("--tp "));
  EXPECT_EQ(code_after(call, change), 0) << change;
}

std::string replaced(std::string text, const std::string& old, const std::string& now) {
  const std::size_t at = text.find(old);
  return at == std::string::npos ? text : text.replace(at, old.size(), now);
}

// "--a 1 instead of --b 1", "leave out --b 1": made in the text of the command.
std::string with_change(const std::string& command, const std::string& change) {
  const std::string between = " instead of ";
  const std::size_t at = change.find(between);
  if (at == std::string::npos) return replaced(command, " " + change.substr(10), "");
  return replaced(command, change.substr(at + between.size()), change.substr(0, at));
}

TEST(ValidateSuggest, UnknownOptionOfACommand_IsReplacedByANearOne) {
  const std::string command = "trtllm-serve some/model --tp_szie 8 --port 80";
  const json::Value document = validate_document({"--command", command, "--suggest"}, 1);
  // The option, and the word that was taken as its value.
  const auto found = findings_of(document, "COMMAND-UNKNOWN");
  ASSERT_EQ(found.size(), 2U);
  for (const json::Value& finding : found) {
    const std::string change = text_of(finding, "suggestion");
    EXPECT_THAT(change, StartsWith("--tp_size instead of --tp_szie"));
    EXPECT_EQ(validate({"--command", with_change(command, change)}).exit_code, 0);
  }
}

TEST(ValidateSuggest, OptionLikeNoOtherOfACommand_IsLeftOutWithItsValue) {
  const std::string command = "trtllm-serve some/model --zzqqxx 8";
  const json::Value document = validate_document({"--command", command, "--suggest"}, 1);
  std::string change;
  for (const json::Value& finding : findings_of(document, "COMMAND-UNKNOWN")) {
    change = text_of(finding, "suggestion");
  }
  EXPECT_EQ(change, "leave out --zzqqxx 8");
  EXPECT_EQ(validate({"--command", with_change(command, change)}).exit_code, 0);
}

TEST(ValidateSuggest, ValueOfACommand_TakesAChoice) {
  const std::string command = "trtllm-serve some/model --kv_cache_dtype fp9";
  const json::Value document = validate_document({"--command", command, "--suggest"}, 1);
  const std::string change = suggestion_of(document, "COMMAND-VALUE");
  EXPECT_EQ(change, "--kv_cache_dtype fp8 instead of --kv_cache_dtype fp9");
  EXPECT_EQ(validate({"--command", with_change(command, change)}).exit_code, 0);
}

TEST(ValidateSuggest, CommandAndRules_AreMendedByOneSet) {
  const std::string command =
      "trtllm-serve some/model --tp_szie 2 --kv_cache_free_gpu_memory_fraction 1.5";
  const json::Value document = validate_document({"--command", command, "--suggest"}, 1);
  const std::string change = suggestion_of_all(document);
  EXPECT_THAT(change, HasSubstr("--tp_size instead of --tp_szie"));
  EXPECT_THAT(change, HasSubstr("--kv_cache_free_gpu_memory_fraction"));
}

}  // namespace
}  // namespace kernelpath::testing
