#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace kernelpath::memory {

// A property of a family: `value`, unless config.json holds the integer or boolean `field`; then
// that (inverted where `negated`: "no_bias").
struct Flag {
  bool value = false;
  std::string_view field = {};
  bool negated = false;
};

enum class NormKind : std::uint8_t {
  kRms,    // a weight
  kLayer,  // a weight and a bias
  kNone,   // no parameters (OLMo 1)
};

enum class QkNorm : std::uint8_t {
  kNone,
  kPerHead,    // one of head_dim values each for Q and K
  kFullWidth,  // heads * head_dim for Q, KV heads * head_dim for K
  kEveryHead,  // one of head_dim values for each head (Cohere, StableLM)
};

// What layers of kind kLinear and kMamba hold.
enum class StateKind : std::uint8_t {
  kUnknown,
  kMamba1,
  kMamba2,
  kGatedDeltaNet,
  kShortConvolution,
  kLightning,  // MiniMax-Text-01
  kKimiDelta,  // Kimi Linear
};

// How a model family (model_type of the text config) lays out its weights. What the geometry in
// config.json says is not repeated here.
struct Family {
  std::string_view model_type;
  NormKind norm = NormKind::kRms;
  int norms = 2;  // of a decoder layer
  Flag qkv_bias = {};
  Flag output_bias = {};  // of the attention's output projection
  Flag mlp_bias = {};
  Flag head_bias = {};  // of lm_head
  Flag router_bias = {};
  QkNorm qk_norm = QkNorm::kNone;
  Flag qk_norm_if = {true};
  Flag output_gate = {};         // Q is twice as wide: its second half gates the output
  bool head_gate = false;        // one gate a head, projected from the input
  bool gated_mlp = true;         // gate and up projections instead of one
  bool correction_bias = false;  // a score correction per expert beside the router
  bool shared_expert_gate = false;
  bool expert_bias = false;
  bool layer_scalar = false;  // one factor a layer
  bool tied = false;          // where config.json does not say
  int halves = 1;             // of a layer: pairs of attention and dense MLP (LongCat: 2)
  bool dense_beside_experts = false;
  bool one_mixer = false;     // a layer is either a mixer or an MLP, with one norm
  bool fused_latent = false;  // routed experts work in a latent space (moe_latent_size)
  StateKind state = StateKind::kUnknown;
  int activation_parameters = 0;    // of an MLP's activation function
  std::string_view positions = {};  // field with the size of a learned table of positions
  int extra_positions = 0;
  bool embedding_norm = false;
  std::string_view attention_module = "self_attn";
  std::string_view mlp_module = "mlp";
  std::string_view state_module = "linear_attn";
  std::string_view caveat = {};  // why counts of this family are estimates; empty: they are exact
};

std::span<const Family> families();

// The row of a model_type; null pointer if there is none.
const Family* find_family(std::string_view model_type);

}  // namespace kernelpath::memory
