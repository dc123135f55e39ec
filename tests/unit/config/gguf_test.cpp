// A GGUF file as MODEL: rows G11 and G13 of the bad inputs, and what reports show of it.
#include "checkpoint/gguf.h"

#include "../checkpoint/build_gguf.h"
#include "testing.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace kernelpath::config {
namespace {

namespace fs = std::filesystem;
using checkpoint::GgufBuilder;
using checkpoint::GgufType;
using testing::HasSubstr;

class GgufModel : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "kernelpath-gguf-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  Result<ModelConfig> load(const GgufBuilder& file, const std::string& name = "m.gguf") {
    std::ofstream(root_ / name, std::ios::binary) << file.bytes();
    return load_model((root_ / name).string());
  }

  void expect_error(const GgufBuilder& file, const std::string& message) {
    const auto model = load(file);
    ASSERT_FALSE(model.has_value()) << message;
    EXPECT_EQ(model.error().code, ErrorCode::kCheckpoint);
    EXPECT_THAT(model.error().text(), HasSubstr(message));
  }

  fs::path root_;
};

TEST_F(GgufModel, Metadata_GivesTheSizesOfReports) {
  GgufBuilder file;
  file.text("general.architecture", "llama")
      .u32("llama.block_count", 32)
      .u32("llama.embedding_length", 4096)
      .array("llama.attention.head_count_kv", GgufType::kInt32, 1,
             checkpoint::little(std::int32_t{8}))
      .tensor("w", {4}, 0, 0);
  file.data_bytes = 32;
  // The name does not matter: a GGUF file called config.json is one.
  for (const char* name : {"m.gguf", "config.json"}) {
    const auto model = load(file, name);
    ASSERT_TRUE(model.has_value()) << model.error().text();
    ASSERT_NE(model->gguf, nullptr);
    EXPECT_EQ(model->name, name);
    EXPECT_EQ(model->model_type.value_or(""), "llama");
    EXPECT_EQ(model->num_hidden_layers.value_or(0), 32);
    EXPECT_EQ(model->num_key_value_heads.value_or(0), 8);
    EXPECT_EQ(model->hidden_size.origin.where, "llama.embedding_length");
    EXPECT_EQ(model->weights->total_bytes.value_or(0), 16);
    EXPECT_TRUE(model->layers.empty());
  }
}

TEST_F(GgufModel, Architecture_IsAStringThatSaysSomething) {
  expect_error(GgufBuilder().u32("a", 1), "general.architecture: the key is missing");
  expect_error(GgufBuilder().text("general.architecture", ""), "general.architecture: is empty");
  expect_error(GgufBuilder().u32("general.architecture", 1),
               "general.architecture: must be of type str (u32)");
}

TEST_F(GgufModel, MoreLayersThanAnyModelHas_AreRefused) {
  GgufBuilder file;
  file.text("general.architecture", "llama").u32("llama.block_count", 1000000000);
  expect_error(file, "llama.block_count: a model has at most 512 layers (1000000000)");
}

TEST_F(GgufModel, JsonCalledGguf_IsReadAsJson) {
  std::ofstream(root_ / "m.gguf") << llama();
  const auto model = load_model((root_ / "m.gguf").string());
  ASSERT_TRUE(model.has_value()) << model.error().text();
  EXPECT_EQ(model->gguf, nullptr);
}

}  // namespace
}  // namespace kernelpath::config
