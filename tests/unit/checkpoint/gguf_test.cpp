// What good GGUF files give, and split ones.
#include "checkpoint/gguf.h"

#include "build_gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdlib.h>

namespace kernelpath::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::int32_t kF32 = 0;
constexpr std::int32_t kQ8 = 8;

Result<Gguf> parse(const std::string& bytes, const ReadOptions& options = {}) {
  return parse_gguf(bytes, bytes.size(), "m.gguf", options);
}

GgufBuilder sample() {
  GgufBuilder file;
  file.text("general.architecture", "llama").u32("llama.block_count", 2);
  file.tensor("a", {64, 2}, kQ8, 0).tensor("b", {3}, kF32, 160);
  file.data_bytes = 160 + 12;
  return file;
}

TEST(Gguf, OrdinaryFile_GivesMetadataAndTensors) {
  const auto gguf = parse(sample().bytes());
  ASSERT_TRUE(gguf) << gguf.error().text();
  EXPECT_EQ(gguf->version, 3U);
  EXPECT_EQ(gguf->alignment, 32U);
  ASSERT_THAT(gguf->pairs, SizeIs(2));
  EXPECT_EQ(gguf->find("general.architecture")->text, "llama");
  EXPECT_THAT(gguf->find("llama.block_count")->integers, ElementsAre(2));
  EXPECT_EQ(gguf->find("llama.context_length"), nullptr);
  ASSERT_THAT(gguf->tensors, SizeIs(2));
  EXPECT_EQ(gguf->tensors[0].type->name, "q8_0");
  EXPECT_THAT(gguf->tensors[0].shape, ElementsAre(64, 2, 1, 1));
  EXPECT_EQ(gguf->tensors[0].bytes, 2 * 2 * 34);
  EXPECT_EQ(gguf->tensors[1].offset, 160);
  EXPECT_EQ(gguf->tensor_bytes, 136 + 12);
  EXPECT_EQ(gguf->header_bytes % 32, 0);
  EXPECT_THAT(gguf->warnings, IsEmpty());
}

TEST(Gguf, EveryValueType_IsRead) {
  GgufBuilder file;
  file.number("u8", GgufType::kUint8, std::uint8_t{200})
      .number("i8", GgufType::kInt8, std::int8_t{-3})
      .number("u16", GgufType::kUint16, std::uint16_t{65535})
      .number("i16", GgufType::kInt16, std::int16_t{-300})
      .number("i32", GgufType::kInt32, std::int32_t{-70000})
      .number("f32", GgufType::kFloat32, 0.5F)
      .number("bool", GgufType::kBool, std::uint8_t{2})
      .number("u64", GgufType::kUint64, std::uint64_t{1} << 63U)
      .number("i64", GgufType::kInt64, std::int64_t{-1})
      .number("f64", GgufType::kFloat64, 1e300)
      .array("flags", GgufType::kBool, 3, std::string("\0\1\0", 3))
      .array("heads", GgufType::kInt32, 2, little(std::int32_t{4}) + little(std::int32_t{0}))
      .array("words", GgufType::kString, 2, gguf_string("x") + gguf_string(""));
  const auto gguf = parse(file.bytes());
  ASSERT_TRUE(gguf) << gguf.error().text();
  EXPECT_THAT(gguf->find("u8")->integers, ElementsAre(200));
  EXPECT_THAT(gguf->find("i8")->integers, ElementsAre(-3));
  EXPECT_THAT(gguf->find("u16")->integers, ElementsAre(65535));
  EXPECT_THAT(gguf->find("i16")->integers, ElementsAre(-300));
  EXPECT_THAT(gguf->find("i32")->integers, ElementsAre(-70000));
  EXPECT_THAT(gguf->find("f32")->reals, ElementsAre(0.5));
  EXPECT_THAT(gguf->find("bool")->integers, ElementsAre(1));
  EXPECT_THAT(gguf->find("u64")->integers, ElementsAre(INT64_MAX));
  EXPECT_THAT(gguf->find("i64")->integers, ElementsAre(-1));
  EXPECT_THAT(gguf->find("f64")->reals, ElementsAre(1e300));
  EXPECT_THAT(gguf->find("flags")->integers, ElementsAre(0, 1, 0));
  EXPECT_EQ(gguf->find("heads")->element_type, GgufType::kInt32);
  EXPECT_THAT(gguf->find("heads")->integers, ElementsAre(4, 0));
  EXPECT_TRUE(gguf->find("words")->is_array());
  EXPECT_EQ(gguf->find("words")->count, 2U);
}

TEST(Gguf, Version2_IsRead) {
  GgufBuilder file = sample();
  file.version = 2;
  EXPECT_TRUE(parse(file.bytes()));
}

TEST(Gguf, AlignmentKey_PadsTensorsAndData) {
  GgufBuilder file;
  file.u32("general.alignment", 64).tensor("a", {1}, kF32, 0).tensor("b", {1}, kF32, 64);
  file.alignment = 64;
  file.data_bytes = 64 + 4;
  const auto gguf = parse(file.bytes());
  ASSERT_TRUE(gguf) << gguf.error().text();
  EXPECT_EQ(gguf->alignment, 64U);
  EXPECT_EQ(gguf->header_bytes % 64, 0);
}

TEST(Gguf, NoTensorsAtAll_IsAVocabularyFile) {
  GgufBuilder file;
  file.text("general.architecture", "llama");
  EXPECT_TRUE(parse(file.bytes()));
}

TEST(Gguf, LongList_IsCountedNotKept) {
  GgufBuilder file;
  const std::uint64_t count = kKeptElements + 1;
  file.array("scores", GgufType::kFloat32, count, std::string(count * 4, '\0'));
  const auto gguf = parse(file.bytes());
  ASSERT_TRUE(gguf) << gguf.error().text();
  EXPECT_EQ(gguf->find("scores")->count, count);
  EXPECT_THAT(gguf->find("scores")->reals, IsEmpty());
}

TEST(Gguf, MillionsOfEmptyTokens_AreReadInTime) {
  GgufBuilder file;
  const std::uint64_t count = 1'000'000;
  file.array("tokenizer.ggml.tokens", GgufType::kString, count, std::string(count * 8, '\0'));
  const auto gguf = parse(file.bytes());
  ASSERT_TRUE(gguf) << gguf.error().text();
  EXPECT_EQ(gguf->pairs.front().value.count, count);
}

TEST(Gguf, BytesBehindTheLastTensor_AreAWarningAndStrictlyAnError) {
  GgufBuilder file = sample();
  file.data_bytes = 192 + 5;
  const auto gguf = parse(file.bytes());
  ASSERT_TRUE(gguf) << gguf.error().text();
  ASSERT_THAT(gguf->warnings, SizeIs(1));
  EXPECT_EQ(gguf->warnings[0].code, "GGUF-TAIL");
  EXPECT_THAT(gguf->warnings[0].message, HasSubstr("5 bytes"));
  EXPECT_FALSE(parse(file.bytes(), {.strict = true}));
}

TEST(GgmlType, Tables_AreFoundBothWays) {
  ASSERT_NE(find_ggml_type("q4_K"), nullptr);
  EXPECT_EQ(find_ggml_type("q4_K"), find_ggml_type(12));
  EXPECT_EQ(find_ggml_type(4), nullptr);  // removed
  EXPECT_EQ(find_ggml_type(36), nullptr);
  EXPECT_EQ(find_ggml_type(-1), nullptr);
  EXPECT_EQ(ggml_types().size(), 35U);
  EXPECT_EQ(ggml_row_bytes(*find_ggml_type("q8_0"), 64), 68);
  EXPECT_EQ(ggml_row_bytes(*find_ggml_type("q8_0"), 65), std::nullopt);
  EXPECT_EQ(ggml_row_bytes(*find_ggml_type("f32"), INT64_MAX), std::nullopt);
}

// --- files ---------------------------------------------------------------------------------------

class GgufFiles : public testing::Test {
 protected:
  GgufFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "gguf-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~GgufFiles() override { std::filesystem::remove_all(folder_); }
  GgufFiles(const GgufFiles&) = delete;
  GgufFiles& operator=(const GgufFiles&) = delete;

  std::string write(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  // Part `number` (from 0) of `count`, with one tensor.
  static GgufBuilder part(std::uint16_t number, std::uint16_t count, std::string_view tensor) {
    GgufBuilder file;
    if (number == 0) file.text("general.architecture", "llama");
    file.number("split.no", GgufType::kUint16, number)
        .number("split.count", GgufType::kUint16, count)
        .number("split.tensors.count", GgufType::kInt32, std::int32_t{count})
        .tensor(tensor, {8}, kF32, 0);
    file.data_bytes = 32;
    return file;
  }

  void expect_error(const std::string& path, ErrorCode code, const std::string& message) {
    const auto gguf = read_gguf(path);
    ASSERT_FALSE(gguf) << message;
    EXPECT_EQ(gguf.error().code, code) << gguf.error().text();
    EXPECT_THAT(gguf.error().text(), HasSubstr(message));
  }

  std::string folder_;
};

TEST_F(GgufFiles, WholeFile_IsRead) {
  const auto gguf = read_gguf(write("m.gguf", sample().bytes()));
  ASSERT_TRUE(gguf) << gguf.error().text();
  EXPECT_EQ(gguf->parts, 1);
}

TEST_F(GgufFiles, HeaderLongerThanTheFirstRead_IsReadWhole) {
  GgufBuilder file;
  const std::uint64_t count = 1'000'000;
  file.array("tokens", GgufType::kString, count, std::string(count * 8, '\0'))
      .text("general.architecture", "llama");
  const auto gguf = read_gguf(write("m.gguf", file.bytes()));
  ASSERT_TRUE(gguf) << gguf.error().text();
  EXPECT_EQ(gguf->find("general.architecture")->text, "llama");
}

TEST_F(GgufFiles, SplitFile_IsReadFromItsFirstPart) {
  const std::string first = write("m-00001-of-00003.gguf", part(0, 3, "a").bytes());
  write("m-00002-of-00003.gguf", part(1, 3, "b").bytes());
  write("m-00003-of-00003.gguf", part(2, 3, "c").bytes());
  const auto gguf = read_gguf(first);
  ASSERT_TRUE(gguf) << gguf.error().text();
  EXPECT_EQ(gguf->parts, 3);
  ASSERT_THAT(gguf->tensors, SizeIs(3));
  EXPECT_EQ(gguf->tensors[2].name, "c");
  EXPECT_EQ(gguf->tensors[2].part, 2);
  EXPECT_EQ(gguf->tensor_bytes, 3 * 32);
}

TEST_F(GgufFiles, PartThatIsNotThere_IsNamed) {
  const std::string first = write("m-00001-of-00002.gguf", part(0, 2, "a").bytes());
  expect_error(first, ErrorCode::kInputMissing, "m-00002-of-00002.gguf");
}

TEST_F(GgufFiles, SecondPartAlone_NamesTheFirst) {
  const std::string second = write("m-00002-of-00002.gguf", part(1, 2, "b").bytes());
  expect_error(second, ErrorCode::kCheckpoint, "the model begins with m-00001-of-00002.gguf");
}

TEST_F(GgufFiles, RenamedPart_IsRefused) {
  expect_error(write("m.gguf", part(0, 2, "a").bytes()), ErrorCode::kCheckpoint,
               "its name must end in -00001-of-00002.gguf");
}

TEST_F(GgufFiles, PartThatSaysAnotherNumberOrCount_IsRefused) {
  const std::string first = write("m-00001-of-00002.gguf", part(0, 2, "a").bytes());
  write("m-00002-of-00002.gguf", part(0, 2, "b").bytes());
  expect_error(first, ErrorCode::kCheckpoint, "split.no: expected 1, for part 2 of 2 (0)");
  write("m-00002-of-00002.gguf", part(1, 3, "b").bytes());
  expect_error(first, ErrorCode::kCheckpoint, "split.count: the first part says 2 (3)");
}

TEST_F(GgufFiles, TensorInTwoParts_IsRefused) {
  const std::string first = write("m-00001-of-00002.gguf", part(0, 2, "a").bytes());
  write("m-00002-of-00002.gguf", part(1, 2, "a").bytes());
  expect_error(first, ErrorCode::kCheckpoint, "a: the tensor stands in two parts");
}

TEST_F(GgufFiles, TotalThatDisagrees_IsRefused) {
  const std::string first = write("m-00001-of-00002.gguf", part(0, 2, "a").bytes());
  GgufBuilder second = part(1, 2, "b");
  second.tensor("c", {8}, kF32, 32);
  second.data_bytes = 64;
  write("m-00002-of-00002.gguf", second.bytes());
  expect_error(first, ErrorCode::kCheckpoint, "split.tensors.count: the parts hold 3 tensors (2)");
}

TEST_F(GgufFiles, SplitKeyOfAnotherType_IsRefused) {
  GgufBuilder file;
  file.u32("split.count", 2);
  expect_error(write("m-00001-of-00002.gguf", file.bytes()), ErrorCode::kCheckpoint,
               "split.count: must be of type u16 (u32)");
}

}  // namespace
}  // namespace kernelpath::checkpoint
