#pragma once

#include "base/result.h"
#include "config/model_config.h"
#include "kernels/ops.h"
#include "model/family.h"
#include "model/rope_table.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace kernelpath::model {

enum class Mixer : std::uint8_t {
  kHeads,   // attention with K and V of each KV head in the cache
  kLatent,  // MLA: one latent row a token
  kDelta,   // Kimi delta attention: a state a request
};

struct LayerSpec {
  Mixer mixer = Mixer::kHeads;
  bool rope = true;
  std::size_t rope_table = 0;  // index into DecoderSpec::ropes
  std::int64_t window = 0;
  std::int64_t chunk = 0;
  bool moe = false;
  std::int64_t intermediate_size = 0;  // of a dense MLP
  bool index = false;                  // chooses keys by an index branch of its own
  bool shared_index = false;           // reads the choice of the layer before
  bool temperature = false;            // queries grow with their position (Llama 4)
};

struct MlaSpec {
  std::int64_t q_lora_rank = 0;  // 0: one plain projection
  std::int64_t kv_lora_rank = 0;
  std::int64_t nope = 0;  // qk_nope_head_dim
  std::int64_t rope = 0;  // qk_rope_head_dim
  std::int64_t v_head_dim = 0;
  [[nodiscard]] std::int64_t row() const { return kv_lora_rank + rope; }
};

struct IndexSpec {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t top_k = 0;
  bool interleaved = false;
};

struct MoeSpec {
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t shared_intermediate_size = 0;  // 0: no shared expert
  kernels::RouterKind router = kernels::RouterKind::kSoftmax;
  kernels::GroupScore group_score = kernels::GroupScore::kNone;
  std::int64_t groups = 1;
  std::int64_t top_groups = 1;
  bool normalize = false;
  float normalize_eps = 0.0F;
  float scaling = 1.0F;
  bool correction = false;  // has e_score_correction_bias
  bool biases = false;      // of router and experts
  bool scale_input = false;
  kernels::GateUpLayout layout = kernels::GateUpLayout::kSeparate;
  kernels::Activation activation = kernels::Activation::kSilu;
  float limit = 0.0F;
  float alpha = 0.0F;
};

struct DeltaSpec {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t conv_kernel = 0;
  [[nodiscard]] std::int64_t width() const { return heads * head_dim; }
  // Floats of a request's state in one layer: three convolution windows, then the matrices.
  [[nodiscard]] std::int64_t conv_floats() const { return (conv_kernel - 1) * width(); }
  [[nodiscard]] std::int64_t state_floats() const {
    return 3 * conv_floats() + heads * head_dim * head_dim;
  }
};

// Every number of one decoder; nothing behind it reads the configuration.
struct DecoderSpec {
  const Family* family = nullptr;
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t max_positions = 0;  // 0: not stated
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  float eps = 0.0F;
  float softmax_scale = 1.0F;
  float attention_softcap = 0.0F;
  float final_softcap = 0.0F;
  float embedding_scale = 1.0F;
  float residual_scale = 1.0F;
  float logit_scale = 1.0F;
  bool tied = false;
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  QkNorm qk_norm = QkNorm::kNone;
  kernels::Activation activation = kernels::Activation::kSilu;
  bool interleaved_rope = false;
  double floor_scale = 0.0;  // of LayerSpec::temperature
  double attn_scale = 0.0;
  std::vector<RopeSpec> ropes;
  std::optional<MlaSpec> mla;
  std::optional<IndexSpec> index;
  std::optional<MoeSpec> moe;
  std::optional<DeltaSpec> delta;
  std::vector<LayerSpec> layers;

  [[nodiscard]] std::int64_t q_width() const { return num_heads * head_dim; }
  [[nodiscard]] std::int64_t kv_width() const { return num_kv_heads * head_dim; }
};

// Reads the numbers of a model of that family. Errors: kConfigMissing, kConfigType, kConfigValue
// (`where` is the field), kUnavailable (something in the configuration that the class cannot do).
Result<DecoderSpec> make_spec(const config::ModelConfig& config, const Family& family);

}  // namespace kernelpath::model
