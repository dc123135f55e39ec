#pragma once

#include "kernels/ops.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace kernelpath::model {

enum class QkNorm : std::uint8_t {
  kNone,
  kPerHead,    // over each head, before rope
  kWhole,      // over the whole projection, before the split into heads
  kAfterRope,  // over each head without weights, after rope and on rotated layers only
};

// Which projections have a bias.
enum class Biases : std::uint8_t {
  kNever,
  kQkv,       // always on q, k and v
  kFieldQkv,  // attention_bias: on q, k and v
  kField,     // attention_bias: on q, k, v and o (MLA: on the first projections and o)
};

enum class RouterStyle : std::uint8_t {
  kNone,
  kNormalised,  // softmax, top k, divided by their sum
  kQwen,        // softmax, top k, divided by their sum if norm_topk_prob
  kDeepseekV2,  // softmax, topk_method, routed_scaling_factor
  kDeepseekV3,  // sigmoid, correction bias, groups by their two best, norm_topk_prob, scaling
  kLlama4,      // sigmoid of the chosen logits multiplies the input
  kGptOss,      // top k of the logits (with bias), softmax over those
};

// How a file names the experts of a layer.
enum class ExpertNames : std::uint8_t {
  kProjections,  // experts.N.{gate,up,down}_proj.weight
  kNumbers,      // experts.N.{w1,w3,w2}.weight
  kStacked,      // experts.{gate_up,down}_proj [experts, in, out]
};

// What distinguishes the decoders of the families: everything else is common code. Names are those
// of the tensors below "model.layers.N."; an empty one means that there is no such part.
struct Family {
  std::string_view class_name;
  // Norms of a block: x += attn_out(attention(attn_in(x))); x += mlp_out(mlp(mlp_in(x))).
  std::string_view attn_in = "input_layernorm";
  std::string_view attn_out = {};
  std::string_view mlp_in = "post_attention_layernorm";
  std::string_view mlp_out = {};
  bool parallel = false;  // one norm, x += attention(h) + mlp(h)
  kernels::NormKind norm = kernels::NormKind::kRms;
  std::string_view eps_field = "rms_norm_eps";
  float norm_offset = 0.0F;  // added to the norms' weights
  QkNorm qk_norm = QkNorm::kNone;
  std::string_view qk_norm_field = {};  // a flag that turns it on
  Biases biases = Biases::kField;
  bool mlp_bias = false;          // has the field mlp_bias
  bool fused_qkv = false;         // qkv_proj: q heads, k heads, v heads
  bool fused_gate_up = false;     // gate_up_proj: gate rows, up rows
  bool interleaved_rope = false;  // pairs (2i, 2i + 1)
  bool interleaved_index = false;
  bool yarn_is_longrope = false;
  bool sinks = false;
  bool scaled_embedding = false;      // by sqrt(hidden_size)
  std::string_view scale_field = {};  // softmax scale = that field …
  double scale_power = 1.0;           // … to this power
  bool softcaps = false;              // attn_logit_softcapping, final_logit_softcapping
  bool final_softcap = false;         // final_logit_softcapping alone
  std::string_view logit_scale_field = {};
  bool logit_scale_divides = false;
  bool multipliers = false;      // embedding_multiplier, residual_multiplier
  std::string_view mlp = "mlp";  // prefix of the dense MLP and of the experts
  std::string_view mlp_alias = {};
  RouterStyle router = RouterStyle::kNone;
  std::string_view router_name = "gate";
  ExpertNames expert_names = ExpertNames::kProjections;
  std::string_view shared_expert = {};
};

// All families that can be built, in the order of their names.
std::span<const Family> families();

// By class name; null if there is none.
const Family* find_family_of_class(std::string_view class_name);

}  // namespace kernelpath::model
