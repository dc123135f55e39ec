#include "model/pass.h"

#include <algorithm>
#include <cstring>

// The parts of a step in which ranks need each other's rows.
namespace kernelpath::model {

void sum_over_ranks(const Pass& pass, float* y) {
  pass.ranks.sum(pass.ops, pass.n * pass.spec.hidden_size, y);
}

void merge_shards(const LayerPass& at, std::int64_t dim, const float* sinks, float* o) {
  const Pass& pass = at.pass;
  const Buffers& b = pass.buffers;
  const std::int64_t rows = pass.n * pass.spec.num_heads;
  pass.ranks.gather_context(pass.ops, rows * dim, o, b.shard_o);
  pass.ranks.gather_context(pass.ops, rows, b.lse, b.shard_lse);
  pass.ops.merge({.parts = pass.ranks.place().dcp,
                  .n = pass.n,
                  .heads = pass.spec.num_heads,
                  .dim = dim,
                  .parts_o = b.shard_o,
                  .parts_lse = b.shard_lse,
                  .sinks = sinks,
                  .o = o});
}

// A rank has a run of the heads, and several have the same where there are fewer heads than ranks:
// rank r's begin at heads * r / tp.
void norm_all_heads(const LayerPass& at, const kernels::NormParams& own) {
  const Pass& pass = at.pass;
  const Buffers& b = pass.buffers;
  const std::int64_t tp = pass.ranks.place().tp;
  const std::int64_t head_dim = pass.spec.head_dim;
  const std::int64_t heads = own.dim / head_dim;  // of the model
  const std::int64_t width = std::max<std::int64_t>(heads / tp, 1) * head_dim;
  const auto bytes = static_cast<std::size_t>(width) * sizeof(float);
  const auto place = [&](std::int64_t rank) { return heads * rank / tp * head_dim; };
  pass.ops.once([&] {
    for (std::int64_t i = 0; i < pass.n; ++i) {
      std::memcpy(b.norm_part + i * width, own.x + i * own.x_stride, bytes);
    }
  });
  pass.ranks.gather_tensors(pass.ops, pass.n * width, b.norm_part, b.norm_parts);
  pass.ops.once([&] {
    for (std::int64_t rank = 0; rank < tp; ++rank) {
      for (std::int64_t i = 0; i < pass.n; ++i) {
        std::memcpy(b.norm_rows + i * own.dim + place(rank),
                    b.norm_parts + (rank * pass.n + i) * width, bytes);
      }
    }
  });
  kernels::NormParams all = own;
  all.x = all.y = b.norm_rows;
  all.x_stride = all.y_stride = own.dim;
  pass.ops.norm(all);
  pass.ops.once([&] {
    for (std::int64_t i = 0; i < pass.n; ++i) {
      std::memcpy(own.y + i * own.y_stride,
                  b.norm_rows + i * own.dim + place(pass.ranks.place().tp_rank), bytes);
    }
  });
}

void gather_logits(const Pass& pass, std::int64_t rows, float* logits) {
  const Buffers& b = pass.buffers;
  const std::int64_t tp = pass.ranks.place().tp;
  const std::int64_t vocab = pass.spec.vocab_size;
  const std::int64_t widest = widest_vocabulary(vocab, tp);
  pass.ranks.gather_tensors(pass.ops, rows * widest, b.rank_logits, b.all_logits);
  pass.ops.once([&] {
    for (std::int64_t rank = 0; rank < tp; ++rank) {
      const Run tokens = vocabulary_of_rank(vocab, tp, rank);
      for (std::int64_t i = 0; i < rows; ++i) {
        std::memcpy(logits + i * vocab + tokens.first, b.all_logits + (rank * rows + i) * widest,
                    static_cast<std::size_t>(tokens.count) * sizeof(float));
      }
    }
  });
}

}  // namespace kernelpath::model
