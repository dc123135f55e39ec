#pragma once

#include "kernels/ops.h"
#include "model/attention_layers.h"
#include "model/layers.h"
#include "model/model.h"
#include "model/rank_ops.h"
#include "model/shard.h"
#include "model/spec.h"
#include "model/workspace.h"

#include <cstddef>
#include <cstdint>

namespace kernelpath::model {

// What one thread has at hand during a step. All threads run the same functions on the same values.
struct Pass {
  const DecoderSpec& spec;
  const Parameters& parameters;
  const Step& step;
  const Buffers& buffers;
  kernels::Ops& ops;
  const AttentionLayers& attention;
  RankOps& ranks;
  std::int64_t n = 0;  // tokens
  attention::BatchView batch = {};
  attention::BatchView block_batch = {};  // with the tokens of a block that all ranks keep together
};

// One layer of a step.
struct LayerPass {
  const Pass& pass;
  const LayerSpec& spec;
  const Layer& layer;
  const LayerCache& cache;
  const AttentionLayer* attention = nullptr;  // null: a layer with a state instead

  [[nodiscard]] const attention::StepMetadata& metadata() const {
    return pass.attention.metadata(*attention);
  }
};

// y = mixer(x), both [n, hidden].
void mix_heads(const LayerPass& at, const float* x, float* y);
void mix_latent(const LayerPass& at, const float* x, float* y);
void mix_delta(const LayerPass& at, const float* x, float* y);

// y = mlp(x) or the mixture of experts, both [n, hidden]; uses Buffers::y2.
void feed_forward(const LayerPass& at, const float* x, float* y);

// y [n, hidden] = the sum over the ranks that split tensors.
void sum_over_ranks(const Pass& pass, float* y);

// o [n, heads, dim], attention over this rank's shard of the cache with Buffers::lse, becomes that
// over all keys. `sinks` ([heads] or null) join here.
void merge_shards(const LayerPass& at, std::int64_t dim, const float* sinks, float* o);

// A norm over all heads of the model at once (own.dim), of which own.x has this rank's.
void norm_all_heads(const LayerPass& at, const kernels::NormParams& own);

// logits [rows, vocab_size] from every rank's part of the vocabulary in Buffers::rank_logits.
void gather_logits(const Pass& pass, std::int64_t rows, float* logits);

// A projection of all tokens as a part of a matmul. Strides of 0: the rows lie without gaps.
kernels::MatmulPart project(const Linear& linear, std::int64_t n, const float* x, float* y,
                            std::int64_t y_stride = 0);

// Rotates the heads of `rows` in place by the layer's table; `spec.rope` must hold.
struct RopeRows {
  float* data = nullptr;
  std::int64_t stride = 0;  // between tokens
  std::int64_t heads = 1;
  std::int64_t head_stride = 0;
  bool interleaved = false;
};
void rotate(const LayerPass& at, const RopeRows& rows);

}  // namespace kernelpath::model
