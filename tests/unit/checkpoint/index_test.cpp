// Section E of the bad inputs: what an index may say.
#include "checkpoint/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<Index> parse(std::string_view text) { return parse_index(std::string(text), "index.json"); }

std::string mapping(std::string_view shard) {
  return R"({"weight_map":{"a.b":")" + std::string(shard) + "\"}}";
}

TEST(ParseIndex, OrdinaryIndex_ListsShardsOnce) {
  const auto index =
      parse(R"({"metadata":{"total_size":123},"weight_map":{"a":"s1","b":"s2","c":"s1"}})");
  ASSERT_TRUE(index) << index.error().text();
  EXPECT_THAT(index->shards, ElementsAre("s1", "s2"));
  EXPECT_EQ(index->weight_map[2], (std::pair<std::string, std::size_t>("c", 0)));
  EXPECT_EQ(index->total_size, 123);
  EXPECT_THAT(index->warnings, IsEmpty());
}

TEST(ParseIndex, ShardOutsideTheFolder_IsRefused) {
  for (const char* shard : {"../../etc/passwd", "..", "a/../../b", "/etc/passwd", "C:\\\\x", "c:x",
                            "a\\\\..\\\\b", "x\\u0000y", "", "a/.."}) {
    const auto index = parse(mapping(shard));
    ASSERT_FALSE(index) << shard;
    EXPECT_EQ(index.error().code, ErrorCode::kCheckpoint);
    EXPECT_EQ(index.error().where, "/weight_map/a.b");
    EXPECT_EQ(index.error().message, "shard outside the folder");
  }
  EXPECT_TRUE(parse(mapping("sub/model..1.safetensors")));
}

TEST(ParseIndex, ShardThatIsNoName_IsRefused) {
  EXPECT_EQ(parse(R"({"weight_map":{"a":1}})").error().message, "must be the name of a shard");
  EXPECT_EQ(parse(R"({"weight_map":{"a":null}})").error().where, "/weight_map/a");
  EXPECT_FALSE(parse(mapping("\\ud800")));
}

TEST(ParseIndex, WithoutWeightMap_IsRefused) {
  EXPECT_EQ(parse("{}").error().where, "/weight_map");
  EXPECT_EQ(parse(R"({"weight_map":[]})").error().where, "/weight_map");
  EXPECT_EQ(parse("[]").error().code, ErrorCode::kInputJson);
}

TEST(ParseIndex, UnusableTotalSize_IsAWarning) {
  for (const char* size : {"-1", "\"12\"", "1.5", "null", "true", "1e30", "99999999999999999999"}) {
    const auto index =
        parse(std::string(R"({"metadata":{"total_size":)") + size + R"(},"weight_map":{}})");
    ASSERT_TRUE(index);
    EXPECT_EQ(index->total_size, std::nullopt) << size;
    ASSERT_EQ(index->warnings.size(), 1U) << size;
    EXPECT_EQ(index->warnings[0].code, "CHECKPOINT-TOTAL-SIZE");
  }
  EXPECT_EQ(parse(R"({"metadata":{"total_size":12.0},"weight_map":{}})")->total_size, 12);
  EXPECT_THAT(parse(R"({"metadata":null,"weight_map":{}})")->warnings, IsEmpty());
}

TEST(ParseIndex, TensorTwice_IsAWarning) {
  const auto index = parse(R"({"weight_map":{"a":"s1","a":"s2"}})");
  ASSERT_TRUE(index);
  EXPECT_THAT(index->shards, ElementsAre("s2"));
  ASSERT_EQ(index->warnings.size(), 1U);
  EXPECT_THAT(index->warnings[0].message, HasSubstr("\"s1\" first, then \"s2\""));
  EXPECT_EQ(index->warnings[0].where, "model.safetensors.index.json:/weight_map/a");
}

}  // namespace
}  // namespace kernelpath::checkpoint
