#include "memory/geometry.h"
#include "memory/module.h"

namespace kernelpath::memory {
namespace {

// Source: DeepSeek-V3, inference/model.py (class MLA)
void append_mla(const Geometry& geometry, const config::Layer& layer, Module& module) {
  const config::Mla& mla = *geometry.model.mla;
  const std::int64_t heads = layer.num_attention_heads;
  const std::int64_t q_rank = mla.q_lora_rank.value_or(0);
  const std::int64_t kv_rank = mla.kv_lora_rank.value_or(0);
  const Size nope = mla.qk_nope_head_dim.value_or(0);
  const Size rope = mla.qk_rope_head_dim.value_or(0);
  const Size value = mla.v_head_dim.value_or(0);
  const bool bias = geometry.flag(geometry.family.qkv_bias);
  if (q_rank > 0) {
    module.replicated("q_a_proj", q_rank, geometry.hidden, bias);
    module.vector("q_a_layernorm", q_rank);
    module.heads("q_b_proj", heads, nope + rope, q_rank, false);
  } else {
    module.heads("q_proj", heads, nope + rope, geometry.hidden, false);
  }
  module.replicated("kv_a_proj_with_mqa", Size(kv_rank) + rope, geometry.hidden, bias);
  module.vector("kv_a_layernorm", kv_rank);
  module.heads("kv_b_proj", heads, nope + value, kv_rank, false);
  module.output("o_proj", geometry.hidden, heads, value, bias);
}

// The indexer of DeepSeek sparse attention, held by every rank.
// Source: DeepSeek-V3.2-Exp, inference/model.py (class Indexer)
void append_indexer(const Geometry& geometry, std::vector<Tensor>& out) {
  const config::SparseAttention& sparse = *geometry.model.sparse;
  const std::int64_t heads = sparse.index_n_heads.value_or(0);
  const std::int64_t width = sparse.index_head_dim.value_or(0);
  const std::int64_t input = geometry.model.mla && geometry.model.mla->q_lora_rank
                                 ? *geometry.model.mla->q_lora_rank
                                 : geometry.hidden;
  Module module(Part::kIndexer, "self_attn.indexer", out);
  module.replicated("wq_b", Size(heads) * width, input);
  module.replicated("wk", width, geometry.hidden);
  module.vector("k_norm", width, 0, /*bias=*/true);
  module.replicated("weights_proj", heads, geometry.hidden);
  out.back().storage = Storage::kPlain;
}

void append_qk_norm(const Geometry& geometry, const config::Layer& layer, Module& module) {
  if (!geometry.flag(geometry.family.qk_norm_if)) return;
  const std::int64_t heads = layer.num_attention_heads;
  const std::int64_t kv_heads = layer.num_key_value_heads;
  switch (geometry.family.qk_norm) {
    case QkNorm::kNone:
      return;
    case QkNorm::kPerHead:
      module.vector("q_norm", layer.head_dim, 0, geometry.family.norm == NormKind::kLayer);
      module.vector("k_norm", layer.head_dim, 0, geometry.family.norm == NormKind::kLayer);
      return;
    case QkNorm::kFullWidth:
    case QkNorm::kEveryHead:
      module.vector("q_norm", Size(heads) * layer.head_dim, heads);
      module.vector("k_norm", Size(kv_heads) * layer.head_dim, kv_heads);
      return;
  }
}

// Gemma-4's global layers read V out of K. Source: transformers 5.24.0, models/gemma4
bool values_are_keys(const Geometry& geometry, const config::Layer& layer) {
  return layer.kind == config::LayerKind::kFull && geometry.integer_or("attention_k_eq_v", 0) != 0;
}

void append_multi_head(const Geometry& geometry, const config::Layer& layer, Module& module) {
  const Family& family = geometry.family;
  const bool bias = geometry.flag(family.qkv_bias);
  const std::int64_t heads = layer.num_attention_heads;
  const std::int64_t kv_heads = layer.num_key_value_heads;
  const Size value = layer.v_head_dim > 0 ? layer.v_head_dim : layer.head_dim;
  const Size query = geometry.flag(family.output_gate) ? Size(2) * layer.head_dim : layer.head_dim;
  module.heads("q_proj", heads, query, geometry.attention_input, bias);
  module.heads("k_proj", kv_heads, layer.head_dim, geometry.attention_input, bias);
  if (!values_are_keys(geometry, layer)) {
    module.heads("v_proj", kv_heads, value, geometry.attention_input, bias);
  }
  module.output("o_proj", geometry.hidden, heads, value, geometry.flag(family.output_bias));
  if (family.head_gate) module.heads("g_proj", heads, 1, geometry.hidden, false);
  append_qk_norm(geometry, layer, module);
}

// gpt-oss has a sink a head in every layer, MiMo-V2-Flash in its sliding ones.
bool has_sinks(const Geometry& geometry, const config::Layer& layer) {
  if (geometry.family.model_type == "mimo_v2_flash") {
    const bool sliding = layer.kind == config::LayerKind::kSliding;
    return geometry.integer_or(
               sliding ? "add_swa_attention_sink_bias" : "add_full_attention_sink_bias", 0) != 0;
  }
  return geometry.model.attention_sinks.value_or(false);
}

}  // namespace

void append_attention(const Geometry& geometry, const LayerShape& shape, std::vector<Tensor>& out) {
  const config::Layer& layer = shape.layer;
  const bool cross = layer.kind == config::LayerKind::kCross;
  Module module(Part::kAttention, cross ? "cross_attn" : geometry.family.attention_module, out);
  if (geometry.model.mla) {
    append_mla(geometry, layer, module);
  } else {
    append_multi_head(geometry, layer, module);
  }
  if (cross) {
    // Mllama: norms of Q and K, and a gate each for attention and MLP.
    module.vector("q_norm", layer.head_dim);
    module.vector("k_norm", layer.head_dim);
    module.vector("gates", 2);
  }
  if (has_sinks(geometry, layer)) {
    module.vector("sinks", layer.num_attention_heads, layer.num_attention_heads);
  }
  if (shape.indexer) append_indexer(geometry, out);
}

}  // namespace kernelpath::memory
