// Command lines of `sglang serve` and `python -m sglang.launch_server`, as argparse reads them.
#include "features/command_line.h"
#include "features/command_table.h"
#include "json/writer.h"

#include <gmock/gmock.h>

namespace kernelpath::features {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

CommandReading read(std::string_view command, std::span<const YamlDocument> files = {}) {
  auto out = read_command(command, {}, files);
  EXPECT_TRUE(out.has_value()) << (out ? "" : out.error().text());
  return out ? std::move(*out) : CommandReading{};
}

std::string arguments(std::string_view command, std::span<const YamlDocument> files = {}) {
  return json::to_text(read(command, files).arguments);
}

std::vector<std::string> notes(const CommandReading& reading) {
  std::vector<std::string> out;
  for (const CommandNote& note : reading.notes) out.push_back(note.word + ": " + note.message);
  return out;
}

YamlDocument yaml(std::string_view text) {
  auto out = parse_yaml(std::string(text), "serve.yaml");
  EXPECT_TRUE(out.has_value());
  return out ? std::move(*out) : YamlDocument{};
}

TEST(SglangServe, Options_BecomeArguments) {
  const CommandReading reading = read(
      "SGLANG_USE_AITER=1 python3 -m sglang.launch_server --model-path org/model --tp 8 "
      "--kv-cache-dtype=fp8_e4m3 --enable-mixed-chunk");
  EXPECT_EQ(reading.engine, "sglang");
  EXPECT_EQ(reading.version, "0.5.23");
  EXPECT_EQ(reading.model, "org/model");
  EXPECT_EQ(json::to_text(reading.arguments),
            R"({"model_path":"org/model","tp_size":8,"kv_cache_dtype":"fp8_e4m3",)"
            R"("enable_mixed_chunk":true})");
  EXPECT_THAT(reading.variables, ElementsAre(testing::Pair("SGLANG_USE_AITER", "1")));
  EXPECT_THAT(reading.notes, IsEmpty());
}

TEST(SglangServe, FirstWord_IsTheModelOfServeOnly) {
  EXPECT_EQ(arguments("sglang serve org/model --tp-size 2"),
            R"({"model_path":"org/model","tp_size":2})");
  EXPECT_EQ(read("sglang serve org/model").model, "org/model");
  const CommandReading module = read("python -m sglang.launch_server org/model");
  EXPECT_EQ(module.model, "");
  EXPECT_THAT(notes(module), ElementsAre(HasSubstr("org/model: no option takes this word")));
  EXPECT_THAT(notes(read("sglang serve --tp 2 org/model")),
              ElementsAre(HasSubstr("no option takes this word")));
}

TEST(SglangServe, UnknownOptions_AreNamedWithNearOnes) {
  const CommandReading reading = read("sglang serve m --atention-backend fa3 --tp 2");
  ASSERT_EQ(reading.notes.size(), 2U);
  EXPECT_THAT(reading.notes[0].near_matches, Contains("--attention-backend"));
  EXPECT_THAT(reading.notes[1].message, HasSubstr("taken as the value of --atention-backend"));
  EXPECT_EQ(json::to_text(reading.arguments), R"({"model_path":"m","tp_size":2})");
}

TEST(SglangServe, WrongValues_AreNamedWithWhatIsAllowed) {
  EXPECT_THAT(notes(read("sglang serve m --attention-backend fa2")),
              ElementsAre(HasSubstr("fa2 is none of triton, torch_native")));
  EXPECT_THAT(notes(read("sglang serve m --page-size sixteen")),
              ElementsAre(HasSubstr("sixteen is no integer")));
  EXPECT_THAT(notes(read("sglang serve m --tp")),
              ElementsAre(HasSubstr("the option's value is missing")));
}

TEST(SglangServe, Numbers_TakeDecimalAndBinarySuffixes) {
  EXPECT_EQ(arguments("sglang serve m --max-prefill-tokens 16k"),
            R"({"model_path":"m","max_prefill_tokens":16000})");
  EXPECT_EQ(arguments("sglang serve m --max-prefill-tokens 16Ki"),
            R"({"model_path":"m","max_prefill_tokens":16384})");
  EXPECT_EQ(arguments("sglang serve m --max-prefill-tokens 1.5M"),
            R"({"model_path":"m","max_prefill_tokens":1500000})");
  for (const char* refused : {"16K", "16ki", "1.5Ki", "16m"}) {
    EXPECT_THAT(notes(read(std::string("sglang serve m --max-prefill-tokens ") + refused)),
                ElementsAre(HasSubstr("is no integer")))
        << refused;
  }
}

TEST(SglangServe, Lists_TakeWordsUpToTheNextOption) {
  EXPECT_EQ(arguments("sglang serve m --cuda-graph-bs-decode 1 2 4 --lora-paths a=b c=d --tp 2"),
            R"({"model_path":"m","cuda_graph_bs_decode":[1,2,4],"lora_paths":["a=b","c=d"],)"
            R"("tp_size":2})");
}

TEST(SglangServe, DeprecatedSwitches_StillStateTheirArgument) {
  const CommandReading reading = read("sglang serve m --disable-cuda-graph");
  EXPECT_EQ(json::to_text(reading.arguments), R"({"model_path":"m","disable_cuda_graph":true})");
  EXPECT_THAT(notes(reading), ElementsAre(HasSubstr("--cuda-graph-backend-{decode,prefill}")));
}

TEST(SglangServe, OtherSubcommands_StartNoServer) {
  EXPECT_FALSE(read_command("sglang generate m").has_value());
  EXPECT_FALSE(read_command("sglang --tp 2").has_value());
}

TEST(SglangServe, ConfigFile_StandsBeforeTheCommandLine) {
  const std::vector<YamlDocument> files = {
      yaml("tp-size: 4\nenable-mixed-chunk: false\npage-size: 16\n")};
  const CommandReading reading = read("sglang serve m --config serve.yaml --page-size 64", files);
  EXPECT_EQ(json::to_text(reading.arguments), R"({"tp_size":4,"page_size":64,"model_path":"m"})");
  EXPECT_THAT(reading.options_files, ElementsAre("serve.yaml"));
  EXPECT_THAT(reading.notes, IsEmpty());
}

TEST(SglangServe, ConfigFile_HasBooleansAsWordsForOptionsWithAValue) {
  const std::vector<YamlDocument> files = {yaml("quantization: true\n")};
  EXPECT_THAT(notes(read("sglang serve m --config serve.yaml", files)),
              ElementsAre(HasSubstr("true is none of awq")));
}

TEST(SglangServe, ConfigFile_RefusesOptionsWithANegativeForm) {
  const std::vector<YamlDocument> files = {yaml("dcp-replicate-q-proj: true\nlora-paths: [a=b]\n")};
  EXPECT_THAT(notes(read("sglang serve m --config serve.yaml", files)),
              ElementsAre(HasSubstr("must not name it"), HasSubstr("must not name it")));
}

TEST(SglangServe, ConfigFileWithEquals_IsNotRead) {
  EXPECT_THAT(notes(read("sglang serve m --config=serve.yaml")),
              ElementsAre(HasSubstr("the file is not read")));
  EXPECT_TRUE(file_holds_options("sglang"));
}

}  // namespace
}  // namespace kernelpath::features
