#include "model/attention_layers.h"

#include <fmt/format.h>

#include <utility>

namespace kernelpath::model {
namespace {

attention::LayerRequest request_of(const DecoderSpec& spec, const LayerSpec& layer,
                                   const AttentionOptions& options) {
  attention::LayerRequest request;
  request.geometry = {.num_heads = spec.num_heads,
                      .num_kv_heads = spec.num_kv_heads,
                      .head_dim = spec.head_dim,
                      .v_head_dim = spec.head_dim,
                      .softmax_scale = spec.softmax_scale,
                      .softcap = spec.attention_softcap,
                      .window = layer.window,
                      .chunk = layer.chunk,
                      .causal = true};
  request.sinks = spec.family->sinks;
  request.kv_type = options.kv_type;
  request.layout = options.layout;
  request.page_size = options.page_size;
  request.max_seq_len = options.max_seq_len;
  request.context_parallel = options.shard.count;
  if (options.shard.count > 1) request.lse_base = attention::LogBase::kE;
  if (layer.mixer != Mixer::kLatent) return request;
  const MlaSpec& mla = *spec.mla;
  request.mla = attention::MlaDims{.q_lora_rank = mla.q_lora_rank,
                                   .kv_lora_rank = mla.kv_lora_rank,
                                   .qk_nope_head_dim = mla.nope,
                                   .qk_rope_head_dim = mla.rope,
                                   .v_head_dim = mla.v_head_dim};
  request.geometry = attention::mqa_geometry(request.geometry, *request.mla);
  request.sparse = layer.index || layer.shared_index;
  return request;
}

Unexpected no_backend(const std::string& name, const attention::Selection& selection) {
  std::vector<std::string> reasons;
  for (const attention::Candidate& candidate : selection.candidates) {
    for (const attention::Refusal& refusal : candidate.refusals) {
      reasons.push_back(fmt::format("{}: {}", candidate.row->name, refusal.reason));
    }
  }
  return fail(Error{.code = ErrorCode::kUnavailable,
                    .message = fmt::format("no attention backend can run this layer: {}",
                                           fmt::join(reasons, "; ")),
                    .where = name});
}

}  // namespace

const attention::BackendRow& AttentionLayer::backend() const {
  return std::visit([](const auto& any) -> const attention::BackendRow& { return any.backend(); },
                    attention);
}

std::string LayerTable::add(const std::string& name,
                            const std::shared_ptr<const AttentionLayer>& layer) {
  std::string free = name;
  for (int suffix = 1; find(free) != nullptr; ++suffix) free = fmt::format("{}.{}", name, suffix);
  layers_.insert_or_assign(free, layer);
  return free;
}

std::shared_ptr<const AttentionLayer> LayerTable::find(std::string_view name) const {
  const auto found = layers_.find(name);
  return found == layers_.end() ? nullptr : found->second.lock();
}

std::vector<std::string> LayerTable::names() const {
  std::vector<std::string> out;
  for (const auto& [name, layer] : layers_) {
    if (!layer.expired()) out.push_back(name);
  }
  return out;
}

Result<AttentionLayers> AttentionLayers::make(const DecoderSpec& spec,
                                              const AttentionOptions& options) {
  AttentionLayers out;
  attention::Selector selector;
  out.layers_.resize(spec.layers.size());
  for (std::size_t l = 0; l < spec.layers.size(); ++l) {
    if (spec.layers[l].mixer == Mixer::kDelta) continue;
    KERNELPATH_CHECK_OK(out.add_layer(spec, l, options, selector));
  }
  out.metadata_.resize(out.kinds_.size());
  return out;
}

Result<void> AttentionLayers::add_layer(const DecoderSpec& spec, std::size_t number,
                                        const AttentionOptions& options,
                                        attention::Selector& selector) {
  const std::string name = fmt::format("model.layers.{}.self_attn", number);
  const attention::LayerRequest request = request_of(spec, spec.layers[number], options);
  const auto& selection = selector.select({.layer = request, .backend = options.backend});
  if (!selection) return fail(selection.error());
  if (selection->chosen == nullptr) return no_backend(name, *selection);
  const attention::BackendRow& backend = *selection->chosen;
  std::shared_ptr<AttentionLayer> layer;
  if (request.mla) {
    KERNELPATH_TRY(built, attention::MlaAttention::make(backend, request));
    layer = std::make_shared<AttentionLayer>(AttentionLayer{
        .name = name,
        .attention = built,
        .kind = kind_of(request.geometry, backend, built.metadata_builder(options.shard))});
  } else {
    KERNELPATH_TRY(built, attention::Attention::make(backend, request));
    layer = std::make_shared<AttentionLayer>(AttentionLayer{
        .name = name,
        .attention = built,
        .kind = kind_of(request.geometry, backend, built.metadata_builder(options.shard))});
  }
  layer->name = table_.add(name, layer);
  layers_[number] = std::move(layer);
  return {};
}

std::size_t AttentionLayers::kind_of(const attention::Geometry& geometry,
                                     const attention::BackendRow& backend,
                                     const attention::MetadataBuilder& builder) {
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    if (kinds_[kind].geometry == geometry && kinds_[kind].backend == &backend) return kind;
  }
  kinds_.push_back({geometry, &backend, builder});
  return kinds_.size() - 1;
}

Result<void> AttentionLayers::begin(const attention::CommonMetadata& common) {
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    KERNELPATH_TRY(built, kinds_[kind].builder.build(0, common));
    metadata_[kind] = built;
  }
  return {};
}

}  // namespace kernelpath::model
