// Command lines of `vllm serve`, read as its FlexibleArgumentParser does.
#include "features/command_line.h"
#include "features/command_table.h"
#include "json/writer.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace kernelpath::features {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

CommandReading read(std::string_view command, std::string_view version = {},
                    std::span<const YamlDocument> files = {}) {
  auto out = read_command(command, version, files);
  EXPECT_TRUE(out.has_value()) << (out ? "" : out.error().text());
  return out ? std::move(*out) : CommandReading{};
}

std::string arguments(std::string_view command, std::string_view version = {}) {
  return json::to_text(read(command, version).arguments);
}

// "unknown --x: message" of every note.
std::vector<std::string> notes(const CommandReading& reading) {
  std::vector<std::string> out;
  for (const CommandNote& note : reading.notes) {
    out.push_back(note.word + ": " + note.message);
  }
  return out;
}

YamlDocument yaml(std::string text) {
  auto out = parse_yaml(text, "serve.yaml");
  EXPECT_TRUE(out.has_value());
  return out ? std::move(*out) : YamlDocument{};
}

TEST(VllmServe, Options_BecomeArguments) {
  const CommandReading reading =
      read("VLLM_LOGGING_LEVEL=DEBUG vllm serve org/model -tp 8 --kv-cache-dtype=fp8 --port 80");
  EXPECT_EQ(reading.engine, "vllm");
  EXPECT_EQ(reading.version, "0.33.0");
  EXPECT_EQ(reading.model, "org/model");
  EXPECT_EQ(json::to_text(reading.arguments),
            R"({"tensor_parallel_size":8,"kv_cache_dtype":"fp8"})");
  EXPECT_THAT(reading.variables, ElementsAre(testing::Pair("VLLM_LOGGING_LEVEL", "DEBUG")));
  EXPECT_THAT(notes(reading), ElementsAre(HasSubstr("--port: does not concern")));
}

TEST(VllmServe, Underscores_AreDashes) {
  EXPECT_EQ(arguments("vllm serve m --kv_cache_dtype fp8 --tensor_parallel_size=2"),
            R"({"kv_cache_dtype":"fp8","tensor_parallel_size":2})");
}

TEST(VllmServe, BooleanOptions_HaveANegativeForm) {
  EXPECT_EQ(arguments("vllm serve m --enable-prefix-caching"), R"({"enable_prefix_caching":true})");
  EXPECT_EQ(arguments("vllm serve m --no-enable-prefix-caching"),
            R"({"enable_prefix_caching":false})");
  EXPECT_EQ(arguments("vllm serve m --disable-prefix-caching"),
            R"({"enable_prefix_caching":false})");
}

TEST(VllmServe, NegativeFormOfALaterVersion_IsUnknownBefore) {
  const CommandReading reading = read("vllm serve m --disable-prefix-caching", "0.25.1");
  EXPECT_THAT(notes(reading), ElementsAre(HasSubstr("0.25.1 has no such option; 0.33.0 has it")));
  EXPECT_THAT(reading.arguments.members(), IsEmpty());
}

TEST(VllmServe, JsonOptions_TakeJsonAndMembers) {
  EXPECT_EQ(arguments(R"(vllm serve m --attention-config '{"backend": "FLASH_ATTN"}')"),
            R"({"attention_config":{"backend":"FLASH_ATTN"}})");
  EXPECT_EQ(arguments("vllm serve m --attention-config.backend FLASH_ATTN "
                      "--attention_config.flash_attn_version=2"),
            R"({"attention_config":{"backend":"FLASH_ATTN","flash_attn_version":2}})");
  EXPECT_EQ(arguments("vllm serve m -cc.cudagraph_mode=FULL -cc.splitting_ops+=a,b "
                      "-cc.splitting_ops+ c"),
            R"({"compilation_config":{"cudagraph_mode":"FULL","splitting_ops":["a","b","c"]}})");
}

TEST(VllmServe, Members_ReplaceJsonOfTheSameOption) {
  const CommandReading reading = read(
      R"(vllm serve m -ac '{"backend": "FLASH_ATTN"}' --attention-config.flash_attn_version=2)");
  EXPECT_EQ(json::to_text(reading.arguments), R"({"attention_config":{"flash_attn_version":2}})");
  ASSERT_EQ(reading.notes.size(), 1U);
  EXPECT_EQ(reading.notes[0].kind, CommandNote::Kind::kDropped);
}

TEST(VllmServe, OptionGivenTwice_TheLastOneCountsAndThatIsSaid) {
  const CommandReading reading = read("vllm serve m -tp 2 --tensor-parallel-size 4");
  EXPECT_EQ(json::to_text(reading.arguments), R"({"tensor_parallel_size":4})");
  EXPECT_THAT(notes(reading), ElementsAre(HasSubstr("4 replaces 2")));
}

TEST(VllmServe, NumbersWithSuffixes_AreThoseOfTheEngine) {
  EXPECT_EQ(arguments("vllm serve m --max-model-len 1k"), R"({"max_model_len":1000})");
  EXPECT_EQ(arguments("vllm serve m --max-model-len 1K"), R"({"max_model_len":1024})");
  EXPECT_EQ(arguments("vllm serve m --max-model-len 25.6k"), R"({"max_model_len":25600})");
  EXPECT_EQ(arguments("vllm serve m --max-model-len auto"), R"({"max_model_len":-1})");
  EXPECT_THAT(notes(read("vllm serve m --max-model-len 1.5K")),
              ElementsAre(HasSubstr("1.5K is no integer")));
  EXPECT_THAT(notes(read("vllm serve m --block-size 1k")), ElementsAre(HasSubstr("no integer")));
}

TEST(VllmServe, None_IsNoValue) {
  EXPECT_EQ(arguments("vllm serve m --attention-backend None"), R"({"attention_backend":null})");
}

TEST(VllmServe, Lists_TakeAllWordsUpToTheNextOption) {
  EXPECT_EQ(
      arguments("vllm serve m --kv-cache-dtype-skip-layers 0 1 sliding_window -tp 2"),
      R"({"kv_cache_dtype_skip_layers":["0","1","sliding_window"],"tensor_parallel_size":2})");
}

TEST(VllmServe, OptimizationLevel_HasAShortForm) {
  for (const auto* text : {"-O3", "-O=3", "-O 3"}) {
    EXPECT_EQ(arguments(std::string("vllm serve m ") + text), R"({"optimization_level":"3"})");
  }
}

TEST(VllmServe, BeginningsOfOptions_WillDo) {
  EXPECT_EQ(arguments("vllm serve m --tensor-par 2"), R"({"tensor_parallel_size":2})");
  EXPECT_THAT(notes(read("vllm serve m --enable-p x")), testing::Contains(HasSubstr("may be ")));
}

TEST(VllmServe, UnknownOptionsAndBadValues_AreNamed) {
  const CommandReading reading =
      read("vllm serve m --attention-backand X --dtype fp7 --block-size --speculative-config '{'");
  ASSERT_EQ(reading.notes.size(), 5U);
  EXPECT_THAT(reading.notes[0].near_matches, testing::Contains("--attention-backend"));
  EXPECT_THAT(reading.notes[2].message, HasSubstr("fp7 is none of auto"));
  EXPECT_THAT(reading.notes[3].message, HasSubstr("value is missing"));
  EXPECT_THAT(reading.notes[4].message, HasSubstr("is no JSON"));
}

TEST(VllmServe, MissingSubcommand_IsRefused) {
  EXPECT_FALSE(read_command("vllm --tensor-parallel-size 2").has_value());
  EXPECT_FALSE(read_command("vllm bench serve --model m").has_value());
}

TEST(VllmModule, OpenaiServer_IsTheSame) {
  const CommandReading reading =
      read("python3 -m vllm.entrypoints.openai.api_server --model org/model -tp 2");
  EXPECT_EQ(reading.model, "org/model");
  EXPECT_EQ(json::to_text(reading.arguments), R"({"model":"org/model","tensor_parallel_size":2})");
  EXPECT_THAT(reading.notes, IsEmpty());
}

TEST(VllmConfigFile, Options_StandBeforeThoseOfTheCommandLine) {
  const std::vector<YamlDocument> files = {
      yaml("tensor-parallel-size: 4\nkv_cache_dtype: fp8\ncompilation-config:\n  mode: 0\n")};
  const CommandReading reading = read("vllm serve m --config serve.yaml -tp 2", {}, files);
  EXPECT_EQ(json::to_text(reading.arguments),
            R"({"tensor_parallel_size":2,"kv_cache_dtype":"fp8","compilation_config":{"mode":0}})");
  EXPECT_THAT(reading.options_files, ElementsAre("serve.yaml"));
  EXPECT_THAT(reading.notes, IsEmpty());
  std::vector<std::string> stated;
  for (const auto& entry : reading.in_files) stated.push_back(entry.argument + entry.pointer);
  EXPECT_THAT(stated, ElementsAre("kv_cache_dtype/kv_cache_dtype",
                                  "compilation_config/compilation-config"));
}

TEST(VllmConfigFile, FalseThatTheEngineDrops_IsSaid) {
  const std::vector<YamlDocument> files = {
      yaml("enable-prefix-caching: false\nenforce_eager: false\n")};
  const auto newer = read_options_files(files, "vllm");
  ASSERT_TRUE(newer.has_value());
  EXPECT_EQ(json::to_text(newer->arguments), R"({"enable_prefix_caching":false})");
  EXPECT_THAT(notes(*newer),
              ElementsAre(HasSubstr("enforce_eager: false in serve.yaml is dropped")));
  const auto older = read_options_files(files, "vllm", "0.25.1");
  ASSERT_TRUE(older.has_value());
  EXPECT_THAT(older->arguments.members(), IsEmpty());
  EXPECT_EQ(older->notes.size(), 2U);
}

TEST(VllmConfigFile, OneWordWithEquals_IsNotRead) {
  const CommandReading reading = read("vllm serve m --config=serve.yaml");
  EXPECT_THAT(reading.options_files, IsEmpty());
  EXPECT_THAT(notes(reading), ElementsAre(HasSubstr("the file is not read")));
}

TEST(OptionsFiles, OfOtherEngines_HoldArguments) {
  EXPECT_TRUE(file_holds_options("vllm"));
  EXPECT_FALSE(file_holds_options("trtllm"));
  EXPECT_FALSE(read_options_files({}, "trtllm").has_value());
}

TEST(CommandTables, EveryOptionThatStatesAnArgument_NamesOneOfTheTable) {
  for (const CommandTable& table : command_tables()) {
    EXPECT_FALSE(table.options.empty()) << table.engine;
    for (const CommandOption& option : table.options) {
      EXPECT_FALSE(option.flags.empty());
      for (const std::string& flag : option.negative_flags) {
        EXPECT_NE(std::find(option.flags.begin(), option.flags.end(), flag), option.flags.end())
            << flag;
      }
    }
  }
}

}  // namespace
}  // namespace kernelpath::features
