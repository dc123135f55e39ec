#include "../unit/checkpoint/build_gguf.h"
#include "json/document.h"
#include "run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// llama.cpp as an engine of llm-inspect, and a GGUF file as MODEL.

namespace kernelpath::testing {
namespace {

using checkpoint::GgufBuilder;
using checkpoint::llama_gguf;
using ::testing::HasSubstr;

std::string llama() { return config_folder("meta-llama__Meta-Llama-3.1-8B"); }

// The answer of the only engine that was asked.
json::Value engine_answer(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const Outcome outcome = inspect(std::move(arguments));
  const auto parsed = json::parse(outcome.out, "");
  EXPECT_TRUE(parsed) << outcome.out.substr(0, 300) << outcome.err;
  if (!parsed) return json::Value::null();
  return parsed->root.find("inputs")->items()[0].find("engines")->items()[0];
}

TEST(Llamacpp, Config_GetsTheClassOfItsConvertedFile) {
  const json::Value answer = engine_answer({llama(), "--engine", "llamacpp"});
  EXPECT_EQ(answer.find("model_class")->as_string(), "llama_model_llama");
  EXPECT_EQ(answer.find("attention")->find("selected")->as_string(), "on");
}

TEST(Llamacpp, QuantizedValuesWithoutFlashAttention_AreRefused) {
  const json::Value answer = engine_answer(
      {llama(), "--engine", "llamacpp", "--set", "llamacpp.cache_type_v=q8_0", "--backend", "off"});
  EXPECT_THAT(answer.find("error")->find("message")->as_string(),
              HasSubstr("quantized V cache requires flash_attn to be enabled"));
}

TEST(Llamacpp, GgufFile_IsAModel) {
  const TemporaryFolder folder;
  const json::Value answer =
      engine_answer({folder.write("m.gguf", llama_gguf(128).bytes()), "--engine", "llamacpp"});
  EXPECT_EQ(answer.find("model_class")->as_string(), "llama_model_llama");
  EXPECT_EQ(answer.find("attention")->find("selected")->as_string(), "on");
}

TEST(Llamacpp, GgufFile_IsRefusedByEnginesThatLoadNone) {
  const TemporaryFolder folder;
  const std::string file = folder.write("m.gguf", llama_gguf(128).bytes());
  for (const char* engine : {"trtllm", "vllm"}) {
    const json::Value answer = engine_answer({file, "--engine", engine});
    EXPECT_EQ(answer.find("status")->as_string(), "unsupported");
    EXPECT_EQ(answer.find("error")->find("code")->as_string(), "GGUF-INPUT");
  }
}

TEST(Llamacpp, GgufFile_RunsOnTheOwnRuntimeByItsMetadata) {
  const TemporaryFolder folder;
  const std::string file = folder.write("m.gguf", llama_gguf(128).bytes());
  const json::Value answer = engine_answer({file, "--engine", "kernelpath", "--device", "cpu"});
  EXPECT_EQ(answer.find("status")->as_string(), "ok");
  EXPECT_EQ(answer.find("model_class")->as_string(), "LlamaForCausalLM");
  EXPECT_EQ(answer.find("attention")->find("selected")->as_string(), "FUSED");
}

TEST(Llamacpp, GgufFileOfAnArchitectureWithoutAClass_IsRefusedByTheOwnRuntime) {
  const TemporaryFolder folder;
  GgufBuilder builder;
  builder.text("general.architecture", "mamba").u32("mamba.block_count", 2);
  const std::string file = folder.write("m.gguf", builder.bytes());
  const json::Value answer = engine_answer({file, "--engine", "kernelpath", "--device", "cpu"});
  EXPECT_EQ(answer.find("status")->as_string(), "unsupported");
  EXPECT_EQ(answer.find("error")->find("code")->as_string(), "KP-GGUF");
  EXPECT_THAT(answer.find("error")->find("message")->as_string(), HasSubstr("llama, qwen2, qwen3"));
}

TEST(Llamacpp, CutGgufFile_SaysWhere) {
  const TemporaryFolder folder;
  const Outcome outcome =
      inspect({folder.write("config.json", llama_gguf(128).bytes().substr(0, 60))});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("error[CHECKPOINT]"));
}

}  // namespace
}  // namespace kernelpath::testing
