#include "checkpoint/tensor_files.h"

#include "build_file.h"
#include "build_gguf.h"
#include "checkpoint/nan_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <stdlib.h>

namespace kernelpath::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class TensorFilesTest : public testing::Test {
 protected:
  TensorFilesTest() {
    std::string pattern = fs::temp_directory_path() / "kernelpath-tensors-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~TensorFilesTest() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(root_ / name, std::ios::binary) << bytes;
  }

  // A file with one tensor of text as bytes.
  void shard(const std::string& name, const std::string& tensor, const std::string& bytes) const {
    const std::string count = std::to_string(bytes.size());
    const std::string header = "{\"" + tensor + R"(":{"dtype":"U8","shape":[)" + count +
                               R"(],"data_offsets":[0,)" + count + "]}}";
    write(name, safetensors_bytes(header, 0) + bytes);
  }

  void index(const std::string& entries) const {
    write("model.safetensors.index.json", R"({"weight_map":{)" + entries + "}}");
  }

  [[nodiscard]] static std::string text_of(const TensorFiles& files, const std::string& name) {
    const StoredTensor* const tensor = files.find(name);
    if (tensor == nullptr) return "no " + name;
    std::string out(static_cast<std::size_t>(tensor->bytes), '?');
    const auto read = files.read(*tensor, 0, std::as_writable_bytes(std::span(out)));
    return read ? out : read.error().text();
  }

  fs::path root_;
};

TEST_F(TensorFilesTest, SeveralShards_GiveEachTensorItsOwnBytes) {
  shard("a.safetensors", "second", "bytes of a");
  shard("b.safetensors", "first", "those of b");
  index(R"("second":"a.safetensors","first":"b.safetensors")");
  const auto files = TensorFiles::open(root_);
  ASSERT_TRUE(files) << files.error().text();
  EXPECT_EQ(text_of(*files, "first"), "those of b");
  EXPECT_EQ(text_of(*files, "second"), "bytes of a");
  EXPECT_EQ(files->find("third"), nullptr);
  EXPECT_EQ(files->tensors()[0].name, "first");
}

TEST_F(TensorFilesTest, PartOfATensor_BeginsWhereAsked) {
  shard("model.safetensors", "t", "0123456789");
  const auto files = TensorFiles::open(root_);
  ASSERT_TRUE(files);
  std::string three(3, '?');
  ASSERT_TRUE(files->read(files->tensors()[0], 4, std::as_writable_bytes(std::span(three))));
  EXPECT_EQ(three, "456");
}

TEST_F(TensorFilesTest, MissingShards_AreNamedAllAtOnce) {
  shard("a.safetensors", "x", "1");
  index(R"("x":"a.safetensors","y":"b.safetensors","z":"c.safetensors")");
  const auto files = TensorFiles::open(root_);
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().code, ErrorCode::kCheckpoint);
  EXPECT_THAT(files.error().message, HasSubstr("2 of 3 shards are missing: b.safetensors, c.safe"));
}

TEST_F(TensorFilesTest, IndexThatPointsOutside_IsRefused) {
  index(R"("x":"../x.safetensors")");
  const auto files = TensorFiles::open(root_);
  ASSERT_FALSE(files);
  EXPECT_THAT(files.error().message, HasSubstr("outside the folder"));
}

TEST_F(TensorFilesTest, FolderWithoutWeights_SaysSo) {
  const auto files = TensorFiles::open(root_);
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().code, ErrorCode::kInputMissing);
}

TEST_F(TensorFilesTest, FileCutOffAfterOpening_IsAnErrorWithTheTensor) {
  shard("model.safetensors", "t", "0123456789");
  const auto files = TensorFiles::open(root_);
  ASSERT_TRUE(files);
  fs::resize_file(root_ / "model.safetensors", fs::file_size(root_ / "model.safetensors") - 4);
  std::string bytes(10, '?');
  const auto read = files->read(files->tensors()[0], 0, std::as_writable_bytes(std::span(bytes)));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kCheckpoint);
  EXPECT_EQ(read.error().where, "t");
}

TEST_F(TensorFilesTest, Gguf_ShapesAreSlowestFirst) {
  GgufBuilder builder;
  builder.text("general.architecture", "llama").tensor("t", {3, 2}, 0, 0);
  builder.data_bytes = 32;
  std::string bytes = builder.bytes();
  const std::string data = little(1.5F);
  bytes.replace(bytes.size() - 32, data.size(), data);
  write("m.gguf", bytes);
  const auto files = TensorFiles::open(root_ / "m.gguf");
  ASSERT_TRUE(files) << files.error().text();
  const StoredTensor* const tensor = files->find("t");
  ASSERT_NE(tensor, nullptr);
  EXPECT_THAT(tensor->shape, ElementsAre(2, 3));
  EXPECT_EQ(tensor->type, "f32");
  float first = 0.0F;
  ASSERT_TRUE(files->read(*tensor, 0, std::as_writable_bytes(std::span(&first, 1))));
  EXPECT_EQ(first, 1.5F);
}

TEST(HoldsNan, InfinitiesAndLargestValues_AreNone) {
  const auto holds = [](std::string_view type, std::vector<unsigned char> bytes) {
    return holds_nan(type, std::as_bytes(std::span(bytes)));
  };
  EXPECT_TRUE(holds("BF16", {0x00, 0x3F, 0x81, 0x7F}));
  EXPECT_FALSE(holds("BF16", {0x00, 0x3F, 0x80, 0x7F}));
  EXPECT_TRUE(holds("F16", {0x01, 0xFC}));
  EXPECT_FALSE(holds("F16", {0x00, 0xFC}));
  EXPECT_TRUE(holds("F8_E4M3", {0x7E, 0xFF}));
  EXPECT_FALSE(holds("F8_E4M3", {0x7E, 0xFE}));
  EXPECT_TRUE(holds("F8_E5M2", {0x7D}));
  EXPECT_FALSE(holds("F8_E5M2", {0x7C}));
  EXPECT_FALSE(holds("U8", {0xFF}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(holds_nan("F32", std::as_bytes(std::span(&nan, 1))));
}

TEST(HoldsNan, ScaleOfAnyBlock_IsFound_AndCodesAreNone) {
  struct Row {
    std::string_view type;
    std::size_t block_bytes;
    std::vector<std::size_t> scales;
  };
  for (const Row& row :
       {Row{"q8_0", 34, {0}}, Row{"q4_0", 18, {0}}, Row{"q5_0", 22, {0}}, Row{"q4_K", 144, {0, 2}},
        Row{"q5_K", 176, {0, 2}}, Row{"q6_K", 210, {208}}}) {
    EXPECT_EQ(nan_scan_unit(row.type), static_cast<std::int64_t>(row.block_bytes));
    std::vector<unsigned char> blocks(3 * row.block_bytes, 0xFF);
    const auto set = [&](std::size_t at, unsigned char high) {
      blocks[at] = 1;
      blocks[at + 1] = high;
    };
    for (std::size_t block = 0; block < 3; ++block) {
      for (const std::size_t scale : row.scales) set(block * row.block_bytes + scale, 0x3C);
    }
    EXPECT_FALSE(holds_nan(row.type, std::as_bytes(std::span(blocks)))) << row.type;
    for (const std::size_t scale : row.scales) {
      set(2 * row.block_bytes + scale, 0x7E);
      EXPECT_TRUE(holds_nan(row.type, std::as_bytes(std::span(blocks)))) << row.type;
      set(2 * row.block_bytes + scale, 0x3C);
    }
  }
}

TEST(HoldsNan, BehindManyValues_IsFound) {
  std::vector<std::uint16_t> values(10'001);
  EXPECT_FALSE(holds_nan("BF16", std::as_bytes(std::span(values))));
  values.back() = 0x7FC0;
  EXPECT_TRUE(holds_nan("BF16", std::as_bytes(std::span(values))));
}

}  // namespace
}  // namespace kernelpath::checkpoint
