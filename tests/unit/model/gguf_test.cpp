// A checkpoint written as a GGUF file gives the logits that its safetensors files give.
#include "checkpoint_runner.h"
#include "model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <stdlib.h>
#include <string>

namespace kernelpath::model {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kSource = std::string(KERNELPATH_TEST_DATA) + "/checkpoints/llama-fp16";

class GgufModel : public ::testing::Test {
 protected:
  GgufModel() {
    std::string pattern = fs::temp_directory_path() / "kernelpath-gguf-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~GgufModel() override { fs::remove_all(root_); }

  // Writes the source's tensors under their GGUF names, with its sizes.
  void write(const std::string& architecture) {
    const testing::ModelShape shape{
        .family = architecture, .hidden = 64, .intermediate = 128, .head_dim = 16, .context = 2048};
    testing::write_gguf(root_ / "m.gguf", shape, testing::tensors_of(kSource), "f16");
  }

  fs::path root_;
};

TEST_F(GgufModel, LlamaWithNeighbourPairs_GivesTheSameLogits) {
  write("llama");
  auto gguf = golden::CheckpointRunner::open(root_ / "m.gguf", {});
  ASSERT_TRUE(gguf) << gguf.error().text();
  auto plain = golden::CheckpointRunner::open(kSource, {});
  ASSERT_TRUE(plain) << plain.error().text();
  const std::vector<std::int32_t> prompt = {5, 17, 300, 42, 8, 8, 120};
  const auto a = (*gguf)->prefill(prompt);
  const auto b = (*plain)->prefill(prompt);
  ASSERT_TRUE(a && b);
  for (std::size_t i = 0; i < a->size(); ++i) EXPECT_NEAR((*a)[i], (*b)[i], 1e-4) << i;
}

TEST_F(GgufModel, ArchitectureWithoutClass_IsRefusedWithThoseThatHaveOne) {
  write("gpt2");
  const auto runner = golden::CheckpointRunner::open(root_ / "m.gguf", {});
  ASSERT_FALSE(runner);
  EXPECT_EQ(runner.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(runner.error().message, HasSubstr("llama, qwen2, qwen3"));
}

}  // namespace
}  // namespace kernelpath::model
