// What building a model refuses, warns about and counts, on copies of a tiny checkpoint.
#include "checkpoint/tensor_files.h"
#include "checkpoint_runner.h"
#include "config/load.h"
#include "memory/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdlib.h>

namespace kernelpath::model {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kCheckpoints = std::string(KERNELPATH_TEST_DATA) + "/checkpoints/";

class BuildTest : public testing::Test {
 protected:
  BuildTest() : executor_(1) {
    std::string pattern = fs::temp_directory_path() / "kernelpath-model-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    fs::copy(kCheckpoints + "llama-yarn", root_, fs::copy_options::recursive);
  }
  ~BuildTest() override { fs::remove_all(root_); }

  // Replaces `from` by a text of the same length in the copy's weights.
  void patch(const std::string& from, const std::string& to) const {
    const fs::path path = root_ / "model.safetensors";
    std::ifstream in(path, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(in), {});
    const std::size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    ASSERT_EQ(from.size(), to.size());
    bytes.replace(at, from.size(), to);
    std::ofstream(path, std::ios::binary) << bytes;
  }

  Result<std::unique_ptr<Model>> build(const BuildOptions& options = {}) {
    auto config = config::load_model(root_);
    if (!config) return fail(config.error());
    return model::build(*config, root_, executor_, options);
  }

  fs::path root_;
  kernels::cpu::CpuExecutor executor_;
};

TEST_F(BuildTest, MissingUnknownAndMisshapedTensors_AreNamedTogether) {
  patch("model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.xx_proj.weight");
  patch("mlp.gate_proj.weight\":{\"dtype\":\"BF16\",\"shape\":[128,64]",
        "mlp.gate_proj.weight\":{\"dtype\":\"BF16\",\"shape\":[64,128]");
  const auto model = build();
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kCheckpoint);
  const std::string& message = model.error().message;
  EXPECT_THAT(message, HasSubstr("1 missing: model.layers.0.mlp.up_proj.weight [128, 64]"));
  EXPECT_THAT(message, HasSubstr("1 unknown to the model: model.layers.0.mlp.xx_proj.weight"));
  EXPECT_THAT(message, HasSubstr("mlp.gate_proj.weight is [64, 128], not [128, 64]"));
}

TEST_F(BuildTest, WeightBytes_AreTheSumOfTheTensorsAndTheLedgersOwn) {
  const auto model = build();
  ASSERT_TRUE(model) << model.error().text();
  const auto files = checkpoint::TensorFiles::open(root_);
  ASSERT_TRUE(files);
  std::int64_t sum = 0;
  for (const checkpoint::StoredTensor& tensor : files->tensors()) sum += tensor.bytes;
  EXPECT_EQ((*model)->weight_bytes().stored, sum);
  EXPECT_EQ((*model)->weight_bytes().tensors, static_cast<std::int64_t>(files->tensors().size()));
  EXPECT_GE((*model)->weight_bytes().resident, sum);
  const auto planned = build({.shape_only = true});
  ASSERT_TRUE(planned);
  EXPECT_EQ((*planned)->weight_bytes().resident, (*model)->weight_bytes().resident);
  const auto config = config::load_model(root_);
  ASSERT_TRUE(config);
  const auto ledger = memory::count_weights(*config);
  ASSERT_TRUE(ledger);
  EXPECT_EQ(ledger->bytes, sum);
}

TEST_F(BuildTest, ShapeOnly_KnowsEverythingAndRunsNothing) {
  fs::remove(root_ / "model.safetensors");
  const auto model = build({.shape_only = true});
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_FALSE((*model)->cache_rows().empty());
  EXPECT_EQ((*model)->tensors().front().name, "model.embed_tokens.weight");
  EXPECT_EQ((*model)->weight_bytes().resident, 0);
  const auto forward = (*model)->forward({}, nullptr);
  ASSERT_FALSE(forward);
  EXPECT_EQ(forward.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(forward.error().message, HasSubstr("embed of model.embed_tokens.weight"));
}

TEST_F(BuildTest, NoWeights_IsMissingInput) {
  fs::remove(root_ / "model.safetensors");
  const auto model = build();
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kInputMissing);
}

TEST_F(BuildTest, NanInWeights_IsWarnedByName) {
  const auto files = checkpoint::TensorFiles::open(root_);
  ASSERT_TRUE(files);
  const checkpoint::StoredTensor& tensor = *files->find("model.layers.1.mlp.up_proj.weight");
  std::fstream file(root_ / "model.safetensors", std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(tensor.offset + 10);
  file.write("\xc0\x7f", 2);
  file.close();
  const auto model = build();
  ASSERT_TRUE(model) << model.error().text();
  ASSERT_EQ((*model)->warnings().size(), 1);
  EXPECT_EQ((*model)->warnings()[0].code, "CHECKPOINT-NAN");
  EXPECT_EQ((*model)->warnings()[0].where, tensor.name);
}

TEST_F(BuildTest, TokenOutsideTheVocabulary_IsRefusedBeforeAnythingRuns) {
  auto runner = golden::CheckpointRunner::open(root_, {});
  ASSERT_TRUE(runner);
  const std::vector<std::int32_t> prompt = {1, 1 << 20};
  const auto logits = (*runner)->prefill(prompt);
  ASSERT_FALSE(logits);
  EXPECT_THAT(logits.error().message, HasSubstr("token 1048576 is outside the vocabulary"));
}

}  // namespace
}  // namespace kernelpath::model
