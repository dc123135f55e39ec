#include "json/writer.h"
#include "small_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace kernelpath::tokenizer {
namespace {

using Ids = std::vector<TokenId>;

struct Decoded {
  std::vector<std::string> steps;  // what a stream gives, its end included
  std::string whole;
};

// Decodes tokens given by their texts, with a decoder given as JSON.
Decoded decoded(const std::string& decoder, const std::vector<std::string>& tokens) {
  SmallTokenizer small;
  small.decoder = decoder;
  small.merges = "[]";
  std::vector<json::Member> vocabulary;
  Ids ids;
  for (const std::string& token : tokens) {
    const auto found = std::ranges::find(vocabulary, token, &json::Member::key);
    ids.push_back(static_cast<TokenId>(found - vocabulary.begin()));
    if (found != vocabulary.end()) continue;
    vocabulary.push_back({.key = token, .value = json::Value::integer(ids.back())});
  }
  small.vocab = json::to_text(json::Value::object(vocabulary));
  const auto tokenizer = small.load().value();
  Decoded result;
  result.whole = tokenizer->decode(ids).value();
  StreamDecoder stream = tokenizer->stream_decoder();
  for (const TokenId id : ids) result.steps.push_back(stream.push(id));
  result.steps.push_back(stream.flush());
  EXPECT_EQ(std::accumulate(result.steps.begin(), result.steps.end(), std::string()), result.whole);
  return result;
}

using Steps = std::vector<std::string>;

constexpr const char* kByteLevel = R"({"type": "ByteLevel"})";
constexpr const char* kLlama2 = R"({"type": "Sequence", "decoders": [
  {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
  {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";

TEST(Decoder, ByteLevel_HoldsBackUnfinishedCharacters) {
  EXPECT_EQ(decoded(kByteLevel, {"ĠHi", "ð", "Ł", "ĺ", "Ģ", "!"}).steps,
            (Steps{" Hi", "", "", "", "😀", "!", ""}));
  EXPECT_EQ(decoded(kByteLevel, {"ð", "Ł", "x"}).steps, (Steps{"", "", "\ufffdx", ""}));
  EXPECT_EQ(decoded(kByteLevel, {"a", "ð"}).steps, (Steps{"a", "", "\ufffd"}));
}

TEST(Decoder, ByteLevel_TakesOtherTokensAsTheyAre) {
  EXPECT_EQ(decoded(kByteLevel, {"Ġ", "<｜end｜>", "Ġ漢"}).whole, " <｜end｜>Ġ漢");
}

TEST(Decoder, ByteFallback_WaitsForTheEndOfARunOfBytes) {
  EXPECT_EQ(decoded(kLlama2, {"▁Hi", "<0xC3>", "<0xA9>", "▁x"}).steps,
            (Steps{"Hi", "", "", "é x", ""}));
  // One byte that does not fit makes all of the run unreadable, so none may be given early.
  EXPECT_EQ(decoded(kLlama2, {"a", "<0xC3>", "<0xA9>", "<0xFF>"}).steps,
            (Steps{"a", "", "", "", "\ufffd\ufffd\ufffd"}));
}

TEST(Decoder, Strip_TakesFromTheStartOfTheTextOnly) {
  EXPECT_EQ(decoded(kLlama2, {"▁", "▁a", "▁b"}).whole, " a b");
  EXPECT_EQ(decoded(kLlama2, {"▁"}).whole, "");
  EXPECT_EQ(decoded(R"({"type": "Sequence", "decoders": [{"type": "Fuse"},
                       {"type": "Strip", "content": " ", "start": 0, "stop": 1}]})",
                    {"a ", "b ", " "})
                .whole,
            "a b ");
  EXPECT_EQ(
      decoded(R"({"type": "Strip", "content": "x", "start": 1, "stop": 1})", {"xxaxx", "x", "xa"})
          .whole,
      "xaxa");
}

TEST(Decoder, ReplaceInFusedText_SeesAcrossTokens) {
  const char* const fused = R"({"type": "Sequence", "decoders": [{"type": "Fuse"},
    {"type": "Replace", "pattern": {"String": "abc"}, "content": "X"}]})";
  EXPECT_EQ(decoded(fused, {"a", "b", "c", "ab", "d"}).steps, (Steps{"", "", "X", "", "abd", ""}));
  EXPECT_EQ(decoded(fused, {"a", "b"}).steps, (Steps{"", "", "ab"}));
  EXPECT_EQ(decoded(R"({"type": "Replace", "pattern": {"String": "abc"}, "content": "X"})",
                    {"ab", "c", "abc"})
                .whole,
            "abcX");
}

TEST(Decoder, Metaspace_DropsTheFirstSpace) {
  EXPECT_EQ(decoded(R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"})",
                    {"▁a", "▁b"})
                .whole,
            "a b");
  EXPECT_EQ(decoded(R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"})",
                    {"▁a", "▁b"})
                .whole,
            " a b");
}

TEST(Decoder, SuffixesAndPrefixesOfWords_BecomeSpaces) {
  EXPECT_EQ(
      decoded(R"({"type": "BPEDecoder", "suffix": "</w>"})", {"he", "llo</w>", "you</w>"}).steps,
      (Steps{"", "he", "llo ", "you"}));
  EXPECT_EQ(decoded(R"({"type": "WordPiece", "prefix": "##", "cleanup": true})",
                    {"he", "##llo", ",", "you"})
                .whole,
            "hello, you");
}

TEST(Decoder, None_JoinsBySpaces) { EXPECT_EQ(decoded("null", {"a", "b"}).whole, "a b"); }

TEST(Decoder, BrokenOnes_AreRefusedWithTheirPlace) {
  SmallTokenizer small;
  small.decoder = R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Odd"}]})";
  EXPECT_EQ(small.load().error().where, "/decoder/decoders/1/type");
  small.decoder = R"({"type": "Strip", "content": "ab", "start": 1, "stop": 0})";
  EXPECT_EQ(small.load().error().where, "/decoder/content");
  small.decoder = R"({"type": "Strip", "content": "a", "start": -1, "stop": 0})";
  EXPECT_EQ(small.load().error().where, "/decoder/start");
}

TEST(StreamDecoder, Flush_MakesItAsNew) {
  const auto recorded = load_recorded("spm_legacy");
  StreamDecoder stream = recorded->tokenizer->stream_decoder();
  const auto ids =
      recorded->tokenizer->encode("Hello there", {.add_special_tokens = false}).value();
  for (int i = 0; i < 2; ++i) {
    std::string text;
    for (const TokenId id : ids) text += stream.push(id);
    EXPECT_EQ(text + stream.flush(), "Hello there");
  }
}

TEST(StreamDecoder, SpecialAndUnknownIds_HaveNoText) {
  const auto recorded = load_recorded("llama3");
  StreamDecoder stream = recorded->tokenizer->stream_decoder(/*skip_special=*/true);
  EXPECT_EQ(stream.push(632), "");
  EXPECT_EQ(stream.push(1'000'000), "");
  StreamDecoder all = recorded->tokenizer->stream_decoder();
  EXPECT_EQ(all.push(632), "<|begin_of_text|>");
}

}  // namespace
}  // namespace kernelpath::tokenizer
