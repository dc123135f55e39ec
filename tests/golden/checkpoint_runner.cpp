#include "checkpoint_runner.h"

#include "config/load.h"

#include <algorithm>
#include <numeric>

namespace kernelpath::golden {
namespace {

// Longer than every recorded request.
constexpr std::int64_t kTokens = 512;

// Every rank that shares a block keeps the index keys of all of it.
kv::LayerLayout layout_of(const model::CacheRows& rows, std::int64_t page_size, std::int64_t dcp) {
  kv::LayerLayout out;
  out.k = {.page_size = page_size, .num_heads = rows.num_kv_heads, .head_dim = rows.head_dim};
  if (rows.v_head_dim > 0) {
    out.v = kv::PageLayout{
        .page_size = page_size, .num_heads = rows.num_kv_heads, .head_dim = rows.v_head_dim};
  }
  if (rows.index_head_dim > 0) {
    out.index = kv::PageLayout{
        .page_size = page_size * dcp, .num_heads = 1, .head_dim = rows.index_head_dim};
  }
  return out;
}

}  // namespace

CheckpointRunner::CheckpointRunner(const Options& options)
    : options_(options), executor_(options.threads, options.isa) {}

Result<std::unique_ptr<CheckpointRunner>> CheckpointRunner::open(const std::string& folder,
                                                                 const Options& options) {
  std::unique_ptr<CheckpointRunner> out(new CheckpointRunner(options));
  KERNELPATH_CHECK_OK(out->make_caches(folder));
  return out;
}

Result<void> CheckpointRunner::make_caches(const std::string& folder) {
  KERNELPATH_TRY(config, config::load_model(folder));
  KERNELPATH_TRY(built, model::build(config, folder, executor_,
                                     {.attention = {.page_size = options_.page_size,
                                                    .shard = {.rank = options_.ranks.dcp_rank,
                                                              .count = options_.ranks.dcp}},
                                      .ranks = options_.ranks}));
  model_ = std::move(built);
  const std::int64_t blocks = kTokens / options_.page_size;
  block_table_.resize(static_cast<std::size_t>(blocks));
  std::iota(block_table_.begin(), block_table_.end(), 0);
  std::reverse(block_table_.begin(), block_table_.end());
  for (const model::CacheRows& rows : model_->cache_rows()) {
    model::LayerCache cache;
    if (rows.head_dim > 0) {
      KERNELPATH_TRY(storage,
                     kv::PagedStorage::allocate(
                         {layout_of(rows, options_.page_size, options_.ranks.dcp)}, blocks));
      storage_.push_back(std::move(storage));
      const kv::LayerRows& place = storage_.back().rows()[0];
      cache.k = place.k;
      cache.v = place.v;
      cache.index = place.index;
    }
    states_.emplace_back(static_cast<std::size_t>(rows.state_floats), -1.0F);
    cache.state = states_.back().data();
    cache.state_stride = rows.state_floats;
    caches_.push_back(cache);
  }
  return {};
}

Result<std::vector<float>> CheckpointRunner::run(std::span<const std::int32_t> tokens) {
  const auto n = static_cast<std::int32_t>(tokens.size());
  std::vector<std::int64_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), std::int64_t{length_});
  length_ += n;
  const std::vector<std::int32_t> query_start = {0, n};
  const std::vector<std::int32_t> seq_lens = {length_};
  const std::vector<std::int32_t> prompt_lens = {prompt_len_};
  const std::vector<std::int32_t> logit_rows = {n - 1};
  const std::vector<std::int32_t> state_slots = {0};
  const model::Step step{
      .tokens = tokens,
      .positions = positions,
      .metadata = {.query_start = query_start,
                   .seq_lens = seq_lens,
                   .block_table = block_table_,
                   .block_table_stride = static_cast<std::int64_t>(block_table_.size()),
                   .page_size = options_.page_size},
      .prompt_lens = prompt_lens,
      .logit_rows = logit_rows,
      .state_slots = state_slots,
      .caches = caches_};
  std::vector<float> logits(static_cast<std::size_t>(model_->vocab_size()));
  KERNELPATH_CHECK_OK(model_->forward(step, logits.data()));
  return logits;
}

Result<std::vector<float>> CheckpointRunner::prefill(std::span<const std::int32_t> prompt) {
  prompt_len_ = static_cast<std::int32_t>(prompt.size());
  length_ = 0;
  std::vector<float> logits;
  while (!prompt.empty()) {
    const std::size_t now = std::min(prompt.size(), static_cast<std::size_t>(options_.chunk));
    KERNELPATH_TRY(last, run(prompt.first(now)));
    logits = std::move(last);
    prompt = prompt.subspan(now);
  }
  return logits;
}

Result<std::vector<float>> CheckpointRunner::decode(std::int32_t token) {
  return run(std::span(&token, 1));
}

}  // namespace kernelpath::golden
