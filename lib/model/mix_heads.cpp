#include "model/pass.h"

#include <array>
#include <variant>

namespace kernelpath::model {
namespace {

// The q, k and v of all tokens side by side: [n, q + k + v].
struct Qkv {
  float* q = nullptr;
  float* k = nullptr;
  float* v = nullptr;
  std::int64_t stride = 0;
};

Qkv project_qkv(const LayerPass& at, const float* x) {
  const Pass& pass = at.pass;
  const HeadsWeights& w = at.layer.heads;
  float* const rows = pass.buffers.qkv;
  const Qkv out{.q = rows,
                .k = rows + pass.spec.q_width(),
                .v = rows + pass.spec.q_width() + pass.spec.kv_width(),
                .stride = pass.spec.q_width() + 2 * pass.spec.kv_width()};
  if (w.qkv.exists()) {
    const std::array parts{project(w.qkv, pass.n, x, rows)};
    pass.ops.matmul(parts);
  } else {
    const std::array parts{project(w.q, pass.n, x, out.q, out.stride),
                           project(w.k, pass.n, x, out.k, out.stride),
                           project(w.v, pass.n, x, out.v, out.stride)};
    pass.ops.matmul(parts);
  }
  return out;
}

void norm_heads(const LayerPass& at, const Vector& weight, float* rows, std::int64_t heads,
                std::int64_t stride) {
  const DecoderSpec& spec = at.pass.spec;
  const bool whole = spec.qk_norm == QkNorm::kWhole;
  kernels::NormParams params{.kind = kernels::NormKind::kRms,
                             .n = at.pass.n,
                             .groups = whole ? 1 : heads,
                             .dim = whole ? weight.size() : spec.head_dim,
                             .x = rows,
                             .x_stride = stride,
                             .y_stride = stride,
                             .weight = weight.data,
                             .weight_offset = weight.exists() ? spec.family->norm_offset : 0.0F,
                             .eps = spec.eps};
  params.y = rows;
  if (whole && at.pass.ranks.splits_tensors()) {
    norm_all_heads(at, params);
  } else {
    at.pass.ops.norm(params);
  }
}

void norm_qk(const LayerPass& at, const Qkv& qkv) {
  const DecoderSpec& spec = at.pass.spec;
  norm_heads(at, at.layer.heads.q_norm, qkv.q, spec.num_heads, qkv.stride);
  norm_heads(at, at.layer.heads.k_norm, qkv.k, spec.num_kv_heads, qkv.stride);
}

void rotate_qk(const LayerPass& at, const Qkv& qkv) {
  const DecoderSpec& spec = at.pass.spec;
  RopeRows rows{.data = qkv.q,
                .stride = qkv.stride,
                .heads = spec.num_heads,
                .head_stride = spec.head_dim,
                .interleaved = spec.interleaved_rope};
  rotate(at, rows);
  rows.data = qkv.k;
  rows.heads = spec.num_kv_heads;
  rotate(at, rows);
}

void attend(const LayerPass& at, const Qkv& qkv) {
  const Pass& pass = at.pass;
  const DecoderSpec& spec = pass.spec;
  pass.ops.append({.num_tokens = pass.n,
                   .num_kv_heads = spec.num_kv_heads,
                   .head_dim = spec.head_dim,
                   .v_head_dim = spec.head_dim,
                   .k = qkv.k,
                   .k_stride = qkv.stride,
                   .v = qkv.v,
                   .v_stride = qkv.stride,
                   .slot_mapping = at.metadata().slot_mapping.data(),
                   .page_size = pass.batch.page_size,
                   .k_rows = at.cache.k,
                   .v_rows = at.cache.v});
  const bool shards = pass.ranks.splits_context();
  const float* const sinks = at.layer.heads.sinks.data;
  std::get<attention::Attention>(at.attention->attention)
      .forward(pass.ops, at.metadata(),
               {.q = qkv.q,
                .q_stride = qkv.stride,
                .o = pass.buffers.o,
                .k = at.cache.k,
                .v = at.cache.v,
                .sinks = shards ? nullptr : sinks,
                .lse = {shards ? pass.buffers.lse : nullptr}});
  if (shards) merge_shards(at, spec.head_dim, sinks, pass.buffers.o);
}

}  // namespace

void mix_heads(const LayerPass& at, const float* x, float* y) {
  const Pass& pass = at.pass;
  const Qkv qkv = project_qkv(at, x);
  const QkNorm norm = pass.spec.qk_norm;
  if (norm == QkNorm::kPerHead || norm == QkNorm::kWhole) norm_qk(at, qkv);
  if (at.spec.rope) {
    rotate_qk(at, qkv);
    if (norm == QkNorm::kAfterRope) norm_qk(at, qkv);
  }
  if (at.spec.temperature) {
    pass.ops.scale_rows({.n = pass.n,
                         .dim = pass.spec.q_width(),
                         .factors = pass.buffers.temperature,
                         .x = qkv.q,
                         .stride = qkv.stride});
  }
  attend(at, qkv);
  const std::array parts{project(at.layer.heads.o, pass.n, pass.buffers.o, y)};
  pass.ops.matmul(parts);
}

}  // namespace kernelpath::model
