#include "model/shard.h"

#include "checkpoint/tensor_files.h"
#include "config/load.h"
#include "kernels/cpu/executor.h"
#include "model/model.h"
#include "model/split.h"
#include "model/stored_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace kernelpath::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Split, KeepsBlocks_WhereEveryRunIsOfWholeBlocks) {
  const Split even{.dim = 0, .whole = 256, .runs = {{128, 128}}};
  EXPECT_TRUE(even.keeps_blocks(128));
  EXPECT_TRUE(even.keeps_blocks(64));
  const Split late{.dim = 0, .whole = 256, .runs = {{64, 128}}};
  EXPECT_FALSE(late.keeps_blocks(128));
  // The last block of all may be short, one in the middle may not.
  const Split last{.dim = 0, .whole = 192, .runs = {{128, 64}}};
  EXPECT_TRUE(last.keeps_blocks(128));
  const Split first{.dim = 0, .whole = 192, .runs = {{0, 96}}};
  EXPECT_FALSE(first.keeps_blocks(128));
  // Two runs, of which the first is put before the second.
  const Split two{.dim = 0, .whole = 384, .runs = {{0, 64}, {128, 128}}};
  EXPECT_FALSE(two.keeps_blocks(128));
}

TEST(Split, InUnits_CountsBlocks) {
  const Split rows{.dim = 0, .whole = 320, .runs = {{128, 192}}};
  const Split blocks = rows.in_units(128, 1);
  EXPECT_EQ(blocks.dim, 1U);
  EXPECT_EQ(blocks.whole, 3);
  EXPECT_THAT(blocks.runs, ElementsAre(model::Run{1, 2}));
}

TEST(VocabularyOfRank, Parts_FollowEachOtherAndDifferByOne) {
  std::int64_t next = 0;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const model::Run run = vocabulary_of_rank(513, 4, rank);
    EXPECT_EQ(run.first, next);
    EXPECT_GE(run.count, 128);
    EXPECT_LE(run.count, widest_vocabulary(513, 4));
    next = run.end();
  }
  EXPECT_EQ(next, 513);
}

std::string folder_of(const std::string& name) {
  return std::string(KERNELPATH_TEST_DATA) + "/checkpoints/" + name;
}

// Every byte of the part, against the same bytes picked from the whole tensor.
void expect_part(const checkpoint::TensorFiles& files, const std::string& name,
                 const Split& split) {
  const checkpoint::StoredTensor* const tensor = files.find(name);
  ASSERT_NE(tensor, nullptr);
  ASSERT_EQ(tensor->shape.size(), 2U);
  std::vector<std::byte> whole(static_cast<std::size_t>(tensor->bytes));
  ASSERT_TRUE(files.read(*tensor, 0, whole));
  const std::int64_t rows = tensor->shape[0];
  const std::int64_t columns = tensor->shape[1];
  const std::int64_t size = tensor->bytes / rows / columns;
  std::vector<std::byte> expected;
  const auto inside = [&](std::int64_t index) {
    return std::ranges::any_of(
        split.runs, [&](const model::Run& run) { return index >= run.first && index < run.end(); });
  };
  for (std::int64_t byte = 0; byte < tensor->bytes; ++byte) {
    const std::int64_t element = byte / size;
    const std::int64_t index = split.dim == 0 ? element / columns : element % columns;
    if (inside(index)) expected.push_back(whole[static_cast<std::size_t>(byte)]);
  }
  const StoredPart part(*tensor, split);
  EXPECT_EQ(part.tensor().shape[split.dim], split.kept());
  ASSERT_EQ(part.tensor().bytes, static_cast<std::int64_t>(expected.size()));
  std::vector<std::byte> found(expected.size());
  // In two pieces whose border lies inside a run.
  const std::span<std::byte> all(found);
  const std::size_t middle = found.size() / 3 + 1;
  ASSERT_TRUE(part.read(files, 0, all.first(middle)));
  ASSERT_TRUE(part.read(files, static_cast<std::int64_t>(middle), all.subspan(middle)));
  EXPECT_TRUE(found == expected);
}

TEST(StoredPart, RowsAndColumns_AreThoseOfTheFile) {
  const auto files = checkpoint::TensorFiles::open(folder_of("llama-mha-untied-bias-f32"));
  ASSERT_TRUE(files);
  const std::string name = "model.layers.0.mlp.down_proj.weight";  // [64, 112]
  expect_part(*files, name, {.dim = 0, .whole = 64, .runs = {{8, 16}}});
  expect_part(*files, name, {.dim = 0, .whole = 64, .runs = {{0, 8}, {40, 24}}});
  expect_part(*files, name, {.dim = 1, .whole = 112, .runs = {{56, 56}}});
  expect_part(*files, name, {.dim = 1, .whole = 112, .runs = {{1, 3}, {50, 7}}});
}

Result<std::unique_ptr<Model>> shapes_of(const std::string& name, std::int64_t tp,
                                         std::int64_t rank, kernels::Executor& executor) {
  const auto config = config::load_model(folder_of(name));
  EXPECT_TRUE(config);
  return build(*config, folder_of(name), executor,
               {.shape_only = true, .ranks = {.tp = tp, .tp_rank = rank}});
}

class Refused
    : public ::testing::TestWithParam<std::tuple<const char*, int, const char*, const char*>> {};

TEST_P(Refused, SaysWhatCannotBeDividedAndWhatCan) {
  const auto& [name, tp, message, hint] = GetParam();
  kernels::cpu::CpuExecutor executor(1);
  const auto model = shapes_of(name, tp, 0, executor);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(model.error().where, "--tp");
  EXPECT_THAT(model.error().message, HasSubstr(message));
  EXPECT_EQ(model.error().hint, hint);
}

INSTANTIATE_TEST_SUITE_P(
    Shard, Refused,
    ::testing::Values(
        std::tuple("llama-head128-v5cfg", 2, "num_attention_heads 3 cannot be divided by 2",
                   "valid sizes: 1"),
        std::tuple("llama-sharded", 2, "3 KV heads and 2 ranks", "valid sizes: 1, 3, 6"),
        std::tuple("llama-gqa-tied-llama3rope", 4, "6 cannot be divided by 4",
                   "valid sizes: 1, 2, 6"),
        std::tuple("qwen3-fp8-even", 2,
                   "model.layers.0.self_attn.k_proj: 64 of 128 rows a rank cut its blocks of 128",
                   "valid sizes: 1"),
        std::tuple("gpt-oss-mxfp4", 4,
                   "model.layers.0.mlp.experts.down_proj: 16 of 64 columns a rank cut its blocks "
                   "of 32",
                   "valid sizes: 1, 2"),
        std::tuple("kimi-linear", 3, "heads of the delta rule 4 cannot be divided by 3",
                   "valid sizes: 1, 2, 4")));

// What ranks hold together is the model, but for what all of them keep: norms, routers, biases of
// sums, the latent projections.
TEST(WeightsOfRanks, TogetherAreAtLeastTheModel_AndEachIsLess) {
  kernels::cpu::CpuExecutor executor(1);
  for (const char* const name : {"llama-fp16", "deepseek-v3", "gpt-oss", "kimi-linear"}) {
    const auto whole = shapes_of(name, 1, 0, executor);
    ASSERT_TRUE(whole) << name;
    std::int64_t together = 0;
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      const auto part = shapes_of(name, 2, rank, executor);
      ASSERT_TRUE(part) << name;
      EXPECT_LT((*part)->weight_bytes().resident, (*whole)->weight_bytes().resident * 2 / 3)
          << name;
      EXPECT_EQ((*part)->weight_bytes().tensors, (*whole)->weight_bytes().tensors) << name;
      together += (*part)->weight_bytes().stored;
    }
    EXPECT_GE(together, (*whole)->weight_bytes().stored) << name;
  }
}

}  // namespace
}  // namespace kernelpath::model
