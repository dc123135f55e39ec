// Command lines of `llama-server` and `llama-cli`, as llama.cpp's common/arg.cpp reads them.
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
using testing::Pair;

CommandReading read(std::string_view command) {
  auto out = read_command(command);
  EXPECT_TRUE(out.has_value()) << (out ? "" : out.error().text());
  return out ? std::move(*out) : CommandReading{};
}

std::string arguments(std::string_view command) { return json::to_text(read(command).arguments); }

// Of llama-cli, whose own defaults state nothing.
std::string cli(std::string_view options) { return arguments("llama-cli " + std::string(options)); }

std::vector<std::string> notes(std::string_view command) {
  std::vector<std::string> out;
  for (const CommandNote& note : read(command).notes) {
    out.push_back(note.word + ": " + note.message);
  }
  return out;
}

TEST(LlamaServer, Options_BecomeArguments) {
  const CommandReading reading =
      read("CUDA_VISIBLE_DEVICES=0 /opt/bin/llama-server -m a.gguf -c 8192 -ngl 99 -fa on");
  EXPECT_EQ(reading.engine, "llamacpp");
  EXPECT_EQ(reading.version, "0c1e5709");
  EXPECT_EQ(reading.program, "llama-server");
  EXPECT_EQ(reading.model, "a.gguf");
  EXPECT_EQ(json::to_text(reading.arguments),
            R"({"model":{"path":"a.gguf"},"n_ctx":8192,"n_gpu_layers":99,"flash_attn":"on",)"
            R"("n_parallel":-1})");
  EXPECT_THAT(reading.variables, ElementsAre(Pair("CUDA_VISIBLE_DEVICES", "0")));
  EXPECT_THAT(reading.notes, IsEmpty());
}

TEST(LlamaServer, SlotsOfTheServer_AreItsDefaultOnly) {
  EXPECT_EQ(arguments("llama-server -np 2"), R"({"n_parallel":2})");
  EXPECT_EQ(cli("-c 0"), R"({"n_ctx":0})");
}

TEST(LlamaServer, Aliases_AreOneOption) {
  for (const char* flag : {"-ngl", "--gpu-layers", "--n-gpu-layers", "--n_gpu_layers"}) {
    EXPECT_EQ(cli(std::string(flag) + " all"), R"({"n_gpu_layers":"all"})") << flag;
  }
}

TEST(LlamaServer, NegativeForms_StateFalse) {
  EXPECT_EQ(cli("--no-kv-offload"), R"({"kv_offload":false})");
  EXPECT_EQ(cli("-nkvo"), R"({"kv_offload":false})");
  EXPECT_EQ(cli("--no-host"), R"({"no_host":true})");
}

TEST(LlamaServer, SpellingsOfAChoice_AreTheChoice) {
  EXPECT_EQ(cli("-fa 1"), R"({"flash_attn":"on"})");
  EXPECT_EQ(cli("-fa disabled"), R"({"flash_attn":"off"})");
  EXPECT_THAT(notes("llama-cli -fa maybe"), ElementsAre(HasSubstr("on, off, auto")));
}

TEST(LlamaServer, Lists_AreCutAndAppended) {
  EXPECT_EQ(cli("-dev CUDA0,CUDA1"), R"({"devices":["CUDA0","CUDA1"]})");
  EXPECT_EQ(cli("-ts 3/1"), R"({"tensor_split":["3","1"]})");
  EXPECT_EQ(cli("--spec-type ngram-mod --spec-type draft-mtp"),
            R"({"speculative":{"types":["ngram-mod","draft-mtp"]}})");
}

// std::stoi reads as far as the digits go.
TEST(LlamaServer, SuffixOfANumber_IsDroppedAsTheEngineDropsIt) {
  const CommandReading reading = read("llama-cli -c 32k");
  EXPECT_EQ(json::to_text(reading.arguments), R"({"n_ctx":32})");
  ASSERT_EQ(reading.notes.size(), 1U);
  EXPECT_EQ(reading.notes[0].kind, CommandNote::Kind::kDropped);
}

TEST(LlamaServer, InverseOption_IsOneOverItsNumber) {
  EXPECT_EQ(cli("--rope-scale 4"), R"({"rope_freq_scale":0.25})");
}

TEST(LlamaServer, OptionThatStatesSeveral_StatesThemAll) {
  EXPECT_EQ(arguments("llama-server -np 1 --rerank"),
            R"({"n_parallel":1,"embedding":true,"pooling_type":"rank"})");
}

TEST(LlamaServer, RemovedOption_IsRefusedWithItsWords) {
  const CommandReading reading = read("llama-cli --draft-max 4");
  ASSERT_FALSE(reading.notes.empty());
  EXPECT_EQ(reading.notes[0].kind, CommandNote::Kind::kBadValue);
  EXPECT_THAT(reading.notes[0].message, HasSubstr("--spec-draft-n-max"));
}

TEST(LlamaServer, UnknownOption_NamesNearOnes) {
  const CommandReading reading = read("llama-server --cache-typ-k q8_0");
  ASSERT_FALSE(reading.notes.empty());
  EXPECT_EQ(reading.notes[0].kind, CommandNote::Kind::kUnknown);
  EXPECT_THAT(reading.notes[0].near_matches, Contains("--cache-type-k"));
}

TEST(LlamaServer, EqualsForm_IsNoForm) {
  EXPECT_THAT(notes("llama-cli --ctx-size=4096"), Contains(HasSubstr("--ctx-size")));
  EXPECT_EQ(cli("--ctx-size=4096"), "{}");
}

TEST(LlamaServer, OptionOfTheOtherProgram_IsUnknown) {
  EXPECT_THAT(notes("llama-cli --no-kv-unified"), Contains(HasSubstr("--no-kv-unified")));
  EXPECT_THAT(notes("llama-server --no-kv-unified"), IsEmpty());
}

TEST(LlamaServer, WordAlone_IsNoModel) {
  const CommandReading reading = read("llama-server a.gguf");
  EXPECT_EQ(reading.model, "");
  EXPECT_THAT(notes("llama-server a.gguf"), ElementsAre(HasSubstr("a.gguf")));
}

TEST(LlamaVariables, State_WhatTheOptionsState) {
  const CommandTable* const table = find_command_table("llamacpp", {}, "llama-server");
  ASSERT_NE(table, nullptr);
  const std::vector<std::pair<std::string, std::string>> variables = {
      {"LLAMA_ARG_CTX_SIZE", "4096"}, {"LLAMA_ARG_NO_KV_OFFLOAD", "1"}, {"HOME", "/root"}};
  const CommandReading reading = read_option_variables(*table, variables);
  EXPECT_EQ(json::to_text(reading.arguments), R"({"n_ctx":4096,"kv_offload":false})");
  EXPECT_THAT(reading.stated_by, Contains(Pair("n_ctx", "LLAMA_ARG_CTX_SIZE")));
  EXPECT_EQ(option_of_variable(*table, "HOME"), nullptr);
}

}  // namespace
}  // namespace kernelpath::features
