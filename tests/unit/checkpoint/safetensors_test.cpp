// Section F of the bad inputs.
#include "checkpoint/safetensors.h"

#include "build_file.h"

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

Result<Header> parse_bytes(const std::string& bytes, const ReadOptions& options = {}) {
  return parse_safetensors(bytes, bytes.size(), "m.safetensors", options);
}

Result<Header> parse(std::string_view header, std::size_t data_bytes,
                     const ReadOptions& options = {}) {
  return parse_bytes(safetensors_bytes(header, data_bytes), options);
}

void expect_broken(const Result<Header>& header, std::string_view where, std::string_view part,
                   ErrorCode code = ErrorCode::kCheckpoint) {
  ASSERT_FALSE(header) << part;
  EXPECT_EQ(header.error().code, code) << header.error().text();
  EXPECT_EQ(header.error().where, where) << header.error().text();
  EXPECT_EQ(header.error().file, "m.safetensors");
  EXPECT_THAT(header.error().message, HasSubstr(std::string(part)));
}

std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return std::string("{\"w\":{\"dtype\":") + std::string(dtype) +
         ",\"shape\":" + std::string(shape) + ",\"data_offsets\":" + std::string(offsets) + "}}";
}

std::string with_length(std::uint64_t length, std::string_view rest) {
  std::string out;
  for (unsigned shift = 0; shift < 64; shift += 8)
    out += static_cast<char>((length >> shift) & 0xffU);
  return out.append(rest);
}

TEST(Safetensors, OrdinaryFile_GivesTensors) {
  const std::string_view json =
      R"({"__metadata__":{"format":"pt"},"a.weight":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
      R"("b":{"dtype":"F32","shape":[],"data_offsets":[12,16]}}   )";
  const auto header = parse(json, 16);
  ASSERT_TRUE(header) << header.error().text();
  ASSERT_EQ(header->tensors.size(), 2U);
  EXPECT_EQ(header->tensors[0].name, "a.weight");
  EXPECT_EQ(header->tensors[0].dtype.name, "BF16");
  EXPECT_THAT(header->tensors[0].shape, ElementsAre(2, 3));
  EXPECT_EQ(header->tensors[0].bytes, 12);
  EXPECT_EQ(header->tensors[1].begin, 12);
  EXPECT_EQ(header->tensors[1].bytes, 4);
  EXPECT_THAT(header->tensors[1].shape, IsEmpty());
  EXPECT_EQ(header->data_bytes, 16);
  EXPECT_EQ(header->header_bytes, static_cast<std::int64_t>(8 + json.size()));
  EXPECT_THAT(header->warnings, IsEmpty());
}

TEST(Safetensors, NoTensors_IsAllowed) { EXPECT_TRUE(parse("{}", 0)); }

TEST(Safetensors, UnderEightBytes_IsRefused) {
  expect_broken(parse_bytes(""), "byte 0", "0 bytes long");
  expect_broken(parse_bytes("1234567"), "byte 0", "7 bytes long");
}

TEST(Safetensors, HeaderLengthBeyondTheFile_IsRefusedBeforeAllocating) {
  expect_broken(parse_bytes(with_length(0, "{}")), "byte 0", "the header is empty");
  expect_broken(parse_bytes(with_length(3, "{}")), "byte 0",
                "the header's length is 3, but 2 bytes");
  expect_broken(parse_bytes(with_length(std::uint64_t{1} << 63U, "{}")), "byte 0",
                "9223372036854775808, but 2 bytes");
  expect_broken(parse_bytes(with_length(UINT64_MAX, "{}")), "byte 0", "18446744073709551615");
  expect_broken(parse_bytes(with_length(UINT64_MAX - 7, "{}")), "byte 0", "18446744073709551608");
  // A file that is long enough, of which only the front is in memory.
  expect_broken(parse_safetensors(with_length((100U << 20U) + 1, "{}"), std::size_t{1} << 40U,
                                  "m.safetensors"),
                "byte 0", "the limit is 104857600", ErrorCode::kInputLimit);
}

TEST(Safetensors, HeaderThatIsNoObject_IsRefused) {
  expect_broken(parse("[1]", 0), "byte 8", "must start with '{'");
  expect_broken(parse(" {}", 0), "byte 8", "must start with '{'");
  expect_broken(parse("\xef\xbb\xbf{}", 0), "byte 8", "must start with '{'");
  expect_broken(parse("{\"a\":}", 0), "1:6", "in the header: unexpected '}'");
  expect_broken(parse("{} x", 0), "1:4", "trailing content");
  expect_broken(parse("{\"w\": 1}", 0), "w", "must be an object, found integer");
  expect_broken(parse("{\"\xff\": 1}", 0), "1:3", "invalid UTF-8", ErrorCode::kInputEncoding);
}

TEST(Safetensors, BadOffsets_NameTheTensor) {
  expect_broken(parse(one("\"U8\"", "[4]", "[4,0]"), 4), "w", "must be a range");
  expect_broken(parse(one("\"U8\"", "[4]", "[-4,0]"), 4), "w", "must be a range");
  expect_broken(parse(one("\"U8\"", "[4]", "[1,5]"), 4), "w", "within the 4 bytes of data");
  expect_broken(parse(one("\"U8\"", "[4]", "[0,4,8]"), 4), "w", "must be two integers");
  expect_broken(parse(one("\"U8\"", "[4]", "[0.0,4.0]"), 4), "w", "must be two integers");
  expect_broken(parse(one("\"U8\"", "[4]", "[0,18446744073709551615]"), 4), "w", "two integers");
  expect_broken(parse(one("\"U8\"", "[4]", "4"), 4), "w", "must be two integers");
  expect_broken(parse(R"({"w":{"dtype":"U8","shape":[4]}})", 4), "w", "must be two integers");
}

TEST(Safetensors, RangeUnlikeShape_IsRefused) {
  expect_broken(parse(one("\"F32\"", "[2]", "[0,4]"), 4), "w",
                "data_offsets span 4 bytes, but shape and dtype F32 need 8");
  expect_broken(parse(one("\"F32\"", "[0]", "[0,4]"), 4), "w", "need 0");
}

TEST(Safetensors, BadShape_IsRefused) {
  for (const char* shape : {"[4611686018427387904,4]", "[4294967296,4294967296]",
                            "[9223372036854775807]", "[2305843009213693952]"}) {
    expect_broken(parse(one("\"F32\"", shape, "[0,0]"), 0), "w", "does not fit 64 bits");
  }
  for (const char* shape :
       {"[-1]", "[1.0]", "[true]", "[\"1\"]", "[null]", "[18446744073709551615]"}) {
    expect_broken(parse(one("\"F32\"", shape, "[0,0]"), 0), "w", "an integer of 0 or more");
  }
  expect_broken(parse(one("\"F32\"", "1", "[0,0]"), 0), "w", "shape is missing or no list");
  EXPECT_TRUE(parse(one("\"F32\"", "[0]", "[0,0]"), 0));
  EXPECT_TRUE(parse(one("\"F32\"", "[9223372036854775807,9223372036854775807,0]", "[0,0]"), 0));
}

TEST(Safetensors, Overlap_IsRefused) {
  const auto two = [](std::string_view a, std::string_view b) {
    return std::string(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)") + std::string(a) +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(b) + "}}";
  };
  expect_broken(parse(two("[0,4]", "[2,6]"), 6), "b", "overlaps tensor a, which ends at byte 4");
  expect_broken(parse(two("[2,6]", "[0,4]"), 6), "a", "overlaps tensor b");
  EXPECT_TRUE(parse(two("[4,8]", "[0,4]"), 8));
  // The same bytes twice: which of the two is named does not matter.
  EXPECT_FALSE(parse(two("[0,4]", "[0,4]"), 4));
}

TEST(Safetensors, UnusedBytes_AreAWarningAndForTheStrictAnError) {
  const std::string gap = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                          R"("b":{"dtype":"U8","shape":[4],"data_offsets":[6,10]}})";
  const auto header = parse(gap, 13);
  ASSERT_TRUE(header);
  ASSERT_EQ(header->warnings.size(), 2U);
  EXPECT_EQ(header->warnings[0].code, "SAFETENSORS-GAP");
  EXPECT_EQ(header->warnings[0].where, "m.safetensors:b");
  EXPECT_EQ(header->warnings[1].code, "SAFETENSORS-TAIL");
  EXPECT_EQ(header->warnings[1].where, "m.safetensors:byte " + std::to_string(8 + gap.size() + 10));
  EXPECT_EQ(header->warnings[1].message, "3 bytes after the last tensor");
  expect_broken(parse(gap, 10, {.strict = true}), "b", "belong to no tensor");
  expect_broken(parse("{}", 3, {.strict = true}), "byte 10", "3 bytes after the last tensor");
}

TEST(Safetensors, NameTwice_IsRefused) {
  expect_broken(parse(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                      R"("\u0077":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                      2),
                "/w", "is repeated");
  expect_broken(parse(R"({"w":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1),
                "/w/dtype", "is repeated");
}

TEST(Safetensors, Dtypes_AreKnownOrRefused) {
  expect_broken(parse(one("\"F12\"", "[2]", "[0,3]"), 3), "w", "unknown dtype");
  expect_broken(parse(one("8", "[2]", "[0,3]"), 3), "w", "dtype is missing or no string");
  EXPECT_EQ(parse(one("\"F4\"", "[3,2]", "[0,3]"), 3)->tensors[0].bytes, 3);
  EXPECT_EQ(parse(one("\"F8_E4M3\"", "[3]", "[0,3]"), 3)->tensors[0].bytes, 3);
  expect_broken(parse(one("\"F4\"", "[3]", "[0,2]"), 2), "w", "3 values of 4 bits do not fill");
}

TEST(Safetensors, Metadata_HoldsStringsOnly) {
  expect_broken(parse(R"({"__metadata__":{"a":1}})", 0), "__metadata__/a", "must be a string");
  expect_broken(parse(R"({"__metadata__":[]})", 0), "__metadata__", "must be an object");
  EXPECT_TRUE(parse(R"({"__metadata__":null})", 0));
  EXPECT_TRUE(parse(R"({"__metadata__":{"a":"1","a":"2"}})", 0));
  EXPECT_TRUE(parse(R"({"__metadata__":{"a":")" + std::string(10U << 20U, 'x') + "\"}}", 0));
}

TEST(Safetensors, TextFiles_AreNamed) {
  expect_broken(parse_bytes("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
                "", "Git LFS pointer", ErrorCode::kInputKind);
  expect_broken(parse_bytes("<!DOCTYPE html><html>"), "", "HTML page", ErrorCode::kInputKind);
}

TEST(Safetensors, CutAtEveryByte_IsRefused) {
  const std::string bytes = safetensors_bytes(one("\"U8\"", "[4]", "[0,4]"), 4);
  ASSERT_TRUE(parse_bytes(bytes));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(parse_bytes(bytes.substr(0, length))) << length;
  }
}

TEST(ReadSafetensors, LongHeader_IsReadInTwoSteps) {
  std::string pattern = std::filesystem::temp_directory_path() / "kernelpath-st-XXXXXX";
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  std::string header = "{";
  for (int i = 0; i < 5000; ++i) {
    const std::string at = std::to_string(i);
    header += "\"model.layers." + at + "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[" +
              at + "," + std::to_string(i + 1) + "]},";
  }
  header.back() = '}';
  const std::string path = folder / "m.safetensors";
  std::ofstream(path, std::ios::binary) << safetensors_bytes(header, 5000);
  const auto result = read_safetensors(path);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->tensors.size(), 5000U);
  EXPECT_EQ(read_safetensors(path).error().code, ErrorCode::kInputMissing);
}

}  // namespace
}  // namespace kernelpath::checkpoint
