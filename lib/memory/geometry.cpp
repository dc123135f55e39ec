#include "memory/geometry.h"

#include <algorithm>
#include <tuple>

namespace kernelpath::memory {
namespace {

using config::LayerKind;

auto key(const config::Layer& layer) {
  return std::tuple(layer.kind, layer.num_attention_heads, layer.num_key_value_heads,
                    layer.head_dim, layer.v_head_dim, layer.moe, layer.has_state,
                    layer.intermediate_size);
}

// GLM-5.2 lets layers reuse the choice of an earlier one: those have no indexer.
// Source: transformers 5.24.0, models/glm_moe_dsa/configuration_glm_moe_dsa.py
bool has_own_indexer(const Geometry& geometry, std::size_t index) {
  if (!geometry.model.sparse || !geometry.model.sparse->index_n_heads) return false;
  const std::int64_t every = std::max<std::int64_t>(geometry.integer_or("index_topk_freq", 1), 1);
  const std::int64_t offset =
      std::max<std::int64_t>(geometry.integer_or("index_skip_topk_offset", 2), 0);
  const auto place = static_cast<std::int64_t>(index) + 1;
  return place <= offset || (place - offset) % every == 0;
}

Tensor norm(const Geometry& geometry, Size width, std::int64_t count) {
  const bool has_bias = geometry.family.norm == NormKind::kLayer;
  return Tensor{.part = Part::kNorm,
                .name = "norm",
                .rows = width,
                .storage = Storage::kPlain,
                .bias = has_bias,
                .count = geometry.family.norm == NormKind::kNone ? 0 : count};
}

// "MistralModel": an encoder of texts without an output projection.
bool is_base_model(const config::ModelConfig& model) {
  constexpr std::string_view kModel = "Model";
  if (model.architectures.empty()) return false;
  const std::string_view name = model.architectures.front();
  return name.size() >= kModel.size() && name.substr(name.size() - kModel.size()) == kModel &&
         name.find("LMHead") == std::string_view::npos;
}

// The norms of a layer; two families have one less where attention and MLP run in parallel.
std::int64_t layer_norms(const Geometry& geometry, const config::Layer& layer) {
  const Family& family = geometry.family;
  if (family.model_type == "falcon") {
    return geometry.integer_or("new_decoder_architecture", 0) != 0 ||
                   geometry.integer_or("parallel_attn", 1) == 0
               ? 2
               : 1;
  }
  if (family.model_type == "stablelm" && geometry.integer_or("use_parallel_residual", 0) != 0) {
    return 1;
  }
  // A layer whose attention was pruned away has lost its first norm (Nemotron-NAS).
  if (layer.kind == LayerKind::kNone && !family.one_mixer) return family.norms - 1;
  // Gemma-4 norms the inputs and outputs of its dense and its routed half apart.
  if (family.model_type == "gemma4_text" && layer.moe) return family.norms + 3;
  return family.norms;
}

}  // namespace

std::optional<std::int64_t> Geometry::integer(std::string_view field) const {
  const auto& members = model.text_integers;
  const auto found = std::lower_bound(
      members.begin(), members.end(), field,
      [](const auto& member, std::string_view name) { return member.first < name; });
  if (found == members.end() || found->first != field) return std::nullopt;
  return found->second;
}

std::int64_t Geometry::integer_or(std::string_view field, std::int64_t other) const {
  return integer(field).value_or(other);
}

bool Geometry::flag(const Flag& flag) const {
  if (flag.field.empty()) return flag.value;
  const auto stated = integer(flag.field);
  if (!stated) return flag.value;
  return (*stated != 0) != flag.negated;
}

bool operator==(const LayerShape& a, const LayerShape& b) {
  return key(a.layer) == key(b.layer) && a.indexer == b.indexer &&
         a.compress_ratio == b.compress_ratio && a.hashed_router == b.hashed_router;
}

LayerShape layer_shape(const Geometry& geometry, std::size_t index) {
  LayerShape shape{.layer = geometry.model.layers[index]};
  shape.indexer = has_own_indexer(geometry, index);
  if (geometry.family.model_type == "deepseek_v4") {
    const auto& ratios = geometry.model.sparse ? geometry.model.sparse->compress_ratios
                                               : std::vector<std::int64_t>{};
    shape.compress_ratio = index < ratios.size() ? ratios[index] : 0;
    shape.hashed_router =
        static_cast<std::int64_t>(index) < geometry.integer_or("num_hash_layers", 0);
  }
  return shape;
}

std::vector<Tensor> layer_tensors(const Geometry& geometry, const LayerShape& shape) {
  if (geometry.family.model_type == "deepseek_v4") return deepseek_v4_layer(geometry, shape);
  std::vector<Tensor> out;
  const LayerKind kind = shape.layer.kind;
  const bool attends =
      kind != LayerKind::kLinear && kind != LayerKind::kMamba && kind != LayerKind::kNone;
  if (shape.layer.has_state) append_state(geometry, shape.layer, out);
  for (int half = 0; attends && half < geometry.family.halves; ++half) {
    append_attention(geometry, shape, out);
  }
  const bool mixer_only = geometry.family.one_mixer && kind != LayerKind::kNone;
  if (!mixer_only) append_mlp(geometry, shape, out);
  out.push_back(norm(geometry, geometry.hidden, layer_norms(geometry, shape.layer)));
  if (geometry.family.layer_scalar) out.push_back(norm(geometry, 1, 1));
  return out;
}

std::vector<Tensor> input_tensors(const Geometry& geometry) {
  const Family& family = geometry.family;
  std::vector<Tensor> out;
  const auto embedding = [&](std::string_view name, Size rows) {
    out.push_back({.part = Part::kEmbedding,
                   .name = name,
                   .rows = rows,
                   .columns = geometry.hidden,
                   .split = Split::kRows,
                   .storage = Storage::kPlain});
  };
  // Mllama's table has 8 more entries for image tokens, which the output projection lacks.
  const std::int64_t more = family.model_type == "mllama_text_model" ? 8 : 0;
  embedding("embed_tokens", Size(geometry.vocab) + Size(more));
  if (!family.positions.empty()) {
    const auto length = geometry.integer(family.positions);
    const std::int64_t positions =
        length.value_or(geometry.model.max_position_embeddings.value_or(0));
    embedding("embed_positions", Size(positions) + Size(family.extra_positions));
    out.back().split = Split::kNone;
  }
  if (family.embedding_norm) out.push_back(norm(geometry, geometry.hidden, 1));
  append_draft_input(geometry, out);
  return out;
}

bool is_tied(const Geometry& geometry) {
  return geometry.model.tie_word_embeddings.value_or(geometry.family.tied);
}

bool has_classifier(const config::ModelConfig& model) {
  constexpr std::string_view kClassifier = "ForSequenceClassification";
  return !model.architectures.empty() &&
         model.architectures.front().find(kClassifier) != std::string::npos;
}

std::vector<Tensor> output_tensors(const Geometry& geometry) {
  std::vector<Tensor> out = {norm(geometry, geometry.hidden, 1)};
  const config::ModelConfig& model = geometry.model;
  if (geometry.family.model_type == "deepseek_v4") {
    const Size streams = geometry.integer_or("hc_mult", 1);
    out.push_back({.part = Part::kNorm,
                   .name = "hc_head",
                   .rows = streams * streams * geometry.hidden + streams + Size(1),
                   .storage = Storage::kPlain});
  }
  if (is_tied(geometry) || has_classifier(model) || is_base_model(model)) return out;
  out.push_back({.part = Part::kLmHead,
                 .name = "lm_head",
                 .rows = model.draft.draft_vocab_size.value_or(geometry.vocab),
                 .columns = geometry.hidden,
                 .split = Split::kRows,
                 .storage = Storage::kHead,
                 .bias = geometry.flag(geometry.family.head_bias)});
  return out;
}

// Two norms and a projection of [embedding, hidden state] stand before the decoder layer.
// Source: vLLM, model_executor/models/deepseek_mtp.py and qwen3_next_mtp.py
std::vector<Tensor> mtp_tensors(const Geometry& geometry) {
  std::vector<Tensor> out = {norm(geometry, geometry.hidden, 3)};
  out.push_back({.name = "eh_proj",
                 .rows = geometry.hidden,
                 .columns = Size(2) * geometry.hidden,
                 .storage = Storage::kPlain});
  return out;
}

// What a draft makes of the target's hidden states before its first layer. Absent table entries of
// the draft's own vocabulary are counted at 8 bytes (d2t) and 1 byte (t2d) an entry elsewhere.
// Source: SpecForge, modeling/draft/llama3_eagle.py and dflash.py
void append_draft_input(const Geometry& geometry, std::vector<Tensor>& out) {
  const config::Draft& draft = geometry.model.draft;
  const bool eagle3 = draft.has_draft_vocab_size;
  if (!eagle3 && !draft.has_dflash_config) return;
  const std::int64_t states =
      draft.target_layer_ids.empty() ? 3 : static_cast<std::int64_t>(draft.target_layer_ids.size());
  const std::int64_t target = geometry.integer_or("target_hidden_size", geometry.hidden);
  out.push_back({.part = Part::kDraft,
                 .name = "fc",
                 .rows = geometry.hidden,
                 .columns = Size(states) * target,
                 .storage = Storage::kPlain});
  out.push_back(norm(geometry, geometry.hidden, 1));
}

}  // namespace kernelpath::memory
