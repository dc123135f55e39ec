#pragma once

#include "engines/llamacpp/saturating.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace kernelpath::engines::llamacpp {

inline constexpr std::int64_t kMaxLayers = 512;    // LLAMA_MAX_LAYERS
inline constexpr std::int64_t kMaxExperts = 1024;  // LLAMA_MAX_EXPERTS

enum class WindowType : std::uint8_t { kNone, kStandard, kChunked, kSymmetric };

// One value a layer.
using PerLayer = std::vector<std::int64_t>;

// What a file's metadata says of a model, as far as memory and attention ask. Members keep the
// engine's names, which the extracted table of reads uses (source: src/llama-hparams.h).
struct Hparams {
  std::int64_t n_ctx_train = 0;
  std::int64_t n_ctx_orig_yarn = 0;
  std::int64_t n_embd = 0;
  std::int64_t n_embd_out_impl = 0;
  std::int64_t n_vocab = 0;
  std::int64_t n_layer_all = 0;
  std::int64_t n_layer_nextn = 0;
  std::int64_t n_layer_kv_from_start = -1;
  std::int64_t n_kv_shared_layers = 0;
  std::int64_t router_layer = -1;
  std::int64_t n_layer_dense_lead = 0;
  std::int64_t n_loops_u = 1;
  std::int64_t causal_attn = 1;

  std::int64_t n_expert = 0;
  std::int64_t n_expert_groups = 0;
  std::int64_t n_group_used = 0;
  std::int64_t expert_gating_func = 0;
  PerLayer n_expert_used_arr = PerLayer(kMaxLayers);

  PerLayer n_head_arr = PerLayer(kMaxLayers);
  PerLayer n_head_kv_arr = PerLayer(kMaxLayers);
  PerLayer n_ff_arr = PerLayer(kMaxLayers);
  std::int64_t n_embd_head_k_full = 0;
  std::int64_t n_embd_head_v_full = 0;
  std::int64_t n_embd_head_k_swa = 0;
  std::int64_t n_embd_head_v_swa = 0;
  std::int64_t n_rot_full = 0;
  std::int64_t n_rot_swa = 0;
  double f_max_alibi_bias = 0;
  double f_attn_logit_softcapping = 0;
  double f_attn_temp_scale = 0;

  WindowType swa_type = WindowType::kNone;
  std::int64_t n_swa = 0;
  PerLayer is_swa_impl = PerLayer(kMaxLayers);

  std::int64_t n_lora_kv = 0;
  std::int64_t n_embd_head_k_mla_impl = 0;
  std::int64_t n_embd_head_v_mla_impl = 0;

  PerLayer is_recr_impl = PerLayer(kMaxLayers);
  std::int64_t full_attn_interval = 0;
  std::int64_t ssm_d_conv = 0;
  std::int64_t ssm_d_inner = 0;
  std::int64_t ssm_d_state = 0;
  std::int64_t ssm_dt_rank = 0;
  std::int64_t ssm_n_group = 0;
  std::int64_t wkv_head_size = 0;
  std::int64_t token_shift_count = 2;
  std::int64_t n_shortconv_l_cache = 0;
  std::int64_t n_embd_head_kda = 0;
  std::int64_t kda_safe_gate = 0;
  double kda_gate_lower_bound = 0;
  std::int64_t n_embd_head_la = 0;

  std::int64_t indexer_n_head = 0;
  std::int64_t indexer_head_size = 0;
  std::int64_t indexer_top_k = 0;
  std::int64_t indexer_block_size = 0;
  std::int64_t indexer_kpool = 0;
  PerLayer is_indexer_full_impl = PerLayer(kMaxLayers);

  std::int64_t dsv4_hc_mult = 0;
  std::int64_t hc_low_rank = 0;
  std::int64_t n_compress_ratios = 0;
  PerLayer dsv4_compress_ratios = PerLayer(kMaxLayers);

  std::int64_t n_ple = 0;
  PerLayer ple_layers;
  std::int64_t ple_ngram_size = 0;
  std::int64_t ple_heads_per_ngram = 0;
  std::int64_t ple_conv_kernel = 0;
  std::int64_t n_embd_per_layer = 0;

  PerLayer target_layer_ids;
  std::int64_t n_adapters = 0;
  std::int64_t max_lora_rank = 0;
  PerLayer token_ids;
  PerLayer substitute_ids;
  std::int64_t n_hrm_layers_per_stack = 0;
  std::int64_t n_hrm_h_cycles = 0;
  std::int64_t n_hrm_l_cycles = 0;

  // Layers without the next-token-prediction ones.
  [[nodiscard]] std::int64_t n_layer() const { return n_layer_all - n_layer_nextn; }
  [[nodiscard]] bool is_swa(std::int64_t layer) const { return at(is_swa_impl, layer) != 0; }
  [[nodiscard]] bool is_recr(std::int64_t layer) const { return at(is_recr_impl, layer) != 0; }
  [[nodiscard]] bool is_indexer_full(std::int64_t layer) const {
    return at(is_indexer_full_impl, layer) != 0;
  }
  [[nodiscard]] std::int64_t n_head(std::int64_t layer = 0) const { return at(n_head_arr, layer); }
  [[nodiscard]] std::int64_t n_head_kv(std::int64_t layer = 0) const {
    return at(n_head_kv_arr, layer);
  }
  [[nodiscard]] std::int64_t n_ff(std::int64_t layer = 0) const { return at(n_ff_arr, layer); }
  [[nodiscard]] std::int64_t n_embd_head_k(std::int64_t layer = 0) const {
    return is_swa(layer) ? n_embd_head_k_swa : n_embd_head_k_full;
  }
  [[nodiscard]] std::int64_t n_embd_head_v(std::int64_t layer = 0) const {
    return is_swa(layer) ? n_embd_head_v_swa : n_embd_head_v_full;
  }
  [[nodiscard]] std::int64_t n_embd_k_gqa(std::int64_t layer) const {
    return saturating_product({n_embd_head_k(layer), n_head_kv(layer)});
  }
  [[nodiscard]] std::int64_t n_embd_v_gqa(std::int64_t layer) const {
    return saturating_product({n_embd_head_v(layer), n_head_kv(layer)});
  }
  [[nodiscard]] std::int64_t n_embd_v_gqa_max() const;
  // Elements of the rolling and of the recurrent state of a layer; kTooLarge if they do not fit.
  [[nodiscard]] std::int64_t n_embd_r() const;
  [[nodiscard]] std::int64_t n_embd_s() const;
  [[nodiscard]] std::int64_t ple_conv_state() const;
  [[nodiscard]] bool is_ple(std::int64_t layer) const;
  // Keys alone are cached, in their compressed form.
  [[nodiscard]] bool is_mla() const {
    return n_embd_head_k_mla_impl != 0 && n_embd_head_v_mla_impl != 0;
  }
  [[nodiscard]] bool has_kv(std::int64_t layer) const {
    return n_layer_kv_from_start < 0 || layer < n_layer_kv_from_start;
  }

  // Layer i slides unless it ends (or, with dense_first, begins) a group of `period`; all do for
  // period 0. Prediction layers never do.
  void set_swa_pattern(std::int64_t period, bool dense_first);

 private:
  static std::int64_t at(const PerLayer& values, std::int64_t layer) {
    return values[static_cast<std::size_t>(layer)];
  }
};

// A member by its name; `integer`, `real` or `list` is set. All null for one that nothing asks for.
struct HparamField {
  std::string_view name = {};
  std::int64_t Hparams::*integer = nullptr;
  double Hparams::*real = nullptr;
  PerLayer Hparams::*list = nullptr;
  [[nodiscard]] bool known() const {
    return integer != nullptr || real != nullptr || list != nullptr;
  }
};
HparamField find_hparam(std::string_view name);

}  // namespace kernelpath::engines::llamacpp
