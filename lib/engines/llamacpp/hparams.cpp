// Source: llama.cpp 0c1e5709, src/llama-hparams.cpp.
#include "engines/llamacpp/hparams.h"

#include "engines/llamacpp/saturating.h"

#include <algorithm>
#include <array>

namespace kernelpath::engines::llamacpp {
namespace {

// In the order of names, for a binary search.
constexpr auto kFields = std::to_array<HparamField>({
    {.name = "causal_attn", .integer = &Hparams::causal_attn},
    {.name = "dsv4_compress_ratios", .list = &Hparams::dsv4_compress_ratios},
    {.name = "dsv4_hc_mult", .integer = &Hparams::dsv4_hc_mult},
    {.name = "expert_gating_func", .integer = &Hparams::expert_gating_func},
    {.name = "f_attn_logit_softcapping", .real = &Hparams::f_attn_logit_softcapping},
    {.name = "f_attn_temp_scale", .real = &Hparams::f_attn_temp_scale},
    {.name = "f_max_alibi_bias", .real = &Hparams::f_max_alibi_bias},
    {.name = "full_attn_interval", .integer = &Hparams::full_attn_interval},
    {.name = "hc_low_rank", .integer = &Hparams::hc_low_rank},
    {.name = "indexer_block_size", .integer = &Hparams::indexer_block_size},
    {.name = "indexer_head_size", .integer = &Hparams::indexer_head_size},
    {.name = "indexer_kpool", .integer = &Hparams::indexer_kpool},
    {.name = "indexer_n_head", .integer = &Hparams::indexer_n_head},
    {.name = "indexer_top_k", .integer = &Hparams::indexer_top_k},
    {.name = "is_indexer_full_impl", .list = &Hparams::is_indexer_full_impl},
    {.name = "is_recr_impl", .list = &Hparams::is_recr_impl},
    {.name = "is_swa_impl", .list = &Hparams::is_swa_impl},
    {.name = "kda_gate_lower_bound", .real = &Hparams::kda_gate_lower_bound},
    {.name = "kda_safe_gate", .integer = &Hparams::kda_safe_gate},
    {.name = "max_lora_rank", .integer = &Hparams::max_lora_rank},
    {.name = "n_adapters", .integer = &Hparams::n_adapters},
    {.name = "n_compress_ratios", .integer = &Hparams::n_compress_ratios},
    {.name = "n_ctx_orig_yarn", .integer = &Hparams::n_ctx_orig_yarn},
    {.name = "n_ctx_train", .integer = &Hparams::n_ctx_train},
    {.name = "n_embd", .integer = &Hparams::n_embd},
    {.name = "n_embd_head_k_full", .integer = &Hparams::n_embd_head_k_full},
    {.name = "n_embd_head_k_mla_impl", .integer = &Hparams::n_embd_head_k_mla_impl},
    {.name = "n_embd_head_k_swa", .integer = &Hparams::n_embd_head_k_swa},
    {.name = "n_embd_head_kda", .integer = &Hparams::n_embd_head_kda},
    {.name = "n_embd_head_v_full", .integer = &Hparams::n_embd_head_v_full},
    {.name = "n_embd_head_v_mla_impl", .integer = &Hparams::n_embd_head_v_mla_impl},
    {.name = "n_embd_head_v_swa", .integer = &Hparams::n_embd_head_v_swa},
    {.name = "n_embd_out_impl", .integer = &Hparams::n_embd_out_impl},
    {.name = "n_embd_per_layer", .integer = &Hparams::n_embd_per_layer},
    {.name = "n_expert", .integer = &Hparams::n_expert},
    {.name = "n_expert_groups", .integer = &Hparams::n_expert_groups},
    {.name = "n_expert_used_arr", .list = &Hparams::n_expert_used_arr},
    {.name = "n_ff_arr", .list = &Hparams::n_ff_arr},
    {.name = "n_group_used", .integer = &Hparams::n_group_used},
    {.name = "n_head_arr", .list = &Hparams::n_head_arr},
    {.name = "n_head_kv_arr", .list = &Hparams::n_head_kv_arr},
    {.name = "n_hrm_h_cycles", .integer = &Hparams::n_hrm_h_cycles},
    {.name = "n_hrm_l_cycles", .integer = &Hparams::n_hrm_l_cycles},
    {.name = "n_hrm_layers_per_stack", .integer = &Hparams::n_hrm_layers_per_stack},
    {.name = "n_kv_shared_layers", .integer = &Hparams::n_kv_shared_layers},
    {.name = "n_layer_all", .integer = &Hparams::n_layer_all},
    {.name = "n_layer_dense_lead", .integer = &Hparams::n_layer_dense_lead},
    {.name = "n_layer_kv_from_start", .integer = &Hparams::n_layer_kv_from_start},
    {.name = "n_layer_nextn", .integer = &Hparams::n_layer_nextn},
    {.name = "n_loops_u", .integer = &Hparams::n_loops_u},
    {.name = "n_lora_kv", .integer = &Hparams::n_lora_kv},
    {.name = "n_ple", .integer = &Hparams::n_ple},
    {.name = "n_rot_full", .integer = &Hparams::n_rot_full},
    {.name = "n_rot_swa", .integer = &Hparams::n_rot_swa},
    {.name = "n_shortconv_l_cache", .integer = &Hparams::n_shortconv_l_cache},
    {.name = "n_swa", .integer = &Hparams::n_swa},
    {.name = "n_vocab", .integer = &Hparams::n_vocab},
    {.name = "ple_conv_kernel", .integer = &Hparams::ple_conv_kernel},
    {.name = "ple_heads_per_ngram", .integer = &Hparams::ple_heads_per_ngram},
    {.name = "ple_layers", .list = &Hparams::ple_layers},
    {.name = "ple_ngram_size", .integer = &Hparams::ple_ngram_size},
    {.name = "ssm_d_conv", .integer = &Hparams::ssm_d_conv},
    {.name = "ssm_d_inner", .integer = &Hparams::ssm_d_inner},
    {.name = "ssm_d_state", .integer = &Hparams::ssm_d_state},
    {.name = "ssm_dt_rank", .integer = &Hparams::ssm_dt_rank},
    {.name = "ssm_n_group", .integer = &Hparams::ssm_n_group},
    {.name = "substitute_ids", .list = &Hparams::substitute_ids},
    {.name = "target_layer_ids", .list = &Hparams::target_layer_ids},
    {.name = "token_ids", .list = &Hparams::token_ids},
    {.name = "token_shift_count", .integer = &Hparams::token_shift_count},
    {.name = "wkv_head_size", .integer = &Hparams::wkv_head_size},
});

}  // namespace

HparamField find_hparam(std::string_view name) {
  const auto* const found = std::ranges::lower_bound(kFields, name, {}, &HparamField::name);
  return found != kFields.end() && found->name == name ? *found : HparamField{};
}

std::int64_t Hparams::n_embd_v_gqa_max() const {
  std::int64_t out = 0;
  for (std::int64_t layer = 0; layer < n_layer_all; ++layer) {
    out = std::max(out, n_embd_v_gqa(layer));
  }
  return out;
}

std::int64_t Hparams::n_embd_r() const {
  if (wkv_head_size != 0) return saturating_product({token_shift_count, n_embd});
  if (n_shortconv_l_cache != 0) return saturating_product({n_embd, n_shortconv_l_cache - 1});
  if (n_embd_head_kda != 0) {
    const std::int64_t history = ssm_d_conv > 0 ? ssm_d_conv - 1 : 3;
    return saturating_product({3, history, n_head(), n_embd_head_kda});  // of Q, K and V
  }
  const std::int64_t history = ssm_d_conv > 0 ? ssm_d_conv - 1 : 0;
  const std::int64_t width =
      saturating_sum(ssm_d_inner, saturating_product({2, ssm_n_group, ssm_d_state}));
  return saturating_product({history, width});
}

std::int64_t Hparams::n_embd_s() const {
  if (wkv_head_size != 0) return saturating_product({n_embd, wkv_head_size});
  if (n_embd_head_kda != 0) return saturating_product({n_embd_head_kda, n_embd_head_kda, n_head()});
  if (n_embd_head_la != 0) return saturating_product({n_embd_head_la, n_embd_head_la, n_head()});
  return saturating_product({ssm_d_state, ssm_d_inner});
}

std::int64_t Hparams::ple_conv_state() const {
  const bool any_heads = n_ple != 0 && ple_ngram_size > 1 && ple_heads_per_ngram != 0;
  if (!any_heads || ple_conv_kernel == 0) return 0;
  return saturating_product({ple_conv_kernel - 1, ple_ngram_size, dsv4_hc_mult, n_embd});
}

bool Hparams::is_ple(std::int64_t layer) const {
  return std::ranges::find(ple_layers, layer) != ple_layers.end();
}

void Hparams::set_swa_pattern(std::int64_t period, bool dense_first) {
  for (std::int64_t layer = 0; layer < n_layer_all; ++layer) {
    const std::int64_t place = period == 0 ? 0 : layer % period;
    const bool dense = period != 0 && place == (dense_first ? 0 : period - 1);
    is_swa_impl[static_cast<std::size_t>(layer)] = layer < n_layer() && !dense ? 1 : 0;
  }
}

}  // namespace kernelpath::engines::llamacpp
