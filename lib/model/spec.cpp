#include "model/spec.h"

#include "model/fields.h"
#include "model/spec_parts.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

namespace kernelpath::model {
namespace {

using kernels::Activation;

Result<Activation> read_activation(const Fields& fields) {
  constexpr std::array<std::pair<std::string_view, Activation>, 7> kKnown{
      {{"silu", Activation::kSilu},
       {"swish", Activation::kSilu},
       {"gelu_pytorch_tanh", Activation::kGeluTanh},
       {"gelu_new", Activation::kGeluTanh},
       {"gelu_fast", Activation::kGeluTanh},
       {"gelu", Activation::kGelu},
       {"relu", Activation::kRelu}}};
  const std::string_view otherwise = fields.family().norm_offset != 0.0F  // the Gemma families
                                         ? "gelu_pytorch_tanh"
                                         : "silu";
  KERNELPATH_TRY(name, fields.text({"hidden_activation", "hidden_act"}, otherwise));
  for (const auto& [known, activation] : kKnown) {
    if (name == known) return activation;
  }
  return fail(Error{.code = ErrorCode::kUnavailable,
                    .message = "no kernel for this activation; there are silu, gelu, "
                               "gelu_pytorch_tanh and relu",
                    .where = fields.pointer("hidden_act"),
                    .value = name});
}

Result<void> read_sizes(const Fields& fields, DecoderSpec& spec) {
  const config::ModelConfig& config = fields.config();
  KERNELPATH_TRY(vocab, required(config.vocab_size, "vocab_size"));
  KERNELPATH_TRY(hidden, required(config.hidden_size, "hidden_size"));
  KERNELPATH_TRY(heads, required(config.num_attention_heads, "num_attention_heads"));
  KERNELPATH_TRY(kv_heads, required(config.num_key_value_heads, "num_key_value_heads"));
  KERNELPATH_TRY(head_dim, required(config.head_dim, "head_dim"));
  spec.vocab_size = vocab;
  spec.hidden_size = hidden;
  spec.num_heads = heads;
  spec.num_kv_heads = kv_heads;
  spec.head_dim = head_dim;
  // A dynamic base is made for the length at hand: max_position_embeddings is where it begins to
  // change, and no end.
  const bool is_dynamic = config.rope.type.value_or("") == "dynamic";
  spec.max_positions = is_dynamic ? 0 : config.max_position_embeddings.value_or(0);
  spec.tied = config.tie_word_embeddings.value_or(false);
  if (heads % kv_heads == 0) return {};
  return fail(Error{.code = ErrorCode::kConfigValue,
                    .message = fmt::format("{} attention heads are no multiple of {} key-value "
                                           "heads",
                                           heads, kv_heads),
                    .where = "/num_key_value_heads"});
}

Result<void> read_biases(const Fields& fields, DecoderSpec& spec) {
  const Family& family = fields.family();
  KERNELPATH_TRY(stated, fields.flag("attention_bias"));
  spec.qkv_bias = family.biases == Biases::kQkv || (family.biases != Biases::kNever && stated);
  spec.o_bias = family.biases == Biases::kField && stated;
  if (family.mlp_bias) {
    KERNELPATH_TRY(mlp, fields.flag("mlp_bias"));
    spec.mlp_bias = mlp;
  }
  spec.qk_norm = family.qk_norm;
  if (!family.qk_norm_field.empty()) {
    KERNELPATH_TRY(normed, fields.flag(family.qk_norm_field));
    if (!normed) spec.qk_norm = QkNorm::kNone;
  }
  return {};
}

Result<void> read_mla(const Fields& fields, DecoderSpec& spec) {
  if (!fields.config().mla) return {};
  const config::Mla& mla = *fields.config().mla;
  MlaSpec out;
  out.q_lora_rank = mla.q_lora_rank.value_or(0);
  KERNELPATH_TRY(latent, required(mla.kv_lora_rank, "kv_lora_rank"));
  KERNELPATH_TRY(nope, required(mla.qk_nope_head_dim, "qk_nope_head_dim"));
  KERNELPATH_TRY(rope, required(mla.qk_rope_head_dim, "qk_rope_head_dim"));
  KERNELPATH_TRY(v, required(mla.v_head_dim, "v_head_dim"));
  out.kv_lora_rank = latent;
  out.nope = nope;
  out.rope = rope;
  out.v_head_dim = v;
  spec.mla = out;
  KERNELPATH_TRY(interleaved, fields.flag("rope_interleave"));
  spec.interleaved_rope = spec.interleaved_rope && interleaved;
  if (!fields.config().sparse) return {};
  IndexSpec index;
  KERNELPATH_TRY(heads, fields.integer({"index_n_heads"}));
  KERNELPATH_TRY(head_dim, fields.integer({"index_head_dim"}));
  KERNELPATH_TRY(top_k, fields.integer({"index_topk"}));
  index.heads = heads;
  index.head_dim = head_dim;
  index.top_k = top_k;
  index.interleaved = fields.family().interleaved_index;
  spec.index = index;
  return {};
}

Result<void> read_delta(const Fields& fields, DecoderSpec& spec) {
  if (!fields.config().linear_state) return {};
  const config::LinearState& state = *fields.config().linear_state;
  KERNELPATH_TRY(heads, required(state.num_heads, "linear_attn_config/num_heads"));
  KERNELPATH_TRY(head_dim, required(state.head_dim, "linear_attn_config/head_dim"));
  KERNELPATH_TRY(kernel, required(state.conv_kernel, "linear_attn_config/short_conv_kernel_size"));
  spec.delta = DeltaSpec{.heads = heads, .head_dim = head_dim, .conv_kernel = kernel};
  return {};
}

// What scores are multiplied with. DeepSeek's models make up for yarn's longer context here as
// well, and by the square, since their cos and sin carry the quotient of both factors only.
Result<void> read_softmax_scale(const Fields& fields, DecoderSpec& spec) {
  const Family& family = fields.family();
  if (!family.scale_field.empty()) {
    KERNELPATH_TRY(value, family.scale_power < 0 ? fields.positive(family.scale_field)
                                                 : fields.number({family.scale_field}));
    spec.softmax_scale = static_cast<float>(std::pow(value, family.scale_power));
    return {};
  }
  if (!spec.mla) {
    spec.softmax_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.head_dim)));
    return {};
  }
  double scale = 1.0 / std::sqrt(static_cast<double>(spec.mla->nope + spec.mla->rope));
  if (!spec.ropes.empty() && spec.ropes[0].kind != RopeKind::kDefault &&
      spec.ropes[0].mscale_all_dim != 0.0) {
    const double m = yarn_mscale(spec.ropes[0].factor, spec.ropes[0].mscale_all_dim);
    scale *= m * m;
  }
  spec.softmax_scale = static_cast<float>(scale);
  return {};
}

Result<void> read_multipliers(const Fields& fields, DecoderSpec& spec) {
  const Family& family = fields.family();
  KERNELPATH_TRY(eps, fields.number({family.eps_field}));
  if (eps < 0) {
    return fail(Error{.code = ErrorCode::kConfigValue,
                      .message = "must not be negative",
                      .where = fields.pointer(family.eps_field),
                      .value = fmt::format("{}", eps)});
  }
  spec.eps = static_cast<float>(eps);
  if (family.softcaps) {
    KERNELPATH_TRY(cap, fields.number({"attn_logit_softcapping"}));
    spec.attention_softcap = static_cast<float>(cap);
  }
  if (family.softcaps || family.final_softcap) {
    KERNELPATH_TRY(cap, fields.number({"final_logit_softcapping"}));
    spec.final_softcap = static_cast<float>(cap);
  }
  if (family.scaled_embedding) {
    spec.embedding_scale = std::sqrt(static_cast<float>(spec.hidden_size));
  }
  if (!family.logit_scale_field.empty()) {
    KERNELPATH_TRY(scale, family.logit_scale_divides ? fields.positive(family.logit_scale_field)
                                                     : fields.number({family.logit_scale_field}));
    spec.logit_scale = static_cast<float>(family.logit_scale_divides ? 1.0 / scale : scale);
  }
  if (family.multipliers) {
    KERNELPATH_TRY(embedding, fields.number({"embedding_multiplier"}));
    KERNELPATH_TRY(residual, fields.number({"residual_multiplier"}));
    spec.embedding_scale = static_cast<float>(embedding);
    spec.residual_scale = static_cast<float>(residual);
  }
  KERNELPATH_TRY(floor_scale, fields.positive("floor_scale"));
  KERNELPATH_TRY(attn_scale, fields.number({"attn_scale"}));
  spec.floor_scale = floor_scale;
  spec.attn_scale = attn_scale;
  return {};
}

}  // namespace

Result<std::int64_t> required(const config::IntField& field, std::string_view name) {
  if (!field) {
    return fail(Error{.code = ErrorCode::kConfigMissing,
                      .message = "the model cannot be built without this field",
                      .where = fmt::format("/{}", name)});
  }
  if (*field > 0) return *field;
  return fail(Error{.code = ErrorCode::kConfigValue,
                    .message = "must be greater than 0",
                    .where = fmt::format("/{}", name),
                    .value = std::to_string(*field)});
}

Result<DecoderSpec> make_spec(const config::ModelConfig& config, const Family& family) {
  const Fields fields(config, family);
  DecoderSpec spec;
  spec.family = &family;
  spec.interleaved_rope = family.interleaved_rope;
  KERNELPATH_CHECK_OK(read_sizes(fields, spec));
  KERNELPATH_TRY(activation, read_activation(fields));
  spec.activation = activation;
  KERNELPATH_CHECK_OK(read_biases(fields, spec));
  KERNELPATH_CHECK_OK(read_mla(fields, spec));
  KERNELPATH_CHECK_OK(read_delta(fields, spec));
  KERNELPATH_TRY(ropes, read_ropes(fields, spec));
  spec.ropes = std::move(ropes);
  KERNELPATH_CHECK_OK(read_softmax_scale(fields, spec));
  KERNELPATH_CHECK_OK(read_multipliers(fields, spec));
  if (family.router != RouterStyle::kNone && config.moe) {
    KERNELPATH_TRY(moe, read_moe(fields));
    spec.moe = moe;
    if (moe.activation != Activation::kClamped) spec.moe->activation = activation;
  }
  KERNELPATH_CHECK_OK(read_layers(fields, spec));
  return spec;
}

}  // namespace kernelpath::model
