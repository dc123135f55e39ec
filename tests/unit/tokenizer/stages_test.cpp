// Normalizers and pre-tokenizers, each through a small tokenizer or by itself.

#include "json/document.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::tokenizer {
namespace {

using Pieces = std::vector<std::string>;

std::string normalized(const std::string& json, const std::string& text) {
  const auto document = json::parse(json, "n.json").value();
  const auto normalizer = read_normalizer(JsonNode(document.root, "/normalizer", "n.json"));
  if (!normalizer) return "error: " + normalizer.error().text();
  const auto result = (*normalizer)->apply(text);
  return result ? *result : "error: " + result.error().text();
}

Pieces pieces(const std::string& json, const std::string& text, bool is_first = true) {
  const auto document = json::parse(json, "p.json").value();
  const auto cutter = read_pre_tokenizer(JsonNode(document.root, "/pre_tokenizer", "p.json"));
  if (!cutter) return {"error: " + cutter.error().text()};
  PieceList list{.text = text, .pieces = {{.begin = 0, .end = text.size(), .is_first = is_first}}};
  const auto done = (*cutter)->apply(list);
  if (!done) return {"error: " + done.error().text()};
  Pieces out;
  for (const Piece& piece : list.pieces) out.emplace_back(list.view(piece));
  return out;
}

std::string split_at(const std::string& pattern, const std::string& behavior,
                     const std::string& invert = "false") {
  return R"({"type": "Split", "pattern": {"String": ")" + pattern + R"("}, "behavior": ")" +
         behavior + R"(", "invert": )" + invert + "}";
}

TEST(Normalizer, Kinds_DoWhatTheirNamesSay) {
  EXPECT_EQ(normalized(R"({"type": "NFC"})", "e\u0301"), "é");
  EXPECT_EQ(normalized(R"({"type": "Lowercase"})", "AÉ"), "aé");
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "▁"})", "a"), "▁a");
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "▁"})", ""), "");
  EXPECT_EQ(
      normalized(R"({"type": "Replace", "pattern": {"String": "ll"}, "content": "L"})", "llll"),
      "LL");
  EXPECT_EQ(
      normalized(R"({"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": "_"})", "a  b c"),
      "a_b_c");
  EXPECT_EQ(normalized(R"({"type": "StripAccents"})", "e\u0301é"), "eé");
  EXPECT_EQ(normalized(R"({"type": "Nmt"})", "a\tb\u200bc\x01"), "a b c");
  EXPECT_EQ(normalized(R"({"type": "ByteLevel"})", " é"), "ĠÃ©");
}

TEST(Normalizer, Strip_TakesTheSidesThatItNames) {
  EXPECT_EQ(
      normalized(R"({"type": "Strip", "strip_left": true, "strip_right": true})", "\u3000 a b \n"),
      "a b");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": true, "strip_right": false})", " a "),
            "a ");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": false, "strip_right": true})", " a "),
            " a");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": true, "strip_right": true})", "  "), "");
}

TEST(Normalizer, Sequence_GoesInOrder) {
  EXPECT_EQ(normalized(R"({"type": "Sequence", "normalizers": [
                           {"type": "Prepend", "prepend": " "},
                           {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]})",
                       "a b"),
            "▁a▁b");
}

TEST(Normalizer, Precompiled_ReplacesByTheTable) {
  // No trie and no texts: nothing is replaced.
  EXPECT_EQ(normalized(R"({"type": "Precompiled", "precompiled_charsmap": "AAAAAA=="})", "aé"),
            "aé");
  EXPECT_THAT(normalized(R"({"type": "Precompiled", "precompiled_charsmap": "////////"})", "a"),
              testing::HasSubstr("/normalizer/precompiled_charsmap: is no base64 of a table"));
  EXPECT_THAT(normalized(R"({"type": "Precompiled", "precompiled_charsmap": "%"})", "a"),
              testing::StartsWith("error: "));
}

TEST(Normalizer, UnknownKindAndField_AreRefusedByName) {
  EXPECT_THAT(
      normalized(R"({"type": "BertNormalizer"})", "a"),
      testing::AllOf(testing::HasSubstr("n.json: /normalizer/type: "),
                     testing::HasSubstr("not supported"), testing::HasSubstr("BertNormalizer")));
  EXPECT_THAT(normalized(R"({"type": "NFC", "strength": 3})", "a"),
              testing::HasSubstr("/normalizer/strength: this field is not supported"));
  EXPECT_THAT(
      normalized(R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "X"}]})", "a"),
      testing::HasSubstr("/normalizer/normalizers/1/type"));
  EXPECT_THAT(normalized(R"({"type": "Replace", "pattern": {"Regex": "("}, "content": ""})", "a"),
              testing::HasSubstr("/normalizer/pattern/Regex: the pattern cannot be used"));
}

TEST(Normalizer, TextThatGrowsWithoutEnd_IsRefused) {
  const std::string grows = R"({"type": "Replace", "pattern": {"String": " "}, "content": ")" +
                            std::string(1000, ' ') + R"("})";
  const std::string sequence =
      R"({"type": "Sequence", "normalizers": [)" + grows + "," + grows + "," + grows + "]}";
  EXPECT_THAT(normalized(sequence, "  "), testing::HasSubstr("256 MiB"));
}

TEST(PreTokenizer, SplitBehaviors_KeepOrDropTheDelimiter) {
  const std::string text = "a--b-";
  EXPECT_EQ(pieces(split_at("-", "Removed"), text), (Pieces{"a", "b"}));
  EXPECT_EQ(pieces(split_at("-", "Isolated"), text), (Pieces{"a", "-", "-", "b", "-"}));
  EXPECT_EQ(pieces(split_at("-", "MergedWithPrevious"), text), (Pieces{"a-", "-", "b-"}));
  EXPECT_EQ(pieces(split_at("-", "MergedWithNext"), text), (Pieces{"a", "-", "-b", "-"}));
  EXPECT_EQ(pieces(split_at("-", "Contiguous"), text), (Pieces{"a", "--", "b", "-"}));
  EXPECT_EQ(pieces(split_at("-", "Removed", "true"), text), (Pieces{"-", "-", "-"}));
  EXPECT_THAT(pieces(split_at("-", "Merged"), text),
              testing::ElementsAre(testing::HasSubstr("/pre_tokenizer/behavior: must be Removed")));
}

TEST(PreTokenizer, CharacterKinds_CutAtTheirs) {
  EXPECT_EQ(pieces(R"({"type": "Digits", "individual_digits": true})", "a12²"),
            (Pieces{"a", "1", "2", "²"}));
  EXPECT_EQ(pieces(R"({"type": "Digits"})", "a12b"), (Pieces{"a", "12", "b"}));
  EXPECT_EQ(pieces(R"({"type": "Punctuation"})", "a!?b"), (Pieces{"a", "!", "?", "b"}));
  EXPECT_EQ(pieces(R"({"type": "Whitespace"})", "Hey, man! ²"),
            (Pieces{"Hey", ",", "man", "!", "²"}));
  EXPECT_EQ(pieces(R"({"type": "WhitespaceSplit"})", " a,\u3000b "), (Pieces{"a,", "b"}));
  EXPECT_EQ(pieces(R"({"type": "BertPreTokenizer"})", "a, b"), (Pieces{"a", ",", "b"}));
  EXPECT_EQ(pieces(R"({"type": "CharDelimiterSplit", "delimiter": "é"})", "aéb"),
            (Pieces{"a", "b"}));
  EXPECT_EQ(pieces(R"({"type": "FixedLength", "length": 2})", "aébcd"), (Pieces{"aé", "bc", "d"}));
}

TEST(PreTokenizer, Metaspace_PrependsByItsScheme) {
  const auto with = [](const std::string& scheme, const std::string& split = "false") {
    return R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": ")" + scheme +
           R"(", "split": )" + split + "}";
  };
  EXPECT_EQ(pieces(with("always"), "a b", false), (Pieces{"▁a▁b"}));
  EXPECT_EQ(pieces(with("first"), "a b", true), (Pieces{"▁a▁b"}));
  EXPECT_EQ(pieces(with("first"), "a b", false), (Pieces{"a▁b"}));
  EXPECT_EQ(pieces(with("never"), "a b"), (Pieces{"a▁b"}));
  EXPECT_EQ(pieces(with("always"), " a"), (Pieces{"▁a"}));
  EXPECT_EQ(pieces(with("always", "true"), "a  b"), (Pieces{"▁a", "▁", "▁b"}));
}

TEST(PreTokenizer, MetaspaceOfOldFiles_HasAnotherField) {
  EXPECT_EQ(pieces(R"({"type": "Metaspace", "replacement": "▁", "add_prefix_space": false})", "a"),
            (Pieces{"a"}));
  EXPECT_THAT(pieces(R"({"type": "Metaspace", "replacement": "▁", "add_prefix_space": false,
                         "prepend_scheme": "first"})",
                     "a"),
              testing::ElementsAre(testing::HasSubstr("contradicts")));
}

TEST(PreTokenizer, ByteLevel_WritesBytesAsCharacters) {
  EXPECT_EQ(pieces(R"({"type": "ByteLevel", "add_prefix_space": true})", "a é"),
            (Pieces{"Ġa", "ĠÃ©"}));
  EXPECT_EQ(
      pieces(R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})", "a b"),
      (Pieces{"aĠb"}));
}

TEST(PreTokenizer, UnknownKind_IsRefusedByName) {
  EXPECT_THAT(pieces(R"({"type": "UnicodeScripts"})", "a"),
              testing::ElementsAre(testing::HasSubstr("UnicodeScripts")));
  EXPECT_THAT(pieces(R"({"type": "FixedLength", "length": 0})", "a"),
              testing::ElementsAre(testing::HasSubstr("must be at least 1")));
}

}  // namespace
}  // namespace kernelpath::tokenizer
