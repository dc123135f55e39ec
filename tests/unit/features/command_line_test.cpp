#include "features/command_line.h"

#include "features/shell_words.h"
#include "json/document.h"
#include "json/writer.h"

#include <gmock/gmock.h>

namespace kernelpath::features {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> words(std::string_view text) {
  const auto split = split_words(text);
  return split ? *split : std::vector<std::string>{"error: " + split.error().text()};
}

TEST(SplitWords, Quotes_AreThoseOfAShell) {
  EXPECT_THAT(words("a  'b c' \"d $e\" f\\ g \\\n h ''"),
              ElementsAre("a", "b c", "d $e", "f g", "h", ""));
  EXPECT_THAT(words(R"("a\"b\\c\d")"), ElementsAre(R"(a"b\c\d)"));
  EXPECT_THAT(words("a'b'c"), ElementsAre("abc"));
}

TEST(SplitWords, OperatorsAndOpenQuotes_AreRefused) {
  EXPECT_THAT(words("a | b"), ElementsAre(HasSubstr("operator '|'")));
  EXPECT_THAT(words("a $(b)"), ElementsAre(HasSubstr("error")));
  EXPECT_THAT(words("\"`b`\""), ElementsAre(HasSubstr("error")));
  EXPECT_THAT(words("a 'b"), ElementsAre(HasSubstr("not closed")));
}

TEST(ReadCommand, Options_BecomeArguments) {
  const auto read = read_command(
      "TLLM_FMHA_LIBS=fallback mpirun -n 8 trtllm-serve serve deepseek --tp_size 8 "
      "--kv_cache_dtype=fp8 --enable_chunked_prefill --config a.yaml --port 80");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->engine, "trtllm");
  EXPECT_EQ(read->model, "deepseek");
  EXPECT_EQ(json::to_text(read->arguments),
            R"({"tensor_parallel_size":8,"kv_cache_config":{"dtype":"fp8"},)"
            R"("enable_chunked_prefill":true})");
  EXPECT_THAT(read->options_files, ElementsAre("a.yaml"));
  EXPECT_THAT(read->variables,
              ElementsAre(std::pair<std::string, std::string>("TLLM_FMHA_LIBS", "fallback")));
  std::vector<std::string> noted;
  for (const CommandNote& note : read->notes) noted.push_back(note.word);
  EXPECT_THAT(noted, ElementsAre("mpirun", "-n", "8", "--port"));
}

TEST(ReadCommand, UnknownOption_IsNamedWithNearOnes) {
  const auto read = read_command("trtllm-serve m --tp_szie 8");
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->notes.size(), 2U);
  EXPECT_EQ(read->notes[0].kind, CommandNote::Kind::kUnknown);
  EXPECT_THAT(read->notes[0].near_matches, testing::Contains("--tp_size"));
  EXPECT_EQ(read->notes[1].word, "8");
}

TEST(ReadCommand, BadValues_AreNoted) {
  const auto read = read_command("trtllm-serve m --tp_size eight --kv_cache_dtype int4 --pp_size");
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->notes.size(), 3U);
  for (const CommandNote& note : read->notes) {
    EXPECT_EQ(note.kind, CommandNote::Kind::kBadValue) << note.message;
  }
  EXPECT_THAT(read->arguments.members(), IsEmpty());
}

TEST(ReadCommand, OtherPrograms_AreRefusedWithTheKnownOnes) {
  const auto read = read_command("python -m http.server");
  ASSERT_FALSE(read.has_value());
  EXPECT_THAT(read.error().hint, HasSubstr("trtllm-serve"));
  EXPECT_FALSE(read_command("trtllm-serve disaggregated -c a.yaml").has_value());
}

TEST(MergeWithFile, Options_WinButForOneThatTheEngineLetsTheFileWin) {
  const auto read = read_command("trtllm-serve m --kv_cache_dtype fp8 --video_pruning_rate 0.5");
  const auto file = json::parse_object(
      R"({"kv_cache_config": {"dtype": "auto", "enable_block_reuse": false},
          "multimodal_config": {"video_pruning_rate": 0.25}})",
      "a");
  EXPECT_EQ(json::to_text(merge_with_file(*read, file->root)),
            R"({"kv_cache_config":{"dtype":"fp8","enable_block_reuse":false},)"
            R"("multimodal_config":{"video_pruning_rate":0.25}})");
}

}  // namespace
}  // namespace kernelpath::features
