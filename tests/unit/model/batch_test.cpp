// Logits must not depend on who else is in the batch, on threads, or on how a prompt is cut: not by
// a bit with vectors and fewer than 32 tokens; where many tokens take another kernel, with vectors
// as with AMX, by less than a near-tie.
#include "config/load.h"
#include "kernels/cpu/executor.h"
#include "kv/paged_storage.h"
#include "model/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace kernelpath::model {
namespace {

constexpr std::int64_t kPageSize = 8;
constexpr std::int64_t kPages = 16;  // of each request

// What a request adds to a step.
struct Piece {
  std::size_t request = 0;
  std::vector<std::int32_t> tokens;
};

// A model with caches for two requests.
class TwoRequests {
 public:
  TwoRequests(const std::string& name, int threads,
              kernels::cpu::Isa isa = kernels::cpu::vector_isa(kernels::cpu::best_isa()))
      : executor_(threads, isa) {
    const std::string folder = std::string(KERNELPATH_TEST_DATA) + "/checkpoints/" + name;
    model_ = std::move(*build(*config::load_model(folder), folder, executor_));
    for (const CacheRows& rows : model_->cache_rows()) {
      states_.emplace_back(static_cast<std::size_t>(2 * rows.state_floats), 3.0F);
      LayerCache cache{.state = states_.back().data(), .state_stride = rows.state_floats};
      if (rows.head_dim > 0) add_pages(rows, cache);
      caches_.push_back(cache);
    }
    block_table_.resize(2 * kPages);
    for (std::size_t i = 0; i < block_table_.size(); ++i) {
      block_table_[i] = static_cast<std::int32_t>(i * 7 % block_table_.size());
    }
  }

  // Logits of each piece's last token, one behind the other.
  std::vector<float> run(const std::vector<Piece>& pieces) {
    std::vector<std::int32_t> tokens;
    std::vector<std::int64_t> positions;
    std::vector<std::int32_t> query_start = {0};
    std::vector<std::int32_t> seq_lens;
    std::vector<std::int32_t> rows;
    std::vector<std::int32_t> slots;
    std::vector<std::int32_t> table;
    for (const Piece& piece : pieces) {
      std::int32_t& length = lengths_[piece.request];
      for (const std::int32_t token : piece.tokens) {
        tokens.push_back(token);
        positions.push_back(length++);
      }
      query_start.push_back(static_cast<std::int32_t>(tokens.size()));
      rows.push_back(query_start.back() - 1);
      seq_lens.push_back(length);
      slots.push_back(static_cast<std::int32_t>(piece.request));
      const auto first = block_table_.begin() + static_cast<std::ptrdiff_t>(piece.request) * kPages;
      table.insert(table.end(), first, first + kPages);
    }
    std::vector<float> logits(pieces.size() * static_cast<std::size_t>(model_->vocab_size()));
    const auto done = model_->forward({.tokens = tokens,
                                       .positions = positions,
                                       .metadata = {.query_start = query_start,
                                                    .seq_lens = seq_lens,
                                                    .block_table = table,
                                                    .block_table_stride = kPages,
                                                    .page_size = kPageSize},
                                       .prompt_lens = {},
                                       .logit_rows = rows,
                                       .state_slots = slots,
                                       .caches = caches_},
                                      logits.data());
    EXPECT_TRUE(done) << (done ? "" : done.error().text());
    return logits;
  }

  [[nodiscard]] std::size_t vocab() const { return static_cast<std::size_t>(model_->vocab_size()); }

 private:
  void add_pages(const CacheRows& rows, LayerCache& cache) {
    kv::LayerLayout layout;
    layout.k = {.page_size = kPageSize, .num_heads = rows.num_kv_heads, .head_dim = rows.head_dim};
    if (rows.v_head_dim > 0) {
      layout.v = kv::PageLayout{
          .page_size = kPageSize, .num_heads = rows.num_kv_heads, .head_dim = rows.v_head_dim};
    }
    if (rows.index_head_dim > 0) {
      layout.index =
          kv::PageLayout{.page_size = kPageSize, .num_heads = 1, .head_dim = rows.index_head_dim};
    }
    storage_.push_back(std::move(*kv::PagedStorage::allocate({layout}, 2 * kPages)));
    cache.k = storage_.back().rows()[0].k;
    cache.v = storage_.back().rows()[0].v;
    cache.index = storage_.back().rows()[0].index;
  }

  kernels::cpu::CpuExecutor executor_;
  std::unique_ptr<Model> model_;
  std::vector<kv::PagedStorage> storage_;
  std::vector<std::vector<float>> states_;
  std::vector<LayerCache> caches_;
  std::vector<std::int32_t> block_table_;
  std::vector<std::int32_t> lengths_ = {0, 0};
};

std::vector<std::int32_t> counting(std::int32_t first, std::int32_t count) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), first);
  return out;
}

class Batch : public testing::TestWithParam<std::string> {};

TEST_P(Batch, WithAnotherRequestOrAlone_TheSameBits) {
  TwoRequests alone(GetParam(), 1);
  TwoRequests together(GetParam(), 1);
  const std::vector<float> first = alone.run({{0, counting(10, 21)}});
  const std::vector<float> both = together.run({{1, counting(40, 9)}, {0, counting(10, 21)}});
  EXPECT_TRUE(std::equal(first.begin(), first.end(),
                         both.begin() + static_cast<std::ptrdiff_t>(alone.vocab())));
  const std::vector<float> next = alone.run({{0, {7}}});
  const std::vector<float> mixed = together.run({{0, {7}}, {1, counting(3, 5)}});
  EXPECT_TRUE(std::equal(next.begin(), next.end(), mixed.begin()));
}

TEST_P(Batch, OnOneThreadOrFour_TheSameBits) {
  TwoRequests one(GetParam(), 1);
  TwoRequests four(GetParam(), 4);
  const std::vector<Piece> step = {{0, counting(10, 21)}, {1, counting(40, 9)}};
  EXPECT_EQ(one.run(step), four.run(step));
  EXPECT_EQ(one.run({{1, {7}}, {0, {9}}}), four.run({{1, {7}}, {0, {9}}}));
}

TEST_P(Batch, WholeOrInChunks_TheSameBits) {
  TwoRequests whole(GetParam(), 2);
  TwoRequests chunks(GetParam(), 2);
  const std::vector<float> expected = whole.run({{0, counting(10, 21)}});
  chunks.run({{0, counting(10, 5)}});
  chunks.run({{0, counting(15, 1)}});
  EXPECT_EQ(expected, chunks.run({{0, counting(16, 15)}}));
}

// What correct float32 arithmetic may differ by, and the gap from which on a choice is not a tie.
constexpr float kLogitTolerance = 2e-3F;
constexpr float kNearTie = 1e-3F;

void expect_the_same_choice(std::span<const float> a, std::span<const float> b) {
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], kLogitTolerance) << i;
  const auto best = std::ranges::max_element(a);
  const auto other = std::ranges::max_element(b);
  if (best - a.begin() == other - b.begin()) return;
  EXPECT_LT(*best - a[static_cast<std::size_t>(other - b.begin())], kNearTie);
}

TEST_P(Batch, OfManyTokens_TheSameChoicesButForNearTies) {
  using kernels::cpu::Isa;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    if (!kernels::cpu::has_isa(isa)) continue;
    SCOPED_TRACE(kernels::cpu::isa_name(isa));
    TwoRequests sums(GetParam(), 1, Isa::kReference);
    TwoRequests whole(GetParam(), 2, isa);
    TwoRequests chunks(GetParam(), 2, isa);
    const std::vector<float> expected = sums.run({{0, counting(10, 60)}});
    const std::vector<float> prompt = whole.run({{0, counting(10, 60)}});
    expect_the_same_choice(expected, prompt);
    chunks.run({{0, counting(10, 5)}, {1, counting(40, 9)}});
    chunks.run({{0, counting(15, 1)}});
    expect_the_same_choice(prompt, chunks.run({{0, counting(16, 54)}}));
    expect_the_same_choice(sums.run({{0, {7}}}), whole.run({{0, {7}}}));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Batch,
                         testing::Values("llama-sharded", "gpt-oss-mxfp4", "deepseek-v32-dsa",
                                         "kimi-linear", "llama4-text", "qwen3-fp8-block"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace kernelpath::model
