// What classes do beside reading keys. Source: llama.cpp 0c1e5709, src/models/*.cpp, each class's
// load_arch_hparams.
#include "engines/llamacpp/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr std::int64_t kSqrtSoftplus = 4;  // LLAMA_EXPERT_GATING_FUNC_TYPE_SQRT_SOFTPLUS

std::int64_t& entry(PerLayer& values, std::int64_t layer) {
  return values[static_cast<std::size_t>(layer)];
}

// --- layers that keep a state --------------------------------------------------------------------

// Layers without KV heads, among the first `layers`.
void headless_layers_recur(Hparams& hparams, std::int64_t layers) {
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    entry(hparams.is_recr_impl, layer) = hparams.n_head_kv(layer) == 0 ? 1 : 0;
  }
}

void headless_trunk_recurs(Reader& reader) {
  headless_layers_recur(reader.hparams, reader.hparams.n_layer());
}

// Every n-th layer attends, where the file does not list them.
void interval_recurs(Reader& reader) {
  Hparams& hparams = reader.hparams;
  if (reader.has_found("%s.attention.recurrent_layers")) return;
  if (hparams.full_attn_interval == 0) {
    return reader.require(false, "full_attn_interval != 0");
  }
  for (std::int64_t layer = 0; layer < hparams.n_layer_all; ++layer) {
    const bool recurs = layer < hparams.n_layer() && (layer + 1) % hparams.full_attn_interval != 0;
    entry(hparams.is_recr_impl, layer) = recurs ? 1 : 0;
  }
}

void minimax_01(Reader& reader) {
  reader.hparams.n_embd_head_la = reader.hparams.n_embd_head_k_full;
  interval_recurs(reader);
}

void all_layers_recur(Reader& reader) { std::ranges::fill(reader.hparams.is_recr_impl, 1); }

// The rest are feed-forward blocks.
void nemotron_h(Reader& reader) {
  Hparams& hparams = reader.hparams;
  for (std::int64_t layer = 0; layer < hparams.n_layer_all; ++layer) {
    const bool recurs =
        layer < hparams.n_layer() && hparams.n_head_kv(layer) == 0 && hparams.n_ff(layer) == 0;
    entry(hparams.is_recr_impl, layer) = recurs ? 1 : 0;
  }
}

void lfm2(Reader& reader) {
  Hparams& hparams = reader.hparams;
  headless_trunk_recurs(reader);
  if (hparams.swa_type == WindowType::kNone) return;
  for (std::int64_t layer = 0; layer < hparams.n_layer(); ++layer) {
    entry(hparams.is_swa_impl, layer) = hparams.is_recr(layer) ? 0 : 1;
  }
}

void bailingmoe3(Reader& reader) {
  Hparams& hparams = reader.hparams;
  const bool safe = !reader.has_found("%s.kda.safe_gate") || hparams.kda_safe_gate != 0;
  reader.require(safe, "hparams.kda_safe_gate");
  reader.require(hparams.kda_gate_lower_bound < 0, "hparams.kda_gate_lower_bound < 0.0f");
  headless_trunk_recurs(reader);
}

// The cache holds the compressed latent.
void kimi_k3(Reader& reader) {
  reader.hparams.n_embd_head_v_full = reader.hparams.n_lora_kv;
  headless_trunk_recurs(reader);
}

// --- caches that layers share --------------------------------------------------------------------

void gemma4(Reader& reader) {
  Hparams& hparams = reader.hparams;
  hparams.n_layer_kv_from_start =
      std::max<std::int64_t>(hparams.n_layer_all - hparams.n_kv_shared_layers, -1);
}

// --- indexers ------------------------------------------------------------------------------------

// The types that GLM 5.2 has where its file does not list them: two layers, then every fourth.
void default_glm_types(Hparams& hparams) {
  constexpr std::int64_t kListed = 78;
  constexpr std::int64_t kFirst = 2;
  constexpr std::int64_t kPeriod = 4;
  for (std::int64_t layer = 0; layer < kMaxLayers; ++layer) {
    const bool full = layer < kFirst || (layer < kListed && (layer - kFirst) % kPeriod == 0);
    entry(hparams.is_indexer_full_impl, layer) = full ? 1 : 0;
  }
}

void glm_dsa(Reader& reader) {
  constexpr std::int64_t kContextSince52 = 1048576;
  if (reader.has_found("%s.attention.indexer.types")) return;
  if (reader.hparams.n_ctx_train < kContextSince52) {
    std::ranges::fill(reader.hparams.is_indexer_full_impl, 1);
  } else {
    default_glm_types(reader.hparams);
  }
}

void glm5_next(Reader& reader) {
  Hparams& hparams = reader.hparams;
  hparams.n_embd_head_v_full = hparams.n_lora_kv;
  headless_layers_recur(hparams, hparams.n_layer_all);
  const bool pooled =
      hparams.indexer_kpool > 1 && hparams.indexer_top_k % hparams.indexer_kpool == 0;
  reader.require(pooled,
                 "hparams.indexer_kpool > 1 && hparams.indexer_top_k % hparams.indexer_kpool == 0");
  reader.require(hparams.dsv4_hc_mult == 4, "hparams.dsv4_hc_mult == 4");
  if (!reader.has_found("%s.attention.indexer.types")) {
    std::ranges::fill(hparams.is_indexer_full_impl, 1);
  }
}

void hy_v4(Reader& reader) {
  const Hparams& hparams = reader.hparams;
  if (hparams.indexer_top_k > 0) {
    const std::int64_t rotated = hparams.is_swa(0) ? hparams.n_rot_swa : hparams.n_rot_full;
    if (hparams.indexer_n_head == 0 || hparams.indexer_head_size <= rotated) {
      reader.fail_with("hy_v4: bad indexer head count / key length");
    } else if (!hparams.is_indexer_full(0)) {
      reader.fail_with("hy_v4: layer 0 must own an indexer, nothing precedes it to share");
    }
  }
  reader.require(hparams.is_mla(), "hparams.is_mla()");
}

void minimax_m3(Reader& reader) {
  reader.require(reader.hparams.indexer_block_size > 0, "hparams.indexer_block_size > 0");
}

// --- DeepSeek-V4 and drafts ----------------------------------------------------------------------

void deepseek4(Reader& reader) {
  Hparams& hparams = reader.hparams;
  const std::string probe = fmt::format("blk.{}.nextn.eh_proj.weight", hparams.n_layer());
  if (reader.tensors.known && !reader.tensors.has(probe)) hparams.n_layer_nextn = 0;
  if (hparams.n_compress_ratios < hparams.n_layer_all) {
    reader.fail_with("DeepSeek-V4 compress_ratios is shorter than block_count");
  }
  if (hparams.expert_gating_func != kSqrtSoftplus) {
    reader.fail_with("DeepSeek-V4 loader currently expects sqrtsoftplus MoE scoring");
  }
  std::fill_n(hparams.is_swa_impl.begin(), hparams.n_layer_all, 1);
}

void dflash(Reader& reader) {
  Hparams& hparams = reader.hparams;
  if (hparams.dsv4_hc_mult == 0) return;
  if (hparams.expert_gating_func != kSqrtSoftplus) {
    reader.fail_with("DSpark DSV4 draft expects sqrtsoftplus MoE scoring");
  }
  const auto end = hparams.dsv4_compress_ratios.begin() + hparams.n_layer_all;
  if (std::any_of(hparams.dsv4_compress_ratios.begin(), end, [](auto r) { return r != 0; })) {
    reader.fail_with("DSpark DSV4 draft expects uncompressed attention on all stages");
  }
  reader.require(hparams.n_swa > 0, "hparams.n_swa > 0");
  std::fill_n(hparams.is_swa_impl.begin(), hparams.n_layer_all, 1);
}

void eagle3(Reader& reader) {
  if (reader.hparams.target_layer_ids.size() != 3) {
    reader.fail_with("EAGLE3 requires exactly 3 entries in 'extract_layers'");
  }
}

// --- layers that a class adds --------------------------------------------------------------------

// A layer with one head, behind the others, tells which adapter serves a token.
void granite_switch(Reader& reader) {
  constexpr std::int64_t kMost = 4096;
  Hparams& hparams = reader.hparams;
  if (hparams.n_adapters > kMost) {
    reader.fail_with(fmt::format("graniteswitch: invalid adapter count {}", hparams.n_adapters));
  }
  if (hparams.max_lora_rank > kMost) {
    reader.fail_with(fmt::format("graniteswitch: invalid lora rank {}", hparams.max_lora_rank));
  }
  const auto adapters = static_cast<std::size_t>(hparams.n_adapters);
  if (hparams.token_ids.size() != adapters || hparams.substitute_ids.size() != adapters) {
    reader.fail_with(
        fmt::format("graniteswitch: adapter token id arrays ({} activate, {} "
                    "substitute) do not match adapter count {}",
                    hparams.token_ids.size(), hparams.substitute_ids.size(), hparams.n_adapters));
  }
  const std::int64_t real = hparams.n_layer();
  if (real >= kMaxLayers) {
    reader.fail_with(fmt::format("graniteswitch: block count {} exceeds LLAMA_MAX_LAYERS", real));
  }
  if (reader.failed()) return;
  hparams.router_layer = real;
  hparams.n_layer_all = real + 1;
  hparams.n_layer_nextn = 1;
  entry(hparams.n_head_arr, real) = 1;
  entry(hparams.n_head_kv_arr, real) = 1;
  entry(hparams.n_ff_arr, real) = 0;
}

// The layers are walked over several times, each time with a cache of its own.
void nanbeige(Reader& reader) {
  Hparams& hparams = reader.hparams;
  const std::int64_t layers = hparams.n_layer();
  const std::int64_t total = saturating_product({layers, hparams.n_loops_u});
  reader.require(hparams.n_loops_u >= 1, "n_loops_u >= 1");
  reader.require(total <= kMaxLayers, "n_layer_phys * n_loops_u <= LLAMA_MAX_LAYERS");
  if (reader.failed() || hparams.n_loops_u == 1) return;
  for (std::int64_t layer = layers; layer < total; ++layer) {
    for (PerLayer* const values : {&hparams.n_head_arr, &hparams.n_head_kv_arr, &hparams.n_ff_arr,
                                   &hparams.is_swa_impl, &hparams.is_recr_impl}) {
      entry(*values, layer) = entry(*values, layer - layers);
    }
  }
  hparams.n_layer_all = total;
}

void hrm_text(Reader& reader) {
  const Hparams& hparams = reader.hparams;
  reader.require(hparams.n_hrm_layers_per_stack > 0, "hparams.n_hrm_layers_per_stack > 0");
  reader.require(hparams.n_hrm_h_cycles > 0, "hparams.n_hrm_h_cycles > 0");
  reader.require(hparams.n_hrm_l_cycles > 0, "hparams.n_hrm_l_cycles > 0");
  const std::int64_t slots =
      saturating_product({hparams.n_hrm_layers_per_stack, hparams.n_hrm_h_cycles,
                          saturating_sum(hparams.n_hrm_l_cycles, 1)});
  reader.require(hparams.n_layer() == slots, "hparams.n_layer() == n_slot");
}

// --- checks of numbers ---------------------------------------------------------------------------

void mistral3(Reader& reader) {
  const Hparams& hparams = reader.hparams;
  if (hparams.f_attn_temp_scale == 0 || hparams.n_ctx_orig_yarn != 0) return;
  reader.fail_with("invalid n_ctx_orig_yarn for attention temperature scaling");
}

std::string qwen4exp_problem(const Reader& reader) {
  constexpr std::int64_t kMostNgrams = 8;  // LLAMA_MAX_PLE_NGRAM
  constexpr std::int64_t kMostHeads = 64;  // LLAMA_MAX_PLE_HEADS
  const Hparams& hparams = reader.hparams;
  if (hparams.dsv4_hc_mult <= 1) {
    return fmt::format("{} must be greater than one, got {}",
                       reader.full_key("%s.hyper_connection.count"), hparams.dsv4_hc_mult);
  }
  if (hparams.n_ple == 0) return {};
  if (hparams.n_ple != 1) {
    return fmt::format("{} lists {} layers, but only one PLE layer is supported",
                       reader.full_key("%s.ple.layers"), hparams.n_ple);
  }
  const std::int64_t layer = hparams.ple_layers.empty() ? 0 : hparams.ple_layers.front();
  if (layer >= hparams.n_layer_all) return fmt::format("PLE layer {} is out of range", layer);
  if (hparams.ple_ngram_size < 2 || hparams.ple_ngram_size > kMostNgrams) {
    return fmt::format("PLE n-gram size {} is out of range", hparams.ple_ngram_size);
  }
  const std::int64_t heads =
      saturating_product({hparams.ple_ngram_size - 1, hparams.ple_heads_per_ngram});
  if (heads == 0 || heads > kMostHeads) {
    return fmt::format("PLE head count {} is out of range", heads);
  }
  if (!hparams.is_recr(layer)) {
    return fmt::format("PLE layer {} is not a linear attention layer", layer);
  }
  return {};
}

void qwen4exp(Reader& reader) {
  const Hparams& hparams = reader.hparams;
  const auto positive = std::to_array<std::pair<std::string_view, std::int64_t>>({
      {"%s.ssm.conv_kernel", hparams.ssm_d_conv},
      {"%s.ssm.inner_size", hparams.ssm_d_inner},
      {"%s.ssm.state_size", hparams.ssm_d_state},
      {"%s.ssm.time_step_rank", hparams.ssm_dt_rank},
      {"%s.ssm.group_count", hparams.ssm_n_group},
      {"%s.hyper_connection.low_rank", hparams.hc_low_rank},
      {"%s.attention.indexer.head_count", hparams.indexer_n_head},
      {"%s.attention.indexer.key_length", hparams.indexer_head_size},
      {"%s.attention.indexer.top_k", hparams.indexer_top_k},
  });
  for (const auto& [key, value] : positive) {
    if (value != 0) continue;
    reader.fail_with(fmt::format("{} must be greater than zero, got 0", reader.full_key(key)));
  }
  if (reader.failed()) return;
  interval_recurs(reader);
  std::string problem = qwen4exp_problem(reader);
  if (!problem.empty()) reader.fail_with(std::move(problem));
}

struct ClassRule {
  std::string_view class_name;
  void (*apply)(Reader&);
};

constexpr auto kRules = std::to_array<ClassRule>({
    {"llama_model_bailingmoe3", bailingmoe3},
    {"llama_model_deepseek4", deepseek4},
    {"llama_model_dflash", dflash},
    {"llama_model_eagle3", eagle3},
    {"llama_model_falcon_h1", all_layers_recur},
    {"llama_model_gemma4", gemma4},
    {"llama_model_glm5_next", glm5_next},
    {"llama_model_glm_dsa", glm_dsa},
    {"llama_model_granite_hybrid", headless_trunk_recurs},
    {"llama_model_granite_switch", granite_switch},
    {"llama_model_hrm_text", hrm_text},
    {"llama_model_hy_v4", hy_v4},
    {"llama_model_jamba", headless_trunk_recurs},
    {"llama_model_kimi_k3", kimi_k3},
    {"llama_model_kimi_linear", headless_trunk_recurs},
    {"llama_model_lfm2", lfm2},
    {"llama_model_lfm2moe", headless_trunk_recurs},
    {"llama_model_minimax_01", minimax_01},
    {"llama_model_minimax_m3", minimax_m3},
    {"llama_model_mistral3", mistral3},
    {"llama_model_nanbeige", nanbeige},
    {"llama_model_nemotron_h", nemotron_h},
    {"llama_model_plamo2", headless_trunk_recurs},
    {"llama_model_qwen35", interval_recurs},
    {"llama_model_qwen35moe", interval_recurs},
    {"llama_model_qwen3next", interval_recurs},
    {"llama_model_qwen4exp", qwen4exp},
});

}  // namespace

void apply_class_rules(Reader& reader, std::string_view class_name) {
  const auto* const found = std::ranges::find(kRules, class_name, &ClassRule::class_name);
  if (found != kRules.end()) found->apply(reader);
}

}  // namespace kernelpath::engines::llamacpp
