#include "model/layers.h"

#include <fmt/format.h>

#include <functional>
#include <numeric>

namespace kernelpath::model {
namespace {

// Makes the parts of one layer.
class LayerMaker {
 public:
  LayerMaker(const DecoderSpec& spec, std::size_t number)
      : spec_(spec),
        family_(*spec.family),
        layer_(spec.layers[number]),
        prefix_(fmt::format("model.layers.{}", number)) {}

  Layer make() {
    Layer out;
    norms(out);
    switch (layer_.mixer) {
      case Mixer::kHeads:
        out.heads = heads();
        break;
      case Mixer::kLatent:
        out.latent = latent();
        break;
      case Mixer::kDelta:
        out.delta = delta();
        break;
    }
    if (layer_.moe) {
      out.moe = moe();
    } else {
      out.mlp = mlp("", layer_.intermediate_size, family_.fused_gate_up);
    }
    return out;
  }

 private:
  [[nodiscard]] std::string attention(std::string_view name) const {
    return fmt::format("{}.self_attn.{}", prefix_, name);
  }

  [[nodiscard]] Linear attention_linear(std::string_view name, std::int64_t out, std::int64_t in,
                                        bool bias = false) const {
    return {.module = attention(name), .out = out, .in = in, .has_bias = bias};
  }

  [[nodiscard]] Vector attention_vector(std::string_view name,
                                        std::vector<std::int64_t> shape) const {
    return {.name = attention(name), .shape = std::move(shape)};
  }

  void norms(Layer& out) const {
    const auto norm = [&](std::string_view name) {
      if (name.empty()) return Vector{};
      return Vector{.name = fmt::format("{}.{}.weight", prefix_, name),
                    .shape = {spec_.hidden_size}};
    };
    out.attn_in = norm(family_.attn_in);
    out.attn_out = norm(family_.attn_out);
    out.mlp_in = norm(family_.mlp_in);
    out.mlp_out = norm(family_.mlp_out);
  }

  [[nodiscard]] HeadsWeights heads() const {
    HeadsWeights out;
    const std::int64_t q = spec_.q_width();
    const std::int64_t kv = spec_.kv_width();
    if (family_.fused_qkv) {
      out.qkv = attention_linear("qkv_proj", q + 2 * kv, spec_.hidden_size, spec_.qkv_bias);
    } else {
      out.q = attention_linear("q_proj", q, spec_.hidden_size, spec_.qkv_bias);
      out.k = attention_linear("k_proj", kv, spec_.hidden_size, spec_.qkv_bias);
      out.v = attention_linear("v_proj", kv, spec_.hidden_size, spec_.qkv_bias);
    }
    out.o = attention_linear("o_proj", spec_.hidden_size, q, spec_.o_bias);
    const bool whole = spec_.qk_norm == QkNorm::kWhole;
    if (whole || spec_.qk_norm == QkNorm::kPerHead) {
      out.q_norm = attention_vector("q_norm.weight", {whole ? q : spec_.head_dim});
      out.k_norm = attention_vector("k_norm.weight", {whole ? kv : spec_.head_dim});
    }
    if (family_.sinks) out.sinks = attention_vector("sinks", {spec_.num_heads});
    return out;
  }

  [[nodiscard]] LatentWeights latent() const {
    LatentWeights out;
    const MlaSpec& mla = *spec_.mla;
    const std::int64_t hidden = spec_.hidden_size;
    const std::int64_t q = spec_.num_heads * (mla.nope + mla.rope);
    if (mla.q_lora_rank == 0) {
      out.q = attention_linear("q_proj", q, hidden);
    } else {
      out.q_a = attention_linear("q_a_proj", mla.q_lora_rank, hidden, spec_.qkv_bias);
      out.q_a_norm = attention_vector("q_a_layernorm.weight", {mla.q_lora_rank});
      out.q_b = attention_linear("q_b_proj", q, mla.q_lora_rank);
    }
    out.kv_a = attention_linear("kv_a_proj_with_mqa", mla.row(), hidden, spec_.qkv_bias);
    out.kv_a_norm = attention_vector("kv_a_layernorm.weight", {mla.kv_lora_rank});
    out.kv_b = attention_linear("kv_b_proj", spec_.num_heads * (mla.nope + mla.v_head_dim),
                                mla.kv_lora_rank);
    out.o = attention_linear("o_proj", hidden, spec_.num_heads * mla.v_head_dim, spec_.o_bias);
    if (layer_.index) out.index = index();
    return out;
  }

  [[nodiscard]] IndexWeights index() const {
    const IndexSpec& index = *spec_.index;
    IndexWeights out;
    out.q = attention_linear("indexer.wq_b", index.heads * index.head_dim, spec_.mla->q_lora_rank);
    out.k = attention_linear("indexer.wk", index.head_dim, spec_.hidden_size);
    out.weights = attention_linear("indexer.weights_proj", index.heads, spec_.hidden_size);
    out.weights.quantizable = false;
    out.k_norm = attention_vector("indexer.k_norm.weight", {index.head_dim});
    out.k_norm_bias = attention_vector("indexer.k_norm.bias", {index.head_dim});
    return out;
  }

  [[nodiscard]] DeltaWeights delta() const {
    const DeltaSpec& delta = *spec_.delta;
    const std::int64_t hidden = spec_.hidden_size;
    const std::int64_t width = delta.width();
    DeltaWeights out;
    out.q = attention_linear("q_proj", width, hidden);
    out.k = attention_linear("k_proj", width, hidden);
    out.v = attention_linear("v_proj", width, hidden);
    out.q_conv = attention_vector("q_conv1d.weight", {width, 1, delta.conv_kernel});
    out.k_conv = attention_vector("k_conv1d.weight", {width, 1, delta.conv_kernel});
    out.v_conv = attention_vector("v_conv1d.weight", {width, 1, delta.conv_kernel});
    out.f_a = attention_linear("f_a_proj", delta.head_dim, hidden);
    out.f_b = attention_linear("f_b_proj", width, delta.head_dim);
    out.g_a = attention_linear("g_a_proj", delta.head_dim, hidden);
    out.g_b = attention_linear("g_b_proj", width, delta.head_dim);
    out.beta = attention_linear("b_proj", delta.heads, hidden);
    out.o = attention_linear("o_proj", hidden, width);
    out.a_log = attention_vector("A_log", {1, 1, delta.heads, 1});
    out.dt_bias = attention_vector("dt_bias", {width});
    out.o_norm = attention_vector("o_norm.weight", {delta.head_dim});
    return out;
  }

  // A projection of the MLP or of an expert: `path` lies below the MLP's prefix.
  [[nodiscard]] Linear mlp_linear(std::string_view path, std::int64_t out, std::int64_t in,
                                  bool bias = false) const {
    Linear linear{.module = fmt::format("{}.{}.{}", prefix_, family_.mlp, path),
                  .out = out,
                  .in = in,
                  .has_bias = bias};
    if (!family_.mlp_alias.empty()) {
      linear.alias = fmt::format("{}.{}.{}", prefix_, family_.mlp_alias, path);
    }
    return linear;
  }

  [[nodiscard]] MlpWeights mlp(std::string_view below, std::int64_t inner, bool fused) const {
    MlpWeights out;
    const std::string path = below.empty() ? "" : fmt::format("{}.", below);
    const std::int64_t hidden = spec_.hidden_size;
    const bool bias = below.empty() && spec_.mlp_bias;
    if (fused) {
      out.gate_up = mlp_linear(path + "gate_up_proj", 2 * inner, hidden, bias);
    } else {
      out.gate = mlp_linear(path + "gate_proj", inner, hidden, bias);
      out.up = mlp_linear(path + "up_proj", inner, hidden, bias);
    }
    out.down = mlp_linear(path + "down_proj", hidden, inner, bias);
    return out;
  }

  [[nodiscard]] MlpWeights expert(std::int64_t number) const {
    const MoeSpec& moe = *spec_.moe;
    if (family_.expert_names == ExpertNames::kProjections) {
      return mlp(fmt::format("experts.{}", number), moe.intermediate_size, false);
    }
    MlpWeights out;
    const std::string path = fmt::format("experts.{}.", number);
    out.gate = mlp_linear(path + "w1", moe.intermediate_size, spec_.hidden_size);
    out.up = mlp_linear(path + "w3", moe.intermediate_size, spec_.hidden_size);
    out.down = mlp_linear(path + "w2", spec_.hidden_size, moe.intermediate_size);
    return out;
  }

  [[nodiscard]] StackedLinear stacked(std::string_view name, std::int64_t out,
                                      std::int64_t in) const {
    return {.module = fmt::format("{}.{}.experts.{}", prefix_, family_.mlp, name),
            .experts = spec_.moe->experts,
            .out = out,
            .in = in,
            .has_bias = spec_.moe->biases};
  }

  [[nodiscard]] MoeWeights moe() const {
    const MoeSpec& moe = *spec_.moe;
    MoeWeights out;
    out.router = mlp_linear(family_.router_name, moe.experts, spec_.hidden_size, moe.biases);
    out.router.quantizable = false;
    if (moe.correction) {
      const auto name = [&](std::string_view mlp) {
        return fmt::format("{}.{}.{}.e_score_correction_bias", prefix_, mlp, family_.router_name);
      };
      out.correction = {.name = name(family_.mlp), .shape = {moe.experts}};
      if (!family_.mlp_alias.empty()) out.correction.alias = name(family_.mlp_alias);
    }
    if (family_.expert_names == ExpertNames::kStacked) {
      out.gate_up = stacked("gate_up_proj", 2 * moe.intermediate_size, spec_.hidden_size);
      out.down = stacked("down_proj", spec_.hidden_size, moe.intermediate_size);
    } else {
      out.experts.reserve(static_cast<std::size_t>(moe.experts));
      for (std::int64_t e = 0; e < moe.experts; ++e) out.experts.push_back(expert(e));
    }
    if (moe.shared_intermediate_size > 0) {
      out.shared = mlp(family_.shared_expert, moe.shared_intermediate_size, false);
    }
    return out;
  }

  const DecoderSpec& spec_;
  const Family& family_;
  const LayerSpec& layer_;
  std::string prefix_;
};

}  // namespace

std::int64_t Vector::size() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Parameters make_parameters(const DecoderSpec& spec) {
  Parameters out;
  out.embedding = {.module = "model.embed_tokens",
                   .out = spec.vocab_size,
                   .in = spec.hidden_size,
                   .quantizable = false};
  out.layers.reserve(spec.layers.size());
  for (std::size_t l = 0; l < spec.layers.size(); ++l) {
    out.layers.push_back(LayerMaker(spec, l).make());
  }
  out.norm = {.name = "model.norm.weight", .shape = {spec.hidden_size}};
  if (!spec.tied) {
    // No quantiser touches it; not every configuration says so.
    out.lm_head = {
        .module = "lm_head", .out = spec.vocab_size, .in = spec.hidden_size, .quantizable = false};
  }
  return out;
}

}  // namespace kernelpath::model
