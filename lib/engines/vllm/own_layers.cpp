#include "engines/vllm/own_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

// Blocks that MiniMax M3's kernels for data-centre Blackwell can choose.
constexpr std::array<std::int64_t, 4> kMsaBlocks = {4, 8, 16, 32};

const json::Value* text_section(const config::ModelConfig& model) {
  if (model.text_pointer != "/text_config") return &model.file;
  return model.file.find_non_null("text_config");
}

const json::Value* text_member(const config::ModelConfig& model, std::string_view name) {
  const json::Value* section = text_section(model);
  return section == nullptr ? nullptr : section->find_non_null(name);
}

// Entry `index` of a list of strings; empty where there is none.
std::string_view list_entry(const config::ModelConfig& model, std::string_view name,
                            std::int64_t index) {
  const json::Value* list = text_member(model, name);
  if (list == nullptr || !list->is_array() || index < 0) return {};
  const auto at = static_cast<std::size_t>(index);
  if (at >= list->items().size() || !list->items()[at].is_string()) return {};
  return list->items()[at].as_string();
}

void set_heads(const RunState& state, const config::Layer& layer, BuiltLayer& out) {
  const std::int64_t tp = state.run().tp;
  out.num_heads = layer.num_attention_heads / tp;
  out.num_kv_heads = std::max<std::int64_t>(1, layer.num_key_value_heads / tp);
  out.head_size = layer.head_dim;
  out.head_size_v = layer.head_dim;
}

}  // namespace

bool plan_minimax_m3(const RunState& state, const config::Layer& layer, PlannedLayer base,
                     LayerPlan& plan) {
  const auto& sparse = state.question.model.sparse;
  if (!sparse || !sparse->index_head_dim || !sparse->index_topk) return false;
  const Machine& machine = state.question.machine;
  const bool blocks = std::ranges::find(kMsaBlocks, *sparse->index_topk) != kMsaBlocks.end();
  const bool indexer_msa =
      machine.platform == hardware::Platform::kCuda && machine.family(10) && blocks;
  const bool msa = indexer_msa && state.run().cache_dtype != "fp8_e5m2";
  const bool later = state.profile().at_least(0, 33);
  if (later && state.run().cache_dtype.starts_with("nvfp4") && !msa) {
    plan.error = RunError{
        .stage = "model",
        .type = "ValueError",
        .text = fmt::format("MiniMax M3 sparse attention supports an NVFP4 KV cache only with the "
                            "SM100 MSA backend (kv_cache_dtype={}, topk_blocks={})",
                            state.run().cache_dtype, *sparse->index_topk),
        .rule = "VLLM-MINIMAX-M3-NVFP4"};
    return true;
  }

  PlannedLayer keys = base;
  keys.layer.role = LayerRole::kIndexer;
  keys.layer.name += ".index_cache";
  keys.layer.num_kv_heads = 1;
  keys.layer.head_size = *sparse->index_head_dim;
  keys.layer.head_size_v = keys.layer.head_size;
  keys.layer.kv_dtype = "bfloat16";
  keys.layer.class_name = indexer_msa ? "MiniMaxM3IndexerMSABackend" : "MiniMaxM3IndexerBackend";
  keys.layer.backend = state.profile().find_layer_class(keys.layer.class_name);
  keys.layer.reported_backend = "MINIMAX_M3_SPARSE_INDEXER";
  plan.layers.push_back(std::move(keys));

  set_heads(state, layer, base.layer);
  base.layer.sparse = true;
  base.fixed_backend = "MINIMAX_M3_SPARSE";
  base.own_implementation = msa ? "MiniMaxM3SparseMSAImpl" : "MiniMaxM3SparseTritonImpl";
  if (later && msa) base.own_class = "MiniMaxM3SparseMSABackend";
  plan.layers.push_back(std::move(base));
  return true;
}

bool plan_inkling(const RunState& state, const config::Layer& layer, PlannedLayer base,
                  LayerPlan& plan) {
  const config::ModelConfig& model = state.question.model;
  const std::int64_t taps = text_integer(model, "sconv_kernel_size").value_or(0);
  const std::int64_t heads = layer.num_key_value_heads;
  if (taps <= 0 || heads <= 0) return false;

  // K, V and a head's share of what attention and MLP put out, padded to a power of two.
  const std::int64_t width = 2 * layer.head_dim + 2 * (model.hidden_size.value_or(0) / heads);
  const auto padded = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(width)));
  PlannedLayer window = base;
  window.layer.role = LayerRole::kWindow;
  window.layer.name += ".conv_state";
  window.layer.kv_dtype = "auto";
  window.layer.num_kv_heads = std::max<std::int64_t>(1, heads / state.run().tp);
  window.layer.head_size = padded / 2;
  window.layer.head_size_v = padded / 2;
  window.layer.window = taps;
  window.layer.own_block_size = taps;
  window.layer.class_name = "InklingSconvBackend";
  window.layer.reported_backend = "INKLING_SCONV_SWA";
  plan.layers.push_back(std::move(window));

  set_heads(state, layer, base.layer);
  if (layer.kind == config::LayerKind::kSliding) base.layer.window = layer.window;
  base.layer.own_block_size = state.run().block_size;
  base.fixed_backend = "FLASH_ATTN";
  plan.layers.push_back(std::move(base));
  return true;
}

bool plan_static_sink(const RunState& state, const config::Layer& layer, PlannedLayer base,
                      LayerPlan& plan) {
  const config::ModelConfig& model = state.question.model;
  const auto nope = text_integer(model, "qk_nope_dim");
  const auto rope = text_integer(model, "qk_rope_dim");
  const auto values = text_integer(model, "v_channels");
  if (!nope || !rope || !values) return false;
  set_heads(state, layer, base.layer);
  base.layer.head_size = *nope + *rope;
  base.layer.head_size_v = *values;
  base.layer.sink_length = text_integer(model, "param_sink_number");
  base.prefix = "StaticSink_";
  base.fixed_backend = "FLASH_ATTN_DIFFKV";
  plan.layers.push_back(std::move(base));
  return true;
}

bool is_sparse_hy_v4(const config::ModelConfig& model, std::int64_t index) {
  constexpr std::array<std::string_view, 4> kSparse = {
      "sparse_attention", "sparse", "indexed_attention", "deepseek_sparse_attention"};
  return has_text_field(model, "index_topk") &&
         std::ranges::find(kSparse, list_entry(model, "layer_types", index)) != kSparse.end();
}

bool has_indexer_hy_v4(const config::ModelConfig& model, std::int64_t index) {
  if (index >= model.num_hidden_layers.value_or(0)) return true;
  if (text_member(model, "indexer_types") != nullptr) {
    return list_entry(model, "indexer_types", index) != "shared";
  }
  const json::Value* pattern = text_member(model, "index_topk_pattern");
  if (pattern != nullptr && pattern->is_string()) {
    const std::string& text = pattern->as_string();
    const auto at = static_cast<std::size_t>(index);
    return at >= text.size() || text[at] != 'S';
  }
  const std::int64_t every = text_integer(model, "index_topk_freq").value_or(1);
  const std::int64_t offset = text_integer(model, "index_skip_topk_offset").value_or(2);
  return every <= 1 || std::max<std::int64_t>(index - offset + 1, 0) % every == 0;
}

bool attends_plamo2(const config::ModelConfig& model, std::int64_t index) {
  const std::int64_t step = text_integer(model, "mamba_step").value_or(2);
  if (step <= 1) return false;
  const std::int64_t layers = model.num_hidden_layers.value_or(0);
  if (layers <= step / 2) return index == layers - 1;
  return index % step == step / 2;
}

}  // namespace kernelpath::engines::vllm
