#include "model/pass.h"

#include <array>
#include <cmath>
#include <variant>
#include <vector>

// MLA over the latent cache: W_UK is absorbed into the query and W_UV into the output, so that
// attention has one KV head whose row is [latent ; rotated key], the values its first part.
namespace kernelpath::model {
namespace {

// The inner norms have their own epsilon, whatever rms_norm_eps says.
constexpr float kInnerEps = 1e-6F;

void inner_norm(const LayerPass& at, const Vector& weight, float* rows, std::int64_t stride) {
  at.pass.ops.norm({.kind = kernels::NormKind::kRms,
                    .n = at.pass.n,
                    .dim = weight.size(),
                    .x = rows,
                    .x_stride = stride,
                    .y = rows,
                    .y_stride = stride,
                    .weight = weight.data,
                    .eps = kInnerEps});
}

// Fills buffers.q, buffers.q_a (normed) and buffers.latent (its first part normed).
void project_latent(const LayerPass& at, const float* x) {
  const Pass& pass = at.pass;
  const LatentWeights& w = at.layer.latent;
  const MlaSpec& mla = *pass.spec.mla;
  const Buffers& b = pass.buffers;
  const bool low_rank = mla.q_lora_rank > 0;
  const std::array parts{project(low_rank ? w.q_a : w.q, pass.n, x, low_rank ? b.q_a : b.q),
                         project(w.kv_a, pass.n, x, b.latent)};
  pass.ops.matmul(parts);
  inner_norm(at, w.kv_a_norm, b.latent, mla.row());
  if (!low_rank) return;
  inner_norm(at, w.q_a_norm, b.q_a, mla.q_lora_rank);
  const std::array second{project(w.q_b, pass.n, b.q_a, b.q)};
  pass.ops.matmul(second);
}

// absorbed[i, h] = [W_UK^T q_nope ; q_rope].
void absorb_query(const LayerPass& at) {
  const Pass& pass = at.pass;
  const DecoderSpec& spec = pass.spec;
  const MlaSpec& mla = *spec.mla;
  const std::int64_t q_dim = mla.nope + mla.rope;
  const std::int64_t q_stride = spec.num_heads * q_dim;
  const std::int64_t out_stride = spec.num_heads * mla.row();
  std::vector<kernels::MatmulPart> parts;
  parts.reserve(at.layer.latent.absorb_k.size());
  for (std::int64_t h = 0; h < spec.num_heads; ++h) {
    parts.push_back({.w = at.layer.latent.absorb_k[static_cast<std::size_t>(h)],
                     .n = pass.n,
                     .x = pass.buffers.q + h * q_dim,
                     .x_stride = q_stride,
                     .y = pass.buffers.absorbed + h * mla.row(),
                     .y_stride = out_stride});
  }
  pass.ops.matmul(parts);
  const bool rotated = at.spec.rope;
  pass.ops.rope({.n = pass.n,
                 .heads = spec.num_heads,
                 .width = mla.rope,
                 .rotary = rotated ? mla.rope : 0,
                 .interleaved = spec.interleaved_rope,
                 .src = pass.buffers.q + mla.nope,
                 .src_stride = q_stride,
                 .src_head_stride = q_dim,
                 .dst = pass.buffers.absorbed + mla.kv_lora_rank,
                 .dst_stride = out_stride,
                 .dst_head_stride = mla.row(),
                 .cos = rotated ? pass.buffers.cos[at.spec.rope_table] : nullptr,
                 .sin = rotated ? pass.buffers.sin[at.spec.rope_table] : nullptr});
}

void append_row(const LayerPass& at, const float* rows, std::int64_t width,
                const attention::PagedRows& cache) {
  at.pass.ops.append({.num_tokens = at.pass.n,
                      .num_kv_heads = 1,
                      .head_dim = width,
                      .v_head_dim = 0,
                      .k = rows,
                      .slot_mapping = at.metadata().slot_mapping.data(),
                      .page_size = at.pass.batch.page_size,
                      .k_rows = cache,
                      .v_rows = {}});
}

// Every rank keeps the index keys of all tokens of a block, whatever else of the block is its own.
void append_index_key(const LayerPass& at) {
  const Pass& pass = at.pass;
  const std::int64_t head_dim = pass.spec.index->head_dim;
  if (!pass.ranks.splits_context()) {
    return append_row(at, pass.buffers.index_k, head_dim, at.cache.index);
  }
  pass.ops.append({.num_tokens = pass.n,
                   .num_kv_heads = 1,
                   .head_dim = head_dim,
                   .v_head_dim = 0,
                   .k = pass.buffers.index_k,
                   .slot_mapping = pass.buffers.index_slots,
                   .page_size = pass.block_batch.page_size,
                   .k_rows = at.cache.index,
                   .v_rows = {}});
}

// Fills buffers.selected with the keys that each token may see.
void choose_keys(const LayerPass& at, const float* x) {
  const Pass& pass = at.pass;
  const IndexSpec& index = *pass.spec.index;
  const IndexWeights& w = at.layer.latent.index;
  const Buffers& b = pass.buffers;
  const std::array parts{project(w.q, pass.n, b.q_a, b.index_q), project(w.k, pass.n, x, b.index_k),
                         project(w.weights, pass.n, x, b.index_weights)};
  pass.ops.matmul(parts);
  pass.ops.norm({.kind = kernels::NormKind::kLayer,
                 .n = pass.n,
                 .dim = index.head_dim,
                 .x = b.index_k,
                 .x_stride = index.head_dim,
                 .y = b.index_k,
                 .y_stride = index.head_dim,
                 .weight = w.k_norm.data,
                 .bias = w.k_norm_bias.data,
                 .eps = kInnerEps});
  if (at.spec.rope) {
    RopeRows rows{.data = b.index_q,
                  .stride = index.heads * index.head_dim,
                  .heads = index.heads,
                  .head_stride = index.head_dim,
                  .interleaved = index.interleaved};
    rotate(at, rows);
    rows = {.data = b.index_k, .stride = index.head_dim, .interleaved = index.interleaved};
    rotate(at, rows);
  }
  const float heads_scale = 1.0F / std::sqrt(static_cast<float>(index.heads));
  pass.ops.scale_and_cap(pass.n * index.heads, heads_scale, 0.0F, b.index_weights);
  append_index_key(at);
  pass.ops.index_select({.batch = pass.block_batch,
                         .num_tokens = pass.n,
                         .heads = index.heads,
                         .head_dim = index.head_dim,
                         .top_k = index.top_k,
                         .scale = 1.0F / std::sqrt(static_cast<float>(index.head_dim)),
                         .q = b.index_q,
                         .weights = b.index_weights,
                         .k = at.cache.index,
                         .selected = b.selected,
                         .scratch = b.index_scores,
                         .scratch_stride = at.metadata().max_seq_len});
}

void attend(const LayerPass& at) {
  const Pass& pass = at.pass;
  attention::MqaArgs args{
      .q = pass.buffers.absorbed, .o = pass.buffers.latent_out, .rows = at.cache.k};
  if (at.spec.index || at.spec.shared_index) {
    args.selected = pass.buffers.selected;
    args.selected_stride = pass.spec.index->top_k;
  }
  const bool shards = pass.ranks.splits_context();
  if (shards) args.lse = {pass.buffers.lse};
  std::get<attention::MlaAttention>(at.attention->attention)
      .forward_mqa(pass.ops, at.metadata(), args);
  if (shards) merge_shards(at, pass.spec.mla->kv_lora_rank, nullptr, pass.buffers.latent_out);
}

// o[i, h] = W_UV latent_out[i, h].
void expand_output(const LayerPass& at) {
  const Pass& pass = at.pass;
  const DecoderSpec& spec = pass.spec;
  const MlaSpec& mla = *spec.mla;
  std::vector<kernels::MatmulPart> parts;
  parts.reserve(at.layer.latent.absorb_v.size());
  for (std::int64_t h = 0; h < spec.num_heads; ++h) {
    parts.push_back({.w = at.layer.latent.absorb_v[static_cast<std::size_t>(h)],
                     .n = pass.n,
                     .x = pass.buffers.latent_out + h * mla.kv_lora_rank,
                     .x_stride = spec.num_heads * mla.kv_lora_rank,
                     .y = pass.buffers.o + h * mla.v_head_dim,
                     .y_stride = spec.num_heads * mla.v_head_dim});
  }
  pass.ops.matmul(parts);
}

}  // namespace

void mix_latent(const LayerPass& at, const float* x, float* y) {
  const Pass& pass = at.pass;
  const MlaSpec& mla = *pass.spec.mla;
  project_latent(at, x);
  if (at.spec.rope) {
    rotate(at, {.data = pass.buffers.latent + mla.kv_lora_rank,
                .stride = mla.row(),
                .interleaved = pass.spec.interleaved_rope});
  }
  append_row(at, pass.buffers.latent, mla.row(), at.cache.k);
  absorb_query(at);
  if (at.spec.index) choose_keys(at, x);
  attend(at);
  expand_output(at);
  const std::array parts{project(at.layer.latent.o, pass.n, pass.buffers.o, y)};
  pass.ops.matmul(parts);
}

}  // namespace kernelpath::model
