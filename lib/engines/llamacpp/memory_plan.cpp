#include "engines/llamacpp/memory_plan.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr std::int64_t kStateBytes = 4;  // f32
constexpr std::int64_t kCellPadding = 256;
// DeepSeek-V4: ratios of its two compressed caches.
constexpr std::int64_t kCsaRatio = 4;
constexpr std::int64_t kHcaRatio = 128;

// Keys alone, one head of the indexer's size.
Hparams indexer_hparams(const Hparams& hparams) {
  Hparams out = hparams;
  std::ranges::fill(out.n_head_kv_arr, 1);
  out.n_embd_head_k_full = hparams.indexer_head_size;
  return out;
}

Hparams keys_only(Hparams hparams) {
  // The engine marks it as latent attention, so that no values are kept.
  hparams.n_embd_head_k_mla_impl = 1;
  hparams.n_embd_head_v_mla_impl = 1;
  return hparams;
}

class Planner {
 public:
  Planner(const LoadedModel& model, const ContextParams& params, const ContextPlan& plan)
      : model_(model),
        hparams_(model.hparams),
        params_(params),
        plan_(plan),
        sequences_(std::max<std::int64_t>(1, params.n_seq_max)) {}

  MemoryPlan run() {
    const std::string_view constant = model_.architecture->constant;
    if (model_.architecture->no_memory) return std::move(out_);
    for (const auto& [name, make] : kSpecific) {
      if (name == constant && (this->*make)()) return std::move(out_);
    }
    if (model_.architecture->recurrent) {
      out_.kind = MemoryKind::kRecurrent;
      add_state([](std::int64_t) { return true; });
    } else if (model_.architecture->hybrid) {
      plan_hybrid();
    } else {
      plan_caches();
    }
    return std::move(out_);
  }

 private:
  using Make = bool (Planner::*)();
  static const std::array<std::pair<std::string_view, Make>, 8> kSpecific;

  [[nodiscard]] std::int64_t streams(bool unified) const { return unified ? 1 : sequences_; }

  void add(std::string role, const Hparams& hparams, std::int64_t cells,
           const LayerFilter& filter) {
    add_streams(std::move(role), hparams, {cells, streams(params_.kv_unified)}, filter);
  }

  struct Extent {
    std::int64_t cells;
    std::int64_t streams;
  };
  void add_streams(std::string role, const Hparams& hparams, Extent extent,
                   const LayerFilter& filter) {
    const CacheShape shape{.hparams = hparams,
                           .params = params_,
                           .plan = plan_,
                           .constant = model_.architecture->constant,
                           .cells = extent.cells,
                           .streams = extent.streams};
    out_.caches.push_back(make_cache(std::move(role), shape, filter));
  }

  // Two caches: layers that see everything, layers that slide.
  void add_window_pair(const std::string& full, const std::string& window,
                       const LayerFilter& filter) {
    add(full, hparams_, plan_.sizes.n_ctx_seq,
        [&](std::int64_t layer) { return filter(layer) && !hparams_.is_swa(layer); });
    add(window, hparams_, window_cells(hparams_, params_, plan_.sizes, params_.kv_unified),
        [&](std::int64_t layer) { return filter(layer) && hparams_.is_swa(layer); });
  }

  void add_state(const LayerFilter& filter) {
    RecurrentState state{.cells = sequences_};
    const std::int64_t snapshots = model_.architecture->state_rollback ? params_.n_rs_seq : 0;
    const std::int64_t rows = saturating_product({sequences_, 1 + snapshots});
    for (std::int64_t layer = 0; layer < hparams_.n_layer(); ++layer) {
      if (!filter(layer)) continue;
      state.layers.push_back(layer);
      const auto bytes = [&](std::int64_t width) {
        return saturating_product({width, rows, kStateBytes});
      };
      state.r_bytes = saturating_sum(state.r_bytes, bytes(hparams_.n_embd_r()));
      state.s_bytes = saturating_sum(state.s_bytes, bytes(hparams_.n_embd_s()));
      if (hparams_.is_ple(layer)) {
        state.p_bytes = saturating_sum(state.p_bytes, bytes(hparams_.ple_conv_state()));
      }
    }
    out_.state_place = out_.caches.size();
    out_.state = std::move(state);
  }

  [[nodiscard]] bool is_trunk(std::int64_t layer) const { return layer < hparams_.n_layer(); }

  // --- classes with a memory of their own --------------------------------------------------------

  bool plan_minimax_m3() {
    out_.kind = MemoryKind::kSparseBlocks;
    const std::int64_t cells = plan_.sizes.n_ctx_seq;
    add("main", hparams_, cells, [](std::int64_t) { return true; });
    add("indexer", indexer_hparams(hparams_), cells,
        [&](std::int64_t layer) { return layer >= hparams_.n_layer_dense_lead; });
    return true;
  }

  void plan_sparse(const LayerFilter& main, const LayerFilter& indexer) {
    out_.kind = MemoryKind::kSparse;
    add("main", hparams_, plan_.sizes.n_ctx_seq, main);
    add("indexer", indexer_hparams(hparams_), plan_.sizes.n_ctx_seq, indexer);
  }

  bool plan_deepseek32() {
    const auto trunk = [&](std::int64_t layer) { return is_trunk(layer); };
    plan_sparse(trunk, trunk);
    return true;
  }

  bool plan_glm_dsa() {
    plan_sparse(
        [&](std::int64_t layer) { return is_trunk(layer); },
        [&](std::int64_t layer) { return is_trunk(layer) && hparams_.is_indexer_full(layer); });
    return true;
  }

  bool plan_hy_v4() {
    const auto every = [](std::int64_t) { return true; };
    if (hparams_.indexer_top_k == 0) {
      out_.kind = MemoryKind::kCache;
      add("full", hparams_, plan_.sizes.n_ctx_seq, every);
    } else {
      plan_sparse(every, [&](std::int64_t layer) { return hparams_.is_indexer_full(layer); });
    }
    return true;
  }

  bool plan_dots3note() {
    const auto trunk = [&](std::int64_t layer) { return is_trunk(layer); };
    plan_sparse(
        [&](std::int64_t layer) { return trunk(layer) && !hparams_.is_swa(layer); },
        [&](std::int64_t layer) { return trunk(layer) && hparams_.is_indexer_full(layer); });
    out_.kind = MemoryKind::kSparseWindow;
    add("swa", hparams_, window_cells(hparams_, params_, plan_.sizes, params_.kv_unified),
        [&](std::int64_t layer) { return trunk(layer) && hparams_.is_swa(layer); });
    return true;
  }

  // A draft head on DeepSeek-V4 keeps its window only; the others are ordinary.
  bool plan_dflash() {
    if (hparams_.dsv4_hc_mult == 0) return false;
    out_.kind = MemoryKind::kWindow;
    add_window_pair("full", "swa", [](std::int64_t) { return true; });
    return true;
  }

  static std::int64_t compressed_cells(std::int64_t cells, std::int64_t ratio) {
    const std::int64_t wanted = std::max<std::int64_t>(1, ceil_div(cells, ratio));
    return (wanted + kCellPadding - 1) / kCellPadding * kCellPadding;
  }

  [[nodiscard]] LayerFilter with_ratio(std::int64_t ratio) const {
    return [this, ratio](std::int64_t layer) {
      return hparams_.dsv4_compress_ratios[static_cast<std::size_t>(layer)] == ratio;
    };
  }

  void add_compressor(std::int64_t width, std::int64_t rows, const LayerFilter& filter) {
    for (std::int64_t layer = 0; layer < hparams_.n_layer_all; ++layer) {
      if (!filter(layer)) continue;
      constexpr std::int64_t kTensors = 2;  // what is summed, and its scores
      const std::int64_t bytes = saturating_product(
          {kTensors, width, rows, sequences_, 1 + params_.n_rs_seq, kStateBytes});
      out_.compressor_bytes = saturating_sum(out_.compressor_bytes, bytes);
    }
  }

  // Every sequence has a stream of its own, whatever the user asks for.
  bool plan_deepseek4() {
    out_.kind = MemoryKind::kDeepseek4;
    const Hparams raw = keys_only(hparams_);
    Hparams indexer = keys_only(indexer_hparams(hparams_));
    indexer.n_embd_head_k_swa = hparams_.indexer_head_size;
    indexer.n_embd_head_v_full = hparams_.indexer_head_size;
    indexer.n_embd_head_v_swa = hparams_.indexer_head_size;
    const std::int64_t cells = plan_.sizes.n_ctx_seq;
    add_streams("raw_full", raw, {cells, sequences_},
                [&](std::int64_t layer) { return !hparams_.is_swa(layer); });
    add_streams("raw_swa", raw, {window_cells(hparams_, params_, plan_.sizes, false), sequences_},
                [&](std::int64_t layer) { return hparams_.is_swa(layer); });
    const Extent csa{compressed_cells(cells, kCsaRatio), sequences_};
    const Extent hca{compressed_cells(cells, kHcaRatio), sequences_};
    add_streams("csa", raw, csa, with_ratio(kCsaRatio));
    add_streams("hca", raw, hca, with_ratio(kHcaRatio));
    add_streams("indexer", indexer, csa, with_ratio(kCsaRatio));
    const std::int64_t length = hparams_.n_embd_head_k();
    add_compressor(saturating_product({2, length}), 2 * kCsaRatio, with_ratio(kCsaRatio));
    add_compressor(length, kHcaRatio, with_ratio(kHcaRatio));
    add_compressor(saturating_product({2, hparams_.indexer_head_size}), 2 * kCsaRatio,
                   with_ratio(kCsaRatio));
    return true;
  }

  // The indexer's keys of a hybrid model. A pooling one caches key, gate and pooled values.
  void add_hybrid_indexer(const LayerFilter& filter) {
    out_.kind = MemoryKind::kHybridIndexed;
    Hparams indexer = keys_only(indexer_hparams(hparams_));
    if (hparams_.indexer_kpool > 0) {
      indexer.n_embd_head_k_full = saturating_product({3, hparams_.indexer_head_size});
    }
    add("indexer", indexer, plan_.sizes.n_ctx_seq, filter);
  }

  [[nodiscard]] bool attends(std::int64_t layer) const {
    return is_trunk(layer) && !hparams_.is_recr(layer);
  }

  bool plan_glm5_next() {
    add("attn", hparams_, plan_.sizes.n_ctx_seq,
        [&](std::int64_t layer) { return attends(layer); });
    add_state([&](std::int64_t layer) { return hparams_.is_recr(layer); });
    add_hybrid_indexer(
        [&](std::int64_t layer) { return attends(layer) && hparams_.is_indexer_full(layer); });
    return true;
  }

  // --- the rest ----------------------------------------------------------------------------------

  struct HybridLayers {
    LayerFilter attention;
    LayerFilter state;
  };

  [[nodiscard]] HybridLayers hybrid_layers() const {
    const std::string_view constant = model_.architecture->constant;
    const auto every = [](std::int64_t) { return true; };
    if (constant == "LLM_ARCH_FALCON_H1") return {every, every};
    if (constant == "LLM_ARCH_NEMOTRON_H" || constant == "LLM_ARCH_NEMOTRON_H_MOE") {
      return {[this](std::int64_t layer) {
                return !hparams_.is_recr(layer) && hparams_.n_ff(layer) == 0;
              },
              [this](std::int64_t layer) {
                return hparams_.is_recr(layer) && hparams_.n_ff(layer) == 0;
              }};
    }
    constexpr auto kTrunkOnly = std::to_array<std::string_view>(
        {"LLM_ARCH_QWEN3NEXT", "LLM_ARCH_QWEN35", "LLM_ARCH_QWEN35MOE", "LLM_ARCH_QWEN4EXP",
         "LLM_ARCH_MINIMAX_01"});
    const bool trunk_only = std::ranges::find(kTrunkOnly, constant) != kTrunkOnly.end();
    return {[this, trunk_only](std::int64_t layer) {
              return (!trunk_only || is_trunk(layer)) && !hparams_.is_recr(layer);
            },
            [this](std::int64_t layer) { return hparams_.is_recr(layer); }};
  }

  void plan_hybrid() {
    const HybridLayers layers = hybrid_layers();
    const bool indexed = model_.architecture->constant == "LLM_ARCH_QWEN4EXP";
    if (hparams_.swa_type != WindowType::kNone) {
      out_.kind = MemoryKind::kHybridWindow;
      add_window_pair("attn_full", "attn_swa", layers.attention);
      add_state(layers.state);
      return;
    }
    out_.kind = MemoryKind::kHybrid;
    add("attn", hparams_, plan_.sizes.n_ctx_seq, layers.attention);
    add_state(layers.state);
    if (!indexed) return;
    if (hparams_.indexer_head_size > 0) {
      add_hybrid_indexer(layers.attention);
    } else {
      out_.kind = MemoryKind::kHybridIndexed;
    }
  }

  void plan_caches() {
    // A model of prediction layers alone has no trunk, and a router layer is one that attends.
    const bool leaves_out =
        hparams_.n_layer_nextn > 0 && hparams_.n_layer() > 0 && hparams_.router_layer < 0;
    const LayerFilter filter = [&](std::int64_t layer) { return !leaves_out || is_trunk(layer); };
    if (hparams_.swa_type != WindowType::kNone) {
      out_.kind = MemoryKind::kWindow;
      add_window_pair("full", "swa", filter);
    } else {
      out_.kind = MemoryKind::kCache;
      add("full", hparams_, plan_.sizes.n_ctx_seq, filter);
    }
  }

  const LoadedModel& model_;
  const Hparams& hparams_;
  const ContextParams& params_;
  const ContextPlan& plan_;
  std::int64_t sequences_;
  MemoryPlan out_;
};

const std::array<std::pair<std::string_view, Planner::Make>, 8> Planner::kSpecific = {{
    {"LLM_ARCH_MINIMAX_M3", &Planner::plan_minimax_m3},
    {"LLM_ARCH_GLM_DSA", &Planner::plan_glm_dsa},
    {"LLM_ARCH_DEEPSEEK32", &Planner::plan_deepseek32},
    {"LLM_ARCH_GLM5_NEXT", &Planner::plan_glm5_next},
    {"LLM_ARCH_HY_V4", &Planner::plan_hy_v4},
    {"LLM_ARCH_DOTS3NOTE", &Planner::plan_dots3note},
    {"LLM_ARCH_DEEPSEEK4", &Planner::plan_deepseek4},
    {"LLM_ARCH_DFLASH", &Planner::plan_dflash},
}};

}  // namespace

std::string_view memory_kind_name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kNone:
      return "none";
    case MemoryKind::kCache:
      return "kv";
    case MemoryKind::kWindow:
      return "iswa";
    case MemoryKind::kSparseBlocks:
      return "msa";
    case MemoryKind::kSparse:
      return "dsa";
    case MemoryKind::kSparseWindow:
      return "dsa_iswa";
    case MemoryKind::kDeepseek4:
      return "dsv4";
    case MemoryKind::kRecurrent:
      return "recurrent";
    case MemoryKind::kHybrid:
      return "hybrid";
    case MemoryKind::kHybridWindow:
      return "hybrid_iswa";
    case MemoryKind::kHybridIndexed:
      return "hybrid_idx";
  }
  return "none";
}

std::int64_t RecurrentState::bytes() const {
  return saturating_sum(saturating_sum(r_bytes, s_bytes), p_bytes);
}

std::int64_t MemoryPlan::kv_bytes() const {
  std::int64_t out = 0;
  for (const Cache& cache : caches) {
    out = saturating_sum(out, saturating_sum(cache.k_total(), cache.v_total()));
  }
  return out;
}

MemoryPlan plan_memory(const LoadedModel& model, const ContextParams& params,
                       const ContextPlan& plan) {
  return Planner(model, params, plan).run();
}

}  // namespace kernelpath::engines::llamacpp
