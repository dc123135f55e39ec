#include "small_tokenizer.h"
#include "tokenizer/merge_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kernelpath::tokenizer {
namespace {

using Ids = std::vector<TokenId>;

TEST(Bpe, Merges_GoByRank) {
  EXPECT_EQ(SmallTokenizer{}.encode("abcab"), (Ids{4, 3}));
  SmallTokenizer other;
  other.vocab = R"({"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4})";
  other.merges = R"(["b c", ["a", "b"]])";
  EXPECT_EQ(other.encode("abc"), (Ids{0, 4}));
}

TEST(Bpe, IgnoreMerges_TakesWholePieces) {
  SmallTokenizer small;
  small.merges = R"(["a b"])";
  EXPECT_EQ(small.encode("abc"), (Ids{3, 2}));
  small.model_extra = R"(, "ignore_merges": true)";
  EXPECT_EQ(small.encode("abc"), (Ids{4}));
  EXPECT_EQ(small.encode("abca"), (Ids{3, 2, 0}));
}

TEST(Bpe, UnknownCharacters_AreTheUnknownTokenOrNothing) {
  SmallTokenizer small;
  EXPECT_EQ(small.encode("aXXb"), (Ids{3}));
  small.model_extra = R"(, "unk_token": "?")";
  EXPECT_EQ(small.encode("aXXb"), (Ids{0, 7, 7, 1}));
  small.model_extra = R"(, "unk_token": "?", "fuse_unk": true)";
  EXPECT_EQ(small.encode("aXXb"), (Ids{0, 7, 1}));
}

TEST(Bpe, ByteFallback_NeedsAllBytesOfACharacter) {
  SmallTokenizer small;
  small.vocab = R"({"a": 0, "?": 1, "<0xC3>": 2, "<0xA9>": 3, "<0x58>": 4})";
  small.merges = "[]";
  small.model_extra = R"(, "unk_token": "?", "byte_fallback": true)";
  EXPECT_EQ(small.encode("aéX"), (Ids{0, 2, 3, 4}));
  EXPECT_EQ(small.encode("ëY"), (Ids{1, 1}));
}

TEST(Bpe, PrefixAndSuffix_BelongToPlacesInAWord) {
  SmallTokenizer small;
  small.vocab = R"({"a": 0, "##b": 1, "##b</w>": 2, "a</w>": 3, "ab</w>": 4, "##c</w>": 5})";
  small.merges = R"([["a", "##b</w>"]])";
  small.model_extra = R"(, "continuing_subword_prefix": "##", "end_of_word_suffix": "</w>")";
  EXPECT_EQ(small.encode("ab"), (Ids{4}));
  EXPECT_EQ(small.encode("a"), (Ids{3}));
  EXPECT_EQ(small.encode("abc"), (Ids{0, 1, 5}));
}

TEST(Bpe, LongPiece_HasTheTokensOfOnePiece) {
  // Longer than what the cache keeps, so it is cut where no merge reaches across.
  std::string text;
  Ids expected;
  for (int i = 0; i < 200; ++i) {
    text += "abc b é";
    const Ids word = {4, 5, 1, 5, 6};
    expected.insert(expected.end(), word.begin(), word.end());
  }
  EXPECT_EQ(SmallTokenizer{}.encode(text), expected);
}

TEST(Bpe, MergeOfMissingToken_IsRefusedWithItsPlace) {
  SmallTokenizer small;
  small.merges = R"(["a b", "b x"])";
  const auto loaded = small.load();
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, ErrorCode::kConfigValue);
  EXPECT_EQ(loaded.error().where, "/model/merges/1");
  EXPECT_THAT(loaded.error().message, testing::HasSubstr("\"x\""));
  small.merges = R"(["a b", "b c"])";  // "bc" is no token
  EXPECT_EQ(small.load().error().where, "/model/merges/1");
  small.merges = R"(["a b", "abc"])";
  EXPECT_EQ(small.load().error().where, "/model/merges/1");
  small.merges = R"(["#version: 0.2", "a b"])";
  EXPECT_EQ(small.encode("ab"), (Ids{3}));
}

TEST(Bpe, IdsOutOfRange_AreRefused) {
  for (const char* id : {"-1", "1.5", "\"0\"", "2147483647", "99999999999999999999"}) {
    SmallTokenizer small;
    small.vocab = std::string(R"({"a": )") + id + "}";
    small.merges = "[]";
    const auto loaded = small.load();
    ASSERT_FALSE(loaded.has_value()) << id;
    EXPECT_EQ(loaded.error().where, "/model/vocab/a") << id;
  }
}

TEST(Bpe, SharedId_IsAWarning) {
  SmallTokenizer small;
  small.vocab = R"({"a": 0, "b": 0})";
  small.merges = "[]";
  const auto loaded = small.load().value();
  ASSERT_EQ(loaded->warnings().size(), 1U);
  EXPECT_THAT(loaded->warnings()[0].message, testing::HasSubstr("same id 0"));
}

TEST(Bpe, Dropout_IsAWarning) {
  SmallTokenizer small;
  small.model_extra = R"(, "dropout": 0.1)";
  const auto loaded = small.load().value();
  ASSERT_EQ(loaded->warnings().size(), 1U);
  EXPECT_EQ(loaded->warnings()[0].where, "/model/dropout");
  small.model_extra = R"(, "dropout": 0.0)";
  EXPECT_TRUE(small.load().value()->warnings().empty());
}

// Merges of runs of one character by powers of two: every level merges half of what is left.
TEST(MergeTokens, Steps_GrowInProportionToTheText) {
  MergeTable merges(20);
  for (std::uint32_t level = 0; level < 20; ++level) {
    merges.set(level, level, {.rank = level, .id = static_cast<TokenId>(level + 1)});
  }
  const auto steps = [&](std::size_t length) {
    Ids tokens(length, 0);
    const std::size_t count = merge_tokens(tokens, merges);
    EXPECT_EQ(tokens.size(), 1U);
    return static_cast<double>(count);
  };
  const double small = steps(std::size_t{1} << 14);
  const double large = steps(std::size_t{1} << 20);
  // 64 times as long; n log n allows 64 · 20 / 14.
  EXPECT_LT(large / small, 92.0);
}

TEST(MergeTokens, ShortAndLong_AgreeOnTheOrder) {
  MergeTable merges(4);
  merges.set(0, 1, {.rank = 1, .id = 2});
  merges.set(1, 0, {.rank = 0, .id = 3});
  for (const std::size_t length : {4U, 400U}) {
    Ids tokens;
    for (std::size_t i = 0; i < length; ++i) tokens.push_back(static_cast<TokenId>(i % 2));
    merge_tokens(tokens, merges);
    ASSERT_EQ(tokens.size(), length / 2 + 1);
    EXPECT_EQ(tokens.front(), 0);
    EXPECT_EQ(tokens[1], 3);
    EXPECT_EQ(tokens.back(), 1);
  }
}

std::string unigram(const std::string& extra) {
  return R"({"version": "1.0", "decoder": {"type": "Fuse"}, "model": {"type": "Unigram", "vocab": [
            ["?", 0], ["a", -2], ["b", -2], ["ab", -3], ["abc", -9], ["c", -3],
            ["<0xC3>", -9], ["<0xA9>", -9]])" +
         extra + "}}";
}

TEST(Unigram, BestPath_IsTaken) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", unigram(R"(, "unk_id": 0)"));
  const auto loaded = load(folder.path()).value();
  EXPECT_EQ(loaded->encode("abc").value(), (Ids{3, 5}));
  EXPECT_EQ(loaded->encode("bxya").value(), (Ids{2, 0, 1}));  // unknown ones are one token
}

TEST(Unigram, UnknownCharacter_FallsBackToBytesOrIsAnError) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", unigram(R"(, "unk_id": 0, "byte_fallback": true)"));
  EXPECT_EQ(load(folder.path()).value()->encode("aé").value(), (Ids{1, 6, 7}));
  folder.write("tokenizer.json", unigram(""));
  const auto failed = load(folder.path()).value()->encode("aé");
  ASSERT_FALSE(failed.has_value());
  EXPECT_THAT(failed.error().message, testing::HasSubstr("unk_id"));
}

TEST(Unigram, BrokenFiles_AreRefused) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", unigram(R"(, "unk_id": 8)"));
  EXPECT_EQ(load(folder.path()).error().where, "/model/unk_id");
  folder.write("tokenizer.json",
               R"({"model": {"type": "Unigram", "vocab": [["a", -1], ["b"]], "unk_id": 0}})");
  EXPECT_EQ(load(folder.path()).error().where, "/model/vocab/1");
}

}  // namespace
}  // namespace kernelpath::tokenizer
