// Section G of the bad inputs, and the classes of malformed files behind the public reports on GGUF
// readers: CVE-2024-21802, -21825, -21836, -23496, -23605 (unchecked counts and lengths),
// CVE-2025-53630, CVE-2026-27940 (the sum of sizes), CVE-2026-33298 (the size of one tensor),
// CVE-2026-7482 (declared shapes beyond the file).
#include "build_gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::checkpoint {
namespace {

using testing::HasSubstr;

constexpr std::int32_t kF32 = 0;
constexpr std::int32_t kQ8 = 8;
constexpr std::int64_t kMax = INT64_MAX;

void expect_broken(const std::string& bytes, std::string_view where, std::string_view message,
                   ErrorCode code = ErrorCode::kCheckpoint) {
  const auto gguf = parse_gguf(bytes, bytes.size(), "m.gguf");
  ASSERT_FALSE(gguf) << message;
  EXPECT_EQ(gguf.error().code, code) << gguf.error().text();
  EXPECT_EQ(gguf.error().where, where) << gguf.error().text();
  EXPECT_EQ(gguf.error().file, "m.gguf");
  EXPECT_THAT(gguf.error().text(), HasSubstr(std::string(message)));
}

void expect_broken(const GgufBuilder& file, std::string_view where, std::string_view message) {
  expect_broken(file.bytes(), where, message);
}

GgufBuilder one_tensor(const std::vector<std::int64_t>& shape, std::int32_t type = kF32) {
  GgufBuilder file;
  file.tensor("w", shape, type, 0);
  return file;
}

// --- G1: magic and version -----------------------------------------------------------------------

TEST(GgufMalformed, WrongMagic_IsRefused) {
  expect_broken("GGML" + std::string(64, '\0'), "byte 0", "begins with \"GGUF\" (GGML)");
  expect_broken("", "byte 0", "begins with \"GGUF\"");
  expect_broken("GGU", "byte 0", "begins with \"GGUF\" (GGU)");
}

TEST(GgufMalformed, UnknownVersion_IsRefused) {
  for (const std::uint32_t version : {0U, 1U, 4U, 0xffffffffU}) {
    GgufBuilder file;
    file.version = version;
    expect_broken(file, "byte 8", "GGUF versions 2 and 3 are read (" + std::to_string(version));
  }
}

TEST(GgufMalformed, ByteSwappedVersion_NamesTheByteOrder) {
  GgufBuilder file;
  file.version = 0x03000000;
  expect_broken(file, "byte 8", "a big-endian GGUF file");
}

TEST(GgufMalformed, TextFileUnderThisName_SaysWhatItIs) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n";
  expect_broken(pointer, "", "Git LFS pointer", ErrorCode::kInputKind);
  expect_broken("<!DOCTYPE html>", "", "HTML page, not a GGUF file", ErrorCode::kInputKind);
}

// --- G2: counts ----------------------------------------------------------------------------------

TEST(GgufMalformed, CountBeyondTheFile_IsRefused) {
  for (const std::int64_t count : {INT64_MIN, std::int64_t{-1}, kMax, kMax / 2, std::int64_t{1}}) {
    GgufBuilder file;
    file.tensor_count = count;
    expect_broken(file, "byte 16", "cannot hold so many tensors: 8 bytes are left");
    file.tensor_count = 0;
    file.pair_count = count;
    expect_broken(file, "byte 24", "cannot hold so many pairs: 0 bytes are left");
  }
}

TEST(GgufMalformed, MorePairsThanTheLimit_IsRefused) {
  GgufBuilder file;
  file.pair_count = kMaxGgufPairs + 1;
  const std::string bytes = file.bytes() + std::string(14 * (kMaxGgufPairs + 1), '\0');
  expect_broken(bytes, "byte 24", "the limit is 65536", ErrorCode::kInputLimit);
}

// --- every cut -----------------------------------------------------------------------------------

TEST(GgufMalformed, FileCutAnywhere_IsRefused) {
  GgufBuilder file;
  file.text("general.architecture", "llama")
      .array("heads", GgufType::kInt32, 2, little(std::int64_t{1}))
      .array("words", GgufType::kString, 1, gguf_string("x"))
      .tensor("w", {32}, kQ8, 0);
  file.data_bytes = 34;
  const std::string bytes = file.bytes();
  ASSERT_TRUE(parse_gguf(bytes, bytes.size(), "m.gguf"));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    EXPECT_FALSE(parse_gguf(cut, cut.size(), "m.gguf")) << size;
  }
}

TEST(GgufMalformed, StartShorterThanTheHeader_AsksForMore) {
  const std::string bytes = one_tensor({1}).bytes();
  const auto gguf = parse_gguf(std::string_view(bytes).substr(0, 30), 4096, "m.gguf");
  ASSERT_FALSE(gguf);
  EXPECT_EQ(gguf.error().code, ErrorCode::kInputLimit);
}

// --- G3, G4, G5: keys and values -----------------------------------------------------------------

TEST(GgufMalformed, StringLongerThanTheFile_IsRefused) {
  for (const std::uint64_t length : {std::uint64_t{9}, UINT64_MAX, std::uint64_t{1} << 63U}) {
    GgufBuilder file;
    file.raw("general.name", 8, little(length) + "12345678");
    expect_broken(file, "general.name", "a string of " + std::to_string(length) + " bytes, but 8");
  }
}

TEST(GgufMalformed, KeyThatNoWriterWrites_IsRefused) {
  expect_broken(GgufBuilder().u32("", 1), "byte 32", "a key is empty");
  expect_broken(GgufBuilder().u32(std::string_view("a\0b", 3), 1), "byte 35", "NUL byte");
  expect_broken(GgufBuilder().u32(std::string(65537, 'k'), 1), "byte 32", "the limit is 65536");
  expect_broken(GgufBuilder().u32("k", 1).u32("k", 2), "byte 50", "the key stands twice (k)");
}

TEST(GgufMalformed, ValueTypeOutOfRange_IsRefused) {
  for (const std::int32_t type : {-1, 13, 99, INT32_MIN}) {
    expect_broken(GgufBuilder().raw("k", type, std::string(8, '\0')), "k",
                  "unknown value type (" + std::to_string(type) + ")");
    const std::string list = little(type) + little(std::uint64_t{1}) + "12345678";
    expect_broken(GgufBuilder().raw("k", 9, list), "k", "unknown value type");
  }
}

TEST(GgufMalformed, ListOfLists_IsRefused) {
  expect_broken(GgufBuilder().array("k", GgufType::kArray, 1, std::string(64, '\0')), "k",
                "a list of lists");
}

TEST(GgufMalformed, ListLongerThanTheFile_IsRefused) {
  for (const std::uint64_t count : {std::uint64_t{2}, std::uint64_t{1} << 30U}) {
    expect_broken(GgufBuilder().array("k", GgufType::kUint64, count, "12345678"), "k",
                  "elements of type u64, but 8 bytes are left");
    expect_broken(GgufBuilder().array("k", GgufType::kString, count, "12345678"), "k",
                  "elements of type str, but 8 bytes are left");
  }
  for (const std::uint64_t count : {std::uint64_t{1} << 61U, UINT64_MAX}) {
    expect_broken(GgufBuilder().array("k", GgufType::kUint64, count, "12345678"), "k",
                  "the limit is 1073741824");
  }
}

TEST(GgufMalformed, StringInAListLongerThanTheFile_IsRefused) {
  expect_broken(GgufBuilder().array("k", GgufType::kString, 1, little(UINT64_MAX)), "k",
                "a string of 18446744073709551615 bytes, but 0 are left");
}

// --- G10: alignment ------------------------------------------------------------------------------

TEST(GgufMalformed, AlignmentThatIsNoPowerOfTwo_IsRefused) {
  for (const std::uint32_t alignment : {0U, 3U, 0xffffffffU}) {
    expect_broken(GgufBuilder().u32("general.alignment", alignment), "general.alignment",
                  "must be a power of two (" + std::to_string(alignment) + ")");
  }
}

TEST(GgufMalformed, AlignmentOfAnotherType_IsRefused) {
  expect_broken(GgufBuilder().number("general.alignment", GgufType::kInt32, std::int32_t{32}),
                "general.alignment", "must be of type u32 (i32)");
  expect_broken(GgufBuilder().text("general.alignment", "32"), "general.alignment",
                "must be of type u32 (str)");
  expect_broken(GgufBuilder().array("general.alignment", GgufType::kUint32, 0, ""),
                "general.alignment", "must be of type u32 (arr)");
}

TEST(GgufMalformed, AlignmentLargerThanTheFile_LeavesNoData) {
  GgufBuilder file;
  file.u32("general.alignment", 1U << 31U).tensor("w", {1}, kF32, 0);
  file.data_bytes = 64;
  expect_broken(file, "w", "ends at byte 4 of the data, but the file has 0");
}

// --- G6 to G9, G15: tensors ----------------------------------------------------------------------

TEST(GgufMalformed, TensorName_IsShortAndUnique) {
  GgufBuilder file;
  file.tensor(std::string(64, 'n'), {1}, kF32, 0);
  expect_broken(file, "byte 32", "a string of 64 bytes; the limit is 63");
  GgufBuilder twice;
  twice.tensor("w", {8}, kF32, 0).tensor("w", {8}, kF32, 32);
  expect_broken(twice, "byte 66", "two tensors have this name (w)");
}

TEST(GgufMalformed, NumberOfDimensions_IsAtMostFour) {
  expect_broken(one_tensor({1, 1, 1, 1, 1}), "w", "at most 4 dimensions (5)");
  GgufBuilder file;
  file.tensor_bytes(gguf_string("w") + little(UINT32_MAX) + std::string(64, '\0'));
  expect_broken(file, "w", "at most 4 dimensions (4294967295)");
}

TEST(GgufMalformed, DimensionOfZeroOrLess_IsRefused) {
  expect_broken(one_tensor({0}), "w", "dimension 0 must be 1 or more (0)");
  expect_broken(one_tensor({4, -1}), "w", "dimension 1 must be 1 or more (-1)");
  expect_broken(one_tensor({1, 1, 1, INT64_MIN}), "w", "dimension 3 must be 1 or more");
}

TEST(GgufMalformed, ProductThatWraps_IsRefused) {
  const std::string wraps = "the product of the shape does not fit 64 bits";
  expect_broken(one_tensor({kMax, 2, 1, 1}), "w", wraps);
  expect_broken(one_tensor({std::int64_t{1} << 32, std::int64_t{1} << 32}), "w", wraps);
  // Elements fit, bytes do not: the size of one tensor from wrapped strides.
  expect_broken(one_tensor({std::int64_t{1} << 61, 2}), "w", wraps);
  // The product wraps to 2^24, and to 0.
  expect_broken(one_tensor({std::int64_t{1} << 44, std::int64_t{1} << 44}), "w", wraps);
  expect_broken(one_tensor({4, std::int64_t{1} << 62, 1, 1}), "w", wraps);
}

TEST(GgufMalformed, RowThatDoesNotFillBlocks_IsRefused) {
  expect_broken(one_tensor({33}, kQ8), "w", "a multiple of 32, the block of type q8_0 (33)");
}

TEST(GgufMalformed, UnknownOrRemovedTensorType_IsRefused) {
  for (const std::int32_t type : {-1, 4, 5, 31, 33, 36, 38, 43, INT32_MAX}) {
    expect_broken(one_tensor({256}, type), "w",
                  "unknown or was removed from the format (" + std::to_string(type) + ")");
    const std::string bytes = one_tensor({256}, type).bytes();
    EXPECT_THAT(parse_gguf(bytes, bytes.size(), "m.gguf").error().hint,
                HasSubstr("12 q4_K, 13 q5_K, 14 q6_K"));
  }
}

TEST(GgufMalformed, OffsetThatIsNotTheNextOne_IsRefused) {
  for (const std::uint64_t offset :
       {std::uint64_t{0}, std::uint64_t{4}, std::uint64_t{64}, UINT64_MAX}) {
    GgufBuilder file;
    file.tensor("a", {1}, kF32, 0).tensor("b", {1}, kF32, offset);
    file.data_bytes = 128;
    expect_broken(file, "b", "must begin at byte 32, behind the tensors before it");
  }
}

TEST(GgufMalformed, SumOfSizesThatWraps_IsRefused) {
  constexpr std::int64_t kHuge = (std::int64_t{1} << 61) - 8;  // elements; 32 bytes below 2^63
  GgufBuilder file;
  file.tensor("a", {kHuge}, kF32, 0).tensor("b", {kHuge}, kF32, kHuge * 4);
  expect_broken(file, "b", "the sum of the tensors' sizes does not fit 64 bits");
  GgufBuilder padded;  // the padding of one tensor wraps
  padded.tensor("a", {kMax / 4}, kF32, 0);
  expect_broken(padded, "a", "the sum of the tensors' sizes does not fit 64 bits");
}

TEST(GgufMalformed, DataBeyondTheFile_IsRefused) {
  GgufBuilder file = one_tensor({1024});
  file.data_bytes = 4095;
  expect_broken(file, "w", "ends at byte 4096 of the data, but the file has 4095");
}

}  // namespace
}  // namespace kernelpath::checkpoint
