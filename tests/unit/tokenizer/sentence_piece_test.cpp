#include "recorded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace kernelpath::tokenizer {
namespace {

using Ids = std::vector<TokenId>;

// Just enough of protobuf's wire format to write a small sentencepiece_model.proto.
std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>((value & 0x7fU) | 0x80U);
  return out + static_cast<char>(value);
}
std::string number_field(unsigned field, std::uint64_t value) {
  return varint(field << 3U) + varint(value);
}
std::string bytes_field(unsigned field, const std::string& bytes) {
  return varint((field << 3U) | 2U) + varint(bytes.size()) + bytes;
}
std::string float_field(unsigned field, float value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return varint((field << 3U) | 5U) + bytes;
}

enum PieceType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kByte = 6
};

std::string piece(const std::string& text, float score, PieceType type = kNormal) {
  return bytes_field(1, bytes_field(1, text) + float_field(2, score) + number_field(3, type));
}

// A BPE model with byte fallback, as Llama's.
std::string small_model(bool add_dummy_prefix = true) {
  std::string model =
      piece("<unk>", 0, kUnknown) + piece("<s>", 0, kControl) + piece("</s>", 0, kControl);
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::string name = {'<', '0', 'x', digits[byte >> 4U], digits[byte & 15U], '>'};
    model += piece(name, 0, kByte);
  }
  model += piece("ab", 0) + piece("▁ab", -1) + piece("▁", -2) + piece("a", -3) + piece("b", -4) +
           piece("<tool>", 0, kUserDefined);
  // trainer_spec: model_type = BPE, byte_fallback; normalizer_spec: name, the three flags.
  model += bytes_field(2, number_field(3, 2) + number_field(35, 1));
  model += bytes_field(3, bytes_field(1, "identity") + number_field(3, add_dummy_prefix ? 1 : 0) +
                              number_field(4, 0) + number_field(5, 1));
  return model;
}

class SentencePieceFile : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_sentence_piece()) GTEST_SKIP() << "built without sentencepiece";
  }
  std::unique_ptr<Tokenizer> load_small(bool add_dummy_prefix = true) {
    folder_.write("tokenizer.model", small_model(add_dummy_prefix));
    auto loaded = load(folder_.path());
    if (!loaded) throw std::runtime_error(loaded.error().text());
    return *std::move(loaded);
  }
  TemporaryFolder folder_;
};

TEST_F(SentencePieceFile, Encode_GivesPiecesAndBytes) {
  const auto loaded = load_small();
  EXPECT_EQ(loaded->vocabulary_size(), 265U);
  EXPECT_EQ(loaded->token_to_id("▁ab"), 260);
  EXPECT_EQ(loaded->encode("ab ab").value(), (Ids{1, 260, 260}));
  EXPECT_EQ(loaded->encode("abé", {.add_special_tokens = false}).value(),
            (Ids{260, 3 + 0xc3, 3 + 0xa9}));
  EXPECT_EQ(loaded->encode("a<tool>", {.add_special_tokens = false}).value(), (Ids{261, 262, 264}));
}

TEST_F(SentencePieceFile, SpecialTokens_AreReadInTextsOrNot) {
  const auto loaded = load_small();
  EXPECT_EQ(loaded->encode("ab</s>", {.add_special_tokens = false}).value(), (Ids{260, 2}));
  const auto text =
      loaded->encode("ab</s>", {.add_special_tokens = false, .parse_special = false}).value();
  EXPECT_EQ(text.size(), 5U);
  EXPECT_TRUE(loaded->is_special(2));
}

TEST_F(SentencePieceFile, Configuration_SaysWhatSurroundsATexts) {
  folder_.write("tokenizer_config.json",
                R"({"add_bos_token": false, "add_eos_token": true, "eos_token": "</s>"})");
  const auto loaded = load_small();
  EXPECT_EQ(loaded->encode("ab").value(), (Ids{260, 2}));
  EXPECT_EQ(loaded->special_tokens().eos, (Ids{2}));
}

TEST_F(SentencePieceFile, Decode_GivesTheTextBack) {
  const auto loaded = load_small();
  for (const std::string text : {"ab ab", " ab", "abé😀", "", "é"}) {
    const auto ids = loaded->encode(text).value();
    EXPECT_EQ(loaded->decode(ids, {.skip_special = true}).value(), text);
  }
  EXPECT_EQ(loaded->decode(Ids{3 + 0xe4, 3 + 0xbd, 260}).value(), "\ufffd\ufffd ab");
  EXPECT_EQ(load_small(false)->decode(Ids{260}).value(), " ab");
}

TEST_F(SentencePieceFile, Stream_GivesWhatIsCertain) {
  const auto loaded = load_small();
  StreamDecoder stream = loaded->stream_decoder();
  EXPECT_EQ(stream.push(260), "ab");
  EXPECT_EQ(stream.push(3 + 0xc3), "");
  EXPECT_EQ(stream.push(3 + 0xa9), "é");
  EXPECT_EQ(stream.flush(), "");
}

TEST_F(SentencePieceFile, BrokenFile_IsRefused) {
  folder_.write("tokenizer.model", "not a model");
  const auto failed = load(folder_.path());
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::kConfigValue);
  EXPECT_THAT(failed.error().file, testing::EndsWith("tokenizer.model"));
}

TEST_F(SentencePieceFile, TokenizerJson_IsPreferred) {
  folder_.write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  EXPECT_EQ(load_small()->vocabulary_size(), 1U);
  EXPECT_EQ(load(folder_.path("tokenizer.model")).value()->vocabulary_size(), 265U);
}

TEST(NoSentencePiece, File_IsRefusedWithWhatToInstall) {
  if (has_sentence_piece()) GTEST_SKIP() << "built with sentencepiece";
  const TemporaryFolder folder;
  folder.write("tokenizer.model", small_model());
  const auto failed = load(folder.path());
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(failed.error().hint, testing::HasSubstr("libsentencepiece-dev"));
}

}  // namespace
}  // namespace kernelpath::tokenizer
