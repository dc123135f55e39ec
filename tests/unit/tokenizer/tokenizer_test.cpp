#include "tokenizer/tokenizer.h"

#include "small_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

namespace kernelpath::tokenizer {
namespace {

using Ids = std::vector<TokenId>;
using testing::HasSubstr;

std::string added(const std::string& content, int id, const std::string& flags) {
  return R"({"id": )" + std::to_string(id) + R"(, "content": ")" + content + "\"" + flags + "}";
}

TEST(AddedTokens, LongestOfTheFirst_IsFound) {
  SmallTokenizer small;
  small.added_tokens = "[" + added("<x", 8, R"(, "special": true)") + "," +
                       added("<xy>", 9, R"(, "special": true)") + "]";
  EXPECT_EQ(small.encode("a<xy>b<xa"), (Ids{0, 9, 1, 8, 0}));
}

TEST(AddedTokens, SingleWord_IsNotFoundWithinWords) {
  SmallTokenizer small;
  small.added_tokens = "[" + added("abc", 8, R"(, "single_word": true)") + "]";
  small.vocab = R"({"a": 0, "b": 1, "c": 2, " ": 5})";
  small.merges = "[]";
  EXPECT_EQ(small.encode("abc abca"), (Ids{4, 5, 0, 1, 2, 0}));
}

TEST(AddedTokens, Strip_TakesWhiteSpaceAlong) {
  SmallTokenizer small;
  small.added_tokens =
      "[" + added("X", 8, R"(, "lstrip": true, "rstrip": true)") + "," + added("Y", 9, "") + "]";
  EXPECT_EQ(small.encode("a  X\u3000 b Y b"), (Ids{0, 8, 1, 5, 9, 5, 1}));
}

TEST(AddedTokens, Normalized_AreFoundInTheNormalizedText) {
  SmallTokenizer small;
  small.normalizer = R"({"type": "Lowercase"})";
  small.added_tokens = "[" + added("Tok", 8, R"(, "normalized": true)") + "," +
                       added("RAW", 9, R"(, "normalized": false)") + "]";
  EXPECT_EQ(small.encode("aTOKRAWraw"), (Ids{0, 8, 9, 0}));
}

TEST(AddedTokens, SpecialNames_MayBeOrdinaryText) {
  SmallTokenizer small;
  small.added_tokens =
      "[" + added("ab", 3, R"(, "special": true)") + "," + added("c?", 8, "") + "]";
  const auto loaded = small.load().value();
  const EncodeOptions text{.parse_special = false};
  EXPECT_EQ(loaded->encode("abc").value(), (Ids{3, 2}));
  EXPECT_EQ(loaded->encode("abc", text).value(), (Ids{4}));
  EXPECT_EQ(loaded->encode("abc?", text).value(), (Ids{3, 8}));
}

TEST(AddedTokens, IdOfTheFile_GivesWayToTheVocabulary) {
  SmallTokenizer small;
  small.added_tokens =
      "[" + added("ab", 77, R"(, "special": true)") + "," + added("new", 78, "") + "]";
  const auto loaded = small.load().value();
  EXPECT_EQ(loaded->token_to_id("ab"), 3);
  EXPECT_EQ(loaded->token_to_id("new"), 8);
  ASSERT_EQ(loaded->warnings().size(), 2U);
  EXPECT_EQ(loaded->warnings()[0].where, "/added_tokens/0/id");
}

TEST(AddedTokens, TooLongOnes_AreRefused) {
  SmallTokenizer small;
  small.added_tokens = "[" + added(std::string(1025, 'x'), 8, "") + "]";
  EXPECT_EQ(small.load().error().where, "/added_tokens/0/content");
}

TEST(Vocabulary, SizesAndNames_AreThoseOfTheFile) {
  SmallTokenizer small;
  small.added_tokens = "[" + added("<e>", 8, R"(, "special": true)") + "]";
  const auto loaded = small.load().value();
  EXPECT_EQ(loaded->vocabulary_size(), 9U);
  EXPECT_EQ(loaded->id_limit(), 9);
  EXPECT_EQ(loaded->id_to_token(8), "<e>");
  EXPECT_EQ(loaded->id_to_token(4), "abc");
  EXPECT_EQ(loaded->id_to_token(9), std::nullopt);
  EXPECT_EQ(loaded->id_to_token(-1), std::nullopt);
  EXPECT_EQ(loaded->token_to_id("nope"), std::nullopt);
  EXPECT_TRUE(loaded->is_special(8));
  EXPECT_FALSE(loaded->is_special(0));
}

constexpr const char* kTemplate = R"({"type": "TemplateProcessing",
  "single": [{"SpecialToken": {"id": "B", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
             {"SpecialToken": {"id": "E", "type_id": 0}}],
  "pair": [], "special_tokens": {"B": {"id": "B", "ids": [7, 6], "tokens": ["?", "é"]},
                                 "E": {"id": "E", "ids": [5], "tokens": [" "]}}})";

TEST(PostProcessor, Template_SurroundsTheText) {
  SmallTokenizer small;
  small.post_processor = kTemplate;
  const auto loaded = small.load().value();
  EXPECT_EQ(loaded->encode("a").value(), (Ids{7, 6, 0, 5}));
  EXPECT_EQ(loaded->encode("").value(), (Ids{7, 6, 5}));
  EXPECT_EQ(loaded->encode("a", {.add_special_tokens = false}).value(), (Ids{0}));
}

TEST(PostProcessor, Kinds_OfEncoders) {
  SmallTokenizer small;
  small.post_processor = R"({"type": "BertProcessing", "sep": ["x", 2], "cls": ["y", 1]})";
  EXPECT_EQ(small.load().value()->encode("a").value(), (Ids{1, 0, 2}));
}

TEST(PostProcessor, BrokenOnes_AreRefused) {
  const auto where = [](const std::string& processor) {
    SmallTokenizer small;
    small.post_processor = processor;
    const auto loaded = small.load();
    return loaded ? "loaded" : loaded.error().where;
  };
  EXPECT_EQ(where(R"({"type": "Sequence", "processors": [)" + std::string(kTemplate) + "," +
                  kTemplate + "]}"),
            "/post_processor/processors/1");
  EXPECT_EQ(where(R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "B"}}]})"),
            "/post_processor/single/0/SpecialToken");
  EXPECT_EQ(where(R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "B"}}]})"),
            "/post_processor/single/0/Sequence");
  EXPECT_EQ(where(R"({"type": "Other"})"), "/post_processor/type");
  EXPECT_EQ(where(R"({"type": "BertProcessing", "sep": ["x", -1], "cls": ["y", 1]})"),
            "/post_processor/sep");
}

TEST(Encode, TextThatIsNoUtf8_IsRefusedWithItsPlace) {
  const auto loaded = SmallTokenizer{}.load().value();
  const auto failed = loaded->encode("ab\xff");
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::kInputEncoding);
  EXPECT_EQ(failed.error().where, "byte 2");
}

TEST(Decode, IdOutsideTheVocabulary_IsRefusedOrSkipped) {
  const auto loaded = SmallTokenizer{}.load().value();
  const auto failed = loaded->decode(Ids{0, 8});
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::kConfigValue);
  EXPECT_EQ(failed.error().where, "token 1");
  EXPECT_THAT(failed.error().message, HasSubstr("0 to 7"));
  EXPECT_EQ(failed.error().value, "8");
  EXPECT_EQ(loaded->decode(Ids{0, 8, -5}, {.refuse_unknown_ids = false}).value(), "a");
}

TEST(Encode, SeveralThreads_GetTheSameTokens) {
  const auto loaded = SmallTokenizer{}.load().value();
  const auto expected = loaded->encode("abc ab c").value();
  std::vector<Ids> results(4);
  std::vector<std::thread> threads;
  threads.reserve(results.size());
  for (Ids& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) result = loaded->encode("abc ab c").value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(results, testing::Each(expected));
}

TEST(Load, FolderWithoutTokenizer_SaysWhatIsMissing) {
  const TemporaryFolder folder;
  const auto failed = load(folder.path());
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::kInputKind);
  EXPECT_THAT(failed.error().message, HasSubstr("neither tokenizer.json nor tokenizer.model"));
  EXPECT_EQ(load(folder.path("none.json")).error().code, ErrorCode::kInputMissing);
}

TEST(Load, BrokenFiles_AreRefusedWithTheirPlace) {
  const TemporaryFolder folder;
  const auto where = [&](const std::string& text) {
    folder.write("tokenizer.json", text);
    const auto loaded = load(folder.path());
    return loaded ? "loaded" : loaded.error().where;
  };
  EXPECT_EQ(where("{"), "1:2");
  EXPECT_EQ(where("{}"), "/model");
  EXPECT_EQ(where(R"({"model": []})"), "/model");
  EXPECT_EQ(where(R"({"model": {"type": "WordPiece", "vocab": {}}})"), "/model/type");
  EXPECT_EQ(where(R"({"model": {"type": "BPE", "vocab": {}}})"), "/model/merges");
  EXPECT_EQ(where(R"({"version": "2.0", "model": {"type": "BPE", "vocab": {}, "merges": []}})"),
            "/version");
  EXPECT_EQ(where(R"({"surprise": 1, "model": {"type": "BPE", "vocab": {}, "merges": []}})"),
            "/surprise");
  EXPECT_EQ(where(R"({"model": {"type": "BPE", "vocab": {}, "merges": [], "unk_token": "u"}})"),
            "/model/unk_token");
  EXPECT_EQ(
      where(R"({"decoder": {"type": "CTC"}, "model": {"type": "BPE", "vocab": {}, "merges": []}})"),
      "/decoder/type");
  EXPECT_EQ(where(R"({"model": {"type": "BPE", "vocab": {}, "merges": []}})"), "loaded");
}

TEST(Load, PaddingAndTruncation_AreWarnings) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", R"({"truncation": {"max_length": 5}, "padding": {},
    "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  const auto loaded = load(folder.path()).value();
  ASSERT_EQ(loaded->warnings().size(), 2U);
  EXPECT_EQ(loaded->warnings()[0].where, "/truncation");
  EXPECT_EQ(loaded->encode("aaaaaaaa").value().size(), 8U);
}

class SpecialTokensOf : public testing::Test {
 protected:
  SpecialTokensOf() {
    SmallTokenizer small;
    small.added_tokens = "[" + added("<e>", 8, R"(, "special": true)") + "]";
    folder_.write("tokenizer.json", small.json());
  }

  TemporaryFolder folder_;
};

TEST_F(SpecialTokensOf, NamesAndIds_ComeFromThreeFiles) {
  folder_.write("tokenizer_config.json",
                R"({"bos_token": {"content": "ab", "__type": "AddedToken"}, "eos_token": "<e>",
                    "pad_token": null, "unk_token": "?"})");
  folder_.write("generation_config.json", R"({"eos_token_id": [4, 8], "pad_token_id": 2})");
  folder_.write("config.json", R"({"eos_token_id": 1, "bos_token_id": 1})");
  const auto loaded = load(folder_.path()).value();
  const SpecialTokens& special = loaded->special_tokens();
  EXPECT_EQ(special.bos, 3);
  EXPECT_EQ(special.eos, (Ids{4, 8}));
  EXPECT_EQ(special.pad, 2);
  EXPECT_EQ(special.unk, 7);
  ASSERT_EQ(special.named.size(), 3U);
  EXPECT_EQ(special.named[0].key, "bos_token");
  // What the configuration names is special from then on.
  EXPECT_TRUE(loaded->is_special(3));
  EXPECT_EQ(loaded->decode(Ids{3, 2}, {.skip_special = true}).value(), "c");
}

TEST_F(SpecialTokensOf, ConfigJson_IsTheLastToBeAsked) {
  folder_.write("config.json", R"({"eos_token_id": 1, "bos_token_id": [2]})");
  const auto loaded = load(folder_.path()).value();
  EXPECT_EQ(loaded->special_tokens().eos, (Ids{1}));
  EXPECT_EQ(loaded->special_tokens().bos, 2);
}

TEST_F(SpecialTokensOf, UnknownEos_IsAnErrorAndUnknownPadAWarning) {
  folder_.write("tokenizer_config.json", R"({"eos_token": "<nope>"})");
  const auto failed = load(folder_.path());
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::kConfigValue);
  EXPECT_EQ(failed.error().where, "/eos_token");
  EXPECT_THAT(failed.error().file, testing::EndsWith("tokenizer_config.json"));
  folder_.write("tokenizer_config.json", R"({"pad_token": "<nope>"})");
  const auto loaded = load(folder_.path()).value();
  ASSERT_EQ(loaded->warnings().size(), 1U);
  EXPECT_EQ(loaded->warnings()[0].where, "/pad_token");
}

TEST_F(SpecialTokensOf, AddedTokensDecoder_CountsMoreThanTokenizerJson) {
  folder_.write("tokenizer_config.json", R"({"added_tokens_decoder": {
    "8": {"content": "<e>", "special": false}, "20": {"content": "<new>", "special": true}}})");
  const auto loaded = load(folder_.path()).value();
  EXPECT_FALSE(loaded->is_special(8));
  EXPECT_EQ(loaded->encode("a<new>").value(), (Ids{0, 20}));
  EXPECT_EQ(loaded->id_limit(), 21);
}

TEST_F(SpecialTokensOf, AddedTokensDecoder_MayChangeHowATokenIsFound) {
  SmallTokenizer small;
  small.normalizer = R"({"type": "Lowercase"})";
  small.added_tokens = "[" + added("TOK", 8, R"(, "normalized": true)") + "]";
  folder_.write("tokenizer.json", small.json());
  EXPECT_EQ(load(folder_.path()).value()->encode("tok").value(), (Ids{8}));
  folder_.write("tokenizer_config.json",
                R"({"added_tokens_decoder": {"8": {"content": "TOK", "normalized": false}}})");
  const auto loaded = load(folder_.path()).value();
  EXPECT_EQ(loaded->encode("tokTOK").value(), (Ids{8}));
  EXPECT_EQ(loaded->decode(Ids{8}).value(), "TOK");
}

TEST_F(SpecialTokensOf, BrokenIds_AreRefused) {
  folder_.write("generation_config.json", R"({"eos_token_id": [1, "2"]})");
  EXPECT_EQ(load(folder_.path()).error().where, "/eos_token_id/1");
  folder_.write("generation_config.json", R"({"eos_token_id": -1})");
  EXPECT_TRUE(load(folder_.path()).value()->special_tokens().eos.empty());
}

}  // namespace
}  // namespace kernelpath::tokenizer
