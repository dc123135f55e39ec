#include "engines/trtllm/layer_resolution.h"

#include "base/text.h"
#include "engines/trtllm/attention_module.h"
#include "engines/trtllm/backend_contract.h"
#include "engines/trtllm/inner_kernels.h"
#include "engines/trtllm/rules_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace kernelpath::engines::trtllm {
namespace {

using config::LayerKind;

bool has_attention(LayerKind kind) {
  return kind != LayerKind::kLinear && kind != LayerKind::kMamba && kind != LayerKind::kNone;
}

// Everything by which one layer can resolve otherwise than another.
auto layer_key(const config::Layer& layer) {
  return std::tuple(layer.kind, layer.num_attention_heads, layer.num_key_value_heads,
                    layer.head_dim, layer.v_head_dim, layer.window, layer.rope, layer.shares_kv);
}

struct Distinct {
  const config::Layer* layer;
  std::vector<std::int64_t> indices;
};

std::vector<Distinct> distinct_layers(const std::vector<config::Layer>& layers) {
  std::vector<Distinct> out;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const Distinct& seen) {
      return layer_key(*seen.layer) == layer_key(layers[i]);
    });
    if (same != out.end()) {
      same->indices.push_back(static_cast<std::int64_t>(i));
    } else {
      out.push_back({&layers[i], {static_cast<std::int64_t>(i)}});
    }
  }
  return out;
}

// The steps of one layer repeat those of another wherever the same rule says the same.
void append_new(const std::vector<Step>& from, std::vector<Step>& to) {
  for (const Step& step : from) {
    const bool known = std::any_of(to.begin(), to.end(), [&](const Step& seen) {
      return seen.rule == step.rule && seen.candidate == step.candidate &&
             seen.reason == step.reason;
    });
    if (!known) to.push_back(step);
  }
}

// Llama 4 alone hands a chunk size to its attention layers, and only if its own gates let it.
std::optional<std::int64_t> chunk_size(const LayerContext& context, const config::Layer& layer,
                                       std::vector<Step>& steps) {
  if (layer.kind != LayerKind::kChunked || context.architecture.rfind("Llama4", 0) != 0) {
    return std::nullopt;
  }
  const Llama4ChunkDecision decision = llama4_chunk(
      {.attn_backend = context.backend,
       .sm = context.request.device.capability->sm(),
       .spec_config = context.arguments.text("speculative_config.decoding_type").has_value(),
       .max_seq_len = context.max_seq_len,
       .attention_chunk_size = layer.window});
  append_steps(decision, steps);
  return decision.attention_chunk_size;
}

std::string position_embedding(const config::ModelConfig& model, const config::Layer& layer) {
  const std::string type = model.rope.type.value_or(model.rope.theta ? "default" : "");
  if (!layer.rope || type.empty() || type == "none") return "";
  return type == "mrope" || !model.rope.mrope_section.empty() ? "mrope" : "rope";
}

std::optional<MlaDimensions> mla_dimensions(const config::ModelConfig& model) {
  if (!model.mla) return std::nullopt;
  const config::Mla& mla = *model.mla;
  // The module passes hidden_size where the checkpoint compresses no queries (q_lora_rank null).
  return MlaDimensions{
      .q_lora_rank = mla.q_lora_rank ? mla.q_lora_rank.value : model.hidden_size.value,
      .kv_lora_rank = mla.kv_lora_rank.value,
      .qk_rope_head_dim = mla.qk_rope_head_dim.value,
      .qk_nope_head_dim = mla.qk_nope_head_dim.value,
      .v_head_dim = mla.v_head_dim.value};
}

std::optional<SparseRequest> sparse_request(const LayerContext& context) {
  if (!context.sparse) return std::nullopt;
  return SparseRequest{
      .algorithm = context.sparse->algorithm,
      .implementation =
          context.arguments.text("sparse_attention_config.implementation").value_or("triton"),
      .msa_available = context.request.environment.available("msa", false),
      .sm = context.request.device.capability->sm()};
}

ModuleGeometryRequest geometry_request(const LayerContext& context, const config::Layer& layer) {
  const config::ModelConfig& model = context.request.model;
  return {.hidden_size = model.hidden_size.value_or(0),
          .num_heads = layer.num_attention_heads,
          .num_kv_heads = layer.num_key_value_heads,
          .head_dim_argument = layer.head_dim,
          .head_dim_config =
              model.head_dim_is_explicit.value_or(false) ? model.head_dim.value : std::nullopt,
          .tp = context.arguments.integer("tensor_parallel_size").value_or(1),
          .cp = context.arguments.integer("context_parallel_size").value_or(1),
          .attention_dp = context.arguments.flag("enable_attention_dp")};
}

std::string kv_shape(const LayerContext& context, const ModuleGeometry& geometry,
                     std::string_view layout, const std::optional<MlaDimensions>& mla) {
  const std::int64_t page =
      context.arguments.integer("kv_cache_config.tokens_per_block").value_or(32);
  if (mla) {
    return fmt::format("[pages, 1, 1, {}, {}]", page, mla_instances(*mla).mqa_head_dim);
  }
  if (layout == "NHD") {
    return fmt::format("[pages, 2, {}, {}, {}]", page, geometry.kv_heads_per_rank,
                       geometry.head_dim);
  }
  return fmt::format("[pages, 2, {}, {}, {}]", geometry.kv_heads_per_rank, page, geometry.head_dim);
}

void fill_cache(const LayerContext& context, const config::Layer& layer,
                const ModuleGeometry& geometry, LayerGroup& group) {
  if (layer.kind == LayerKind::kEncoder || layer.shares_kv) return;
  const BackendCapability* capability = find_capability(group.backend);
  group.kv.dtype = std::string(data_type_name(context.kv_dtype));
  group.kv.layout = capability == nullptr ? "HND" : std::string(capability->kv_layout);
  group.kv.page_size = context.arguments.integer("kv_cache_config.tokens_per_block");
  group.kv.shape =
      kv_shape(context, geometry, group.kv.layout, mla_dimensions(context.request.model));
}

LayerGroup layer_without_attention(const Distinct& distinct, std::vector<Step>& steps) {
  LayerGroup group;
  group.kind = distinct.layer->kind;
  group.layers = distinct.indices;
  append_engine_step(
      {.rule = "TRT-LAYER-NO-ATTENTION",
       .stage = Stage::kRewrite,
       .candidate = std::string(config::layer_kind_name(group.kind)),
       .reason = fmt::format("{} layers of kind {}: no attention backend, no paged KV",
                             group.layers.size(), config::layer_kind_name(group.kind))},
      steps);
  return group;
}

// One attention module: its gates, its backend instance, its inner kernels.
std::optional<EngineError> build_attention(const LayerContext& context, const Distinct& distinct,
                                           LayerGroup& group, LayerResolution& out,
                                           std::vector<Step>& steps) {
  const config::Layer& layer = *distinct.layer;
  const ModuleGeometry geometry = module_geometry(geometry_request(context, layer));
  append_steps(geometry, steps);
  if (geometry.error) return geometry.error;

  const CreateAttentionRequest create = {
      .dispatch = {.name = context.backend,
                   .sparse = sparse_request(context),
                   .flashinfer_available = context.request.environment.available("flashinfer")},
      .attention_chunk_size = chunk_size(context, layer, steps),
      .mla = mla_dimensions(context.request.model)};
  const CreateAttentionDecision decision = create_attention(create);
  append_steps(decision, steps);
  if (decision.error) return decision.error;
  group.backend = decision.backend_class;
  if (out.backend_class.empty()) {
    out.backend_class = decision.backend_class;
    out.selected_backend = decision.dispatch->selected_backend;
    out.fell_back = decision.dispatch->fell_back;
    out.fallback_reason = decision.dispatch->flashinfer_missing
                              ? "FLASHINFER is not installed"
                              : fmt::format("{} is no backend name", context.backend);
  }
  if (!create.mla) {
    const RopeGateDecision rope =
        rope_gate({.backend_class = group.backend,
                   .pos_embd = position_embedding(context.request.model, layer)});
    append_steps(rope, steps);
    group.rope_fused = rope.rope_fusion;
  }
  fill_cache(context, layer, geometry, group);
  return choose_inner_kernels({.layers = context,
                               .layer = layer,
                               .geometry = geometry,
                               .selected_backend = decision.dispatch->selected_backend},
                              group, steps);
}

}  // namespace

LayerResolution resolve_layers(const LayerContext& context, std::vector<Step>& steps) {
  LayerResolution out;
  for (const Distinct& distinct : distinct_layers(context.request.model.layers)) {
    std::vector<Step> own;
    if (!has_attention(distinct.layer->kind)) {
      out.groups.push_back(layer_without_attention(distinct, own));
      append_new(own, steps);
      continue;
    }
    LayerGroup group;
    group.kind = distinct.layer->kind;
    group.layers = distinct.indices;
    group.window = distinct.layer->window;
    out.error = build_attention(context, distinct, group, out, own);
    append_new(own, steps);
    if (out.error) return out;
    out.groups.push_back(std::move(group));
  }
  return out;
}

}  // namespace kernelpath::engines::trtllm
