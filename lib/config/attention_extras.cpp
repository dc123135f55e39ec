// MLA, indexer and compressor fields, sinks and soft cap.

#include "config/derive.h"

#include <fmt/format.h>

namespace kernelpath::config {
namespace {

constexpr std::int64_t kMaxRank = 1 << 24;

// MLA is on where kv_lora_rank is a number above 0. A null switches it off even in a class that is
// named for it (a small DeepSeek-VL2), and its other sizes are then 0 or null.
Result<void> read_mla(Derivation& d) {
  const Found rank = d.read.find({"kv_lora_rank"});
  d.out.has_kv_lora_rank =
      d.read.text->find("kv_lora_rank") != nullptr || d.read.outer->find("kv_lora_rank") != nullptr;
  KERNELPATH_TRY(kv_lora_rank, as_integer(d.read, rank, {.min = 0, .max = kMaxRank}));
  if (kv_lora_rank.value_or(0) == 0) return {};
  Mla mla;
  mla.kv_lora_rank = kv_lora_rank;
  KERNELPATH_TRY(q_lora_rank, read_integer(d.read, {"q_lora_rank"}, {.min = 0, .max = kMaxRank}));
  // 0 and null both mean one projection without a low rank.
  if (q_lora_rank.value_or(0) > 0) mla.q_lora_rank = q_lora_rank;
  KERNELPATH_TRY(nope, read_integer(d.read, {"qk_nope_head_dim"}, {.min = 0, .max = kMaxHeadDim}));
  mla.qk_nope_head_dim = nope;
  KERNELPATH_TRY(rope, read_integer(d.read, {"qk_rope_head_dim"}, {.min = 0, .max = kMaxHeadDim}));
  mla.qk_rope_head_dim = rope;
  KERNELPATH_TRY(value, read_integer(d.read, {"v_head_dim"}, {.min = 1, .max = kMaxHeadDim}));
  mla.v_head_dim = value;
  if (!value && d.out.hidden_size && d.out.num_attention_heads && !d.partial) {
    mla.v_head_dim = derived_integer(*d.out.hidden_size / *d.out.num_attention_heads,
                                     "hidden_size / num_attention_heads");
  }
  if (!d.out.head_dim && nope && rope) {
    d.out.head_dim =
        derived_integer(*nope + *rope, "qk_nope_head_dim + qk_rope_head_dim (query and key)");
  }
  d.out.mla = std::move(mla);
  return {};
}

// compress_ratios may hold one entry more than there are layers: the MTP layer's.
Result<void> read_compress_ratios(Derivation& d, SparseAttention& sparse) {
  const Found found = d.read.find_stated({"compress_ratios"});
  KERNELPATH_TRY(ratios, as_integers(d.read, found, {.min = 0}));
  if (ratios.empty()) return {};
  const auto layers = static_cast<std::size_t>(d.out.num_hidden_layers.value_or(0));
  if (layers > 0 && ratios.size() < layers) {
    return fail(Error{.code = ErrorCode::kConfigValue,
                      .message = fmt::format("compress_ratios has {} entries for {} layers",
                                             ratios.size(), layers),
                      .where = found.origin.where});
  }
  sparse.compress_ratios = ratios;
  sparse.compress_ratios_origin = found.origin;
  KERNELPATH_TRY(window, read_integer(d.read, {"sliding_window", "window_size"}));
  sparse.window_size = window;
  return {};
}

Result<void> read_sparse(Derivation& d) {
  SparseAttention sparse;
  KERNELPATH_TRY(heads, read_integer(d.read, {"index_n_heads",
                                              "sparse_attention_config/sparse_num_index_heads"}));
  sparse.index_n_heads = heads;
  KERNELPATH_TRY(head_dim, read_integer(d.read, {"index_head_dim",
                                                 "sparse_attention_config/sparse_index_dim"}));
  sparse.index_head_dim = head_dim;
  KERNELPATH_TRY(
      topk, read_integer(d.read, {"index_topk", "sparse_attention_config/sparse_topk_blocks"}));
  sparse.index_topk = topk;
  KERNELPATH_CHECK_OK(read_compress_ratios(d, sparse));
  if (heads || head_dim || topk || !sparse.compress_ratios.empty()) {
    d.out.sparse = std::move(sparse);
  }
  return {};
}

// gpt-oss has a learnt sink in every head without a field that says so; MiMo-V2 says so.
Result<void> read_sinks(Derivation& d) {
  KERNELPATH_TRY(stated, as_boolean(d.read.find_stated({"add_swa_attention_sink_bias"})));
  d.out.attention_sinks = stated;
  const bool gpt_oss = d.read.family != nullptr && d.read.family->model_type() == "gpt_oss";
  if (gpt_oss) d.out.attention_sinks = {true, {OriginKind::kDefault, {}, "every gpt_oss head"}};
  return {};
}

}  // namespace

Result<void> derive_attention_extras(Derivation& d) {
  KERNELPATH_CHECK_OK(read_mla(d));
  KERNELPATH_CHECK_OK(read_sparse(d));
  KERNELPATH_CHECK_OK(read_sinks(d));
  KERNELPATH_TRY(cap, read_number(d.read, {"attn_logit_softcapping"}));
  d.out.attn_logit_softcapping = cap;
  return {};
}

}  // namespace kernelpath::config
