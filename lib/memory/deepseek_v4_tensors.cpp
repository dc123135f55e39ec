#include "memory/geometry.h"
#include "memory/module.h"

#include <algorithm>

// Source: transformers 5.24.0, models/deepseek_v4/modeling_deepseek_v4.py; names as in the
// checkpoint.
namespace kernelpath::memory {
namespace {

// Layers of this ratio choose blocks by an indexer and overlap their windows.
constexpr std::int64_t kSparseRatio = 4;

void append_compressor(const Geometry& geometry, std::int64_t ratio, Size width, Module& module) {
  const Size overlapped = ratio == kSparseRatio ? Size(2) * width : width;
  module.replicated("compressor.wkv", overlapped, geometry.hidden);
  module.replicated("compressor.wgate", overlapped, geometry.hidden);
  module.vector("compressor.ape", Size(ratio) * overlapped);
  module.vector("compressor.norm", width);
}

void append_latent_attention(const Geometry& geometry, const LayerShape& shape,
                             std::vector<Tensor>& out) {
  const std::int64_t heads = shape.layer.num_attention_heads;
  const Size head_dim = shape.layer.head_dim;
  const Size q_rank = geometry.integer_or("q_lora_rank", 0);
  const Size o_rank = geometry.integer_or("o_lora_rank", 0);
  const std::int64_t groups = std::max<std::int64_t>(geometry.integer_or("o_groups", 1), 1);
  Module module(Part::kAttention, "attn", out);
  module.replicated("wq_a", q_rank, geometry.hidden);
  module.vector("q_norm", q_rank);
  module.heads("wq_b", heads, head_dim, q_rank, false);
  module.replicated("wkv", head_dim, geometry.hidden);
  module.vector("kv_norm", head_dim);
  // Each group of heads is projected by itself.
  module.heads("wo_a", groups, o_rank, Size(heads / groups) * head_dim, false);
  module.output("wo_b", geometry.hidden, groups, o_rank, false);
  module.vector("attn_sink", heads, heads);
  if (shape.compress_ratio > 0) append_compressor(geometry, shape.compress_ratio, head_dim, module);
}

void append_block_indexer(const Geometry& geometry, const LayerShape& shape,
                          std::vector<Tensor>& out) {
  const config::SparseAttention& sparse = *geometry.model.sparse;
  const Size heads = sparse.index_n_heads.value_or(0);
  const Size width = sparse.index_head_dim.value_or(0);
  Module module(Part::kIndexer, "attn.indexer", out);
  append_compressor(geometry, shape.compress_ratio, width, module);
  module.replicated("wq_b", heads * width, geometry.integer_or("q_lora_rank", 0));
  module.replicated("weights_proj", heads, geometry.hidden);
}

}  // namespace

// One shared KV head, low-rank Q and output, and hyper-connections around both halves of a layer.
std::vector<Tensor> deepseek_v4_layer(const Geometry& geometry, const LayerShape& shape) {
  std::vector<Tensor> out;
  append_latent_attention(geometry, shape, out);
  if (shape.compress_ratio == kSparseRatio && geometry.model.sparse) {
    append_block_indexer(geometry, shape, out);
  }
  append_mlp(geometry, shape, out);
  const Size streams = geometry.integer_or("hc_mult", 1);
  const Size mixes = streams * (Size(2) + streams);
  Module norms(Part::kNorm, "", out);
  norms.vector("attn_norm, ffn_norm", Size(2) * geometry.hidden);
  norms.vector("hc_fn", Size(2) * mixes * streams * geometry.hidden);
  norms.vector("hc_base", Size(2) * mixes);
  norms.vector("hc_scale", 6);
  return out;
}

}  // namespace kernelpath::memory
