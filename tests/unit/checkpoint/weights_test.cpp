// Section E of the bad inputs: what a folder of weights may hold.
#include "checkpoint/weights.h"

#include "build_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdlib.h>

namespace kernelpath::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class WeightsTest : public testing::Test {
 protected:
  WeightsTest() {
    std::string pattern = fs::temp_directory_path() / "kernelpath-weights-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    fs::create_directory(root_ / "model");
  }
  ~WeightsTest() override { fs::remove_all(root_); }

  [[nodiscard]] fs::path path(const std::string& name) const { return root_ / "model" / name; }

  void write(const std::string& name, const std::string& bytes) const {
    fs::create_directories(path(name).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
  }

  // A shard with these tensors of 4 bytes each.
  void shard(const std::string& name, const std::vector<std::string>& tensors) const {
    std::string header = "{";
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      header += (i == 0 ? "" : ",") + ("\"" + tensors[i]) +
                R"(":{"dtype":"F32","shape":[1],"data_offsets":[)" + std::to_string(4 * i) + "," +
                std::to_string(4 * i + 4) + "]}";
    }
    write(name, safetensors_bytes(header + "}", 4 * tensors.size()));
  }

  void index(const std::string& entries, const std::string& total = "12") const {
    write("model.safetensors.index.json",
          R"({"metadata":{"total_size":)" + total + R"(},"weight_map":{)" + entries + "}}");
  }

  [[nodiscard]] Weights read(const ReadOptions& options = {}) const {
    auto weights = read_weights(root_ / "model", options);
    if (weights && *weights) return std::move(**weights);
    ADD_FAILURE() << (weights ? "no weights" : weights.error().text());
    return {};
  }

  static auto has_warning(const std::string& code) {
    return Contains(Field(&json::Warning::code, code));
  }

  fs::path root_;
};

TEST_F(WeightsTest, FolderWithoutWeights_GivesNothing) {
  write("config.json", "{}");
  const auto weights = read_weights(root_ / "model");
  ASSERT_TRUE(weights);
  EXPECT_FALSE(weights->has_value());
}

TEST_F(WeightsTest, SingleFile_IsRead) {
  shard("model.safetensors", {"b", "a"});
  const Weights weights = read();
  EXPECT_EQ(weights.source, "model.safetensors");
  EXPECT_EQ(weights.total_bytes, 8);
  EXPECT_EQ(weights.tensor_count, 2);
  EXPECT_TRUE(weights.from_headers);
  EXPECT_EQ(weights.tensors[0].name, "a");
  EXPECT_THAT(weights.warnings, IsEmpty());
}

TEST_F(WeightsTest, Shards_AddUp) {
  index(R"("a":"s1.safetensors","b":"s2.safetensors","c":"s1.safetensors")");
  shard("s1.safetensors", {"a", "c"});
  shard("s2.safetensors", {"b"});
  const Weights weights = read();
  EXPECT_EQ(weights.total_bytes, 12);
  EXPECT_EQ(weights.tensor_count, 3);
  EXPECT_TRUE(weights.from_headers);
  EXPECT_THAT(weights.shards, ElementsAre("s1.safetensors", "s2.safetensors"));
  EXPECT_EQ(weights.tensors[1].name, "b");
  EXPECT_EQ(weights.tensors[1].shard, 1U);
  EXPECT_THAT(weights.warnings, IsEmpty());
}

TEST_F(WeightsTest, MissingShard_LeavesTheIndexsClaim) {
  index(R"("a":"s1.safetensors","b":"s2.safetensors")", "99");
  shard("s1.safetensors", {"a"});
  const Weights weights = read();
  EXPECT_THAT(weights.missing_shards, ElementsAre("s2.safetensors"));
  EXPECT_FALSE(weights.from_headers);
  EXPECT_EQ(weights.total_bytes, 99);
  EXPECT_EQ(weights.tensor_count, 2);
  EXPECT_EQ(weights.tensors.size(), 1U);
  ASSERT_THAT(weights.warnings, has_warning("CHECKPOINT-SHARD-MISSING"));
  EXPECT_THAT(weights.warnings[0].message, HasSubstr("1 of 2 shards are missing"));
  EXPECT_THAT(weights.warnings, Not(has_warning("CHECKPOINT-NOT-IN-SHARD")));
}

TEST_F(WeightsTest, IndexAlone_GivesItsClaim) {
  index(R"("a":"s1.safetensors")", "99");
  EXPECT_EQ(read().total_bytes, 99);
  index(R"("a":"s1.safetensors")", "-5");
  EXPECT_EQ(read().total_bytes, std::nullopt);
}

TEST_F(WeightsTest, WrongTotalSize_IsRecomputed) {
  index(R"("a":"s1.safetensors")", "5");
  shard("s1.safetensors", {"a"});
  const Weights weights = read();
  EXPECT_EQ(weights.total_bytes, 4);
  ASSERT_THAT(weights.warnings, has_warning("CHECKPOINT-TOTAL-SIZE"));
  EXPECT_EQ(weights.warnings[0].message, "says 5, the tensors add up to 4; the sum counts");
}

TEST_F(WeightsTest, TensorInTwoShards_CountsWhereTheIndexSays) {
  index(R"("a":"s2.safetensors","b":"s1.safetensors")", "8");
  shard("s1.safetensors", {"a", "b"});
  shard("s2.safetensors", {"a"});
  const Weights weights = read();
  EXPECT_EQ(weights.tensors[0].shard, 0U);  // s2 is mentioned first
  EXPECT_EQ(weights.shards[weights.tensors[0].shard], "s2.safetensors");
  EXPECT_EQ(weights.total_bytes, 8);
  EXPECT_THAT(weights.warnings,
              ElementsAre(Field(&json::Warning::code, "CHECKPOINT-TENSOR-TWICE")));
}

TEST_F(WeightsTest, IndexAndHeadersThatDiffer_AreWarnedOf) {
  index(
      R"("a":"s1.safetensors","gone":"s1.safetensors","moved":"s1.safetensors","z":"s2.safetensors")",
      "16");
  shard("s1.safetensors", {"a", "extra"});
  shard("s2.safetensors", {"moved", "z"});
  const Weights weights = read();
  EXPECT_EQ(weights.tensor_count, 5);
  EXPECT_EQ(weights.tensors.size(), 4U);
  ASSERT_THAT(weights.warnings, has_warning("CHECKPOINT-NOT-IN-INDEX"));
  ASSERT_THAT(weights.warnings, has_warning("CHECKPOINT-NOT-IN-SHARD"));
  EXPECT_THAT(weights.warnings[0].message, HasSubstr("tensor extra: in a shard"));
  EXPECT_THAT(weights.warnings[1].message, HasSubstr("tensor gone and 1 more: not in the shard"));
}

TEST_F(WeightsTest, IndexBesideASingleFile_Wins) {
  index(R"("a":"s1.safetensors")", "4");
  shard("s1.safetensors", {"a"});
  shard("model.safetensors", {"a", "b"});
  const Weights weights = read();
  EXPECT_EQ(weights.total_bytes, 4);
  EXPECT_THAT(weights.warnings, ElementsAre(Field(&json::Warning::code, "CHECKPOINT-TWO-SOURCES")));
}

TEST_F(WeightsTest, LinkOutOfTheFolder_IsNotFollowed) {
  shard("../outside.safetensors", {"a"});
  fs::create_symlink("../outside.safetensors", path("s1.safetensors"));
  index(R"("a":"s1.safetensors")", "4");
  const Weights weights = read();
  EXPECT_THAT(weights.missing_shards, ElementsAre("s1.safetensors"));
  EXPECT_THAT(weights.tensors, IsEmpty());
  ASSERT_THAT(weights.warnings, has_warning("CHECKPOINT-LINK-OUTSIDE"));
  EXPECT_THAT(weights.warnings[0].message, HasSubstr("outside.safetensors"));

  const auto strict = read_weights(root_ / "model", {.strict = true});
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().code, ErrorCode::kCheckpoint);
}

TEST_F(WeightsTest, OtherNames_AreReadWithoutConsolidatedCopies) {
  shard("model-00001-of-00002.safetensors", {"a"});
  shard("model-00002-of-00002.safetensors", {"b"});
  shard("consolidated.safetensors", {"a", "b"});
  const Weights weights = read();
  EXPECT_EQ(weights.source, "*.safetensors");
  EXPECT_EQ(weights.total_bytes, 8);
  fs::remove(path("model-00001-of-00002.safetensors"));
  fs::remove(path("model-00002-of-00002.safetensors"));
  EXPECT_THAT(read().shards, ElementsAre("consolidated.safetensors"));
}

TEST_F(WeightsTest, BrokenShard_IsAnError) {
  index(R"("a":"s1.safetensors")");
  write("s1.safetensors", "1234");
  const auto weights = read_weights(root_ / "model");
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().code, ErrorCode::kCheckpoint);
  EXPECT_EQ(weights.error().file, path("s1.safetensors"));
  fs::remove(path("s1.safetensors"));
  fs::create_directory(path("s1.safetensors"));
  EXPECT_EQ(read_weights(root_ / "model").error().code, ErrorCode::kInputKind);
}

}  // namespace
}  // namespace kernelpath::checkpoint
