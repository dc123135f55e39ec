#pragma once

#include "config/model_config.h"
#include "engines/vllm/model_class.h"
#include "engines/vllm/profile.h"
#include "engines/vllm/run_flags.h"
#include "engines/vllm/selector_input.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kernelpath::engines::vllm {

// What the engine reads out of a model's configuration before it builds the model.
// Source: vllm/config/model.py, vllm/transformers_utils/model_arch_config_convertor.py.
struct ModelView {
  std::string model_type;  // of the text configuration
  bool use_mla = false;
  bool sparse = false;  // the text configuration has index_topk
  bool hybrid = false;  // the class is, and not all its layers are attention
  bool attention_free = false;
  bool mm_prefix = false;  // an image's tokens attend to each other
  bool encoder_decoder = false;
  bool pooling = false;       // the runner is
  bool encoder_only = false;  // attention without a mask, hence without a cache
  bool causal = true;         // is_causal, which a hook may have set
  std::int64_t head_size = 0;
  std::int64_t total_heads = 0;
  std::int64_t total_kv_heads = 0;
  std::int64_t heads = 0;     // query heads of a rank
  std::int64_t kv_heads = 0;  // of a rank
  std::int64_t hidden_size = 0;
  std::int64_t num_layers = 0;
  std::optional<std::int64_t> attention_chunk_size = {};
  std::string pooling_type = {};  // "LAST", "MEAN", "CLS", …; empty: no pooling
  bool diffusion = false;
};

// `model_class` is of the same model.
ModelView view_model(const config::ModelConfig& model, const ModelClass& model_class,
                     const RunFlags& flags, const Profile& profile);

// The fields that the selector's rules see.
ModelFacts facts_of(const config::ModelConfig& model, const ModelView& view);

// A boolean or integer member of the text configuration (true is 1); nothing if it is not there.
std::optional<std::int64_t> text_integer(const config::ModelConfig& model, std::string_view name);
// A string member of the text configuration; empty if it is not there.
std::string_view text_string(const config::ModelConfig& model, std::string_view name);
// Whether the text configuration has the member, null or not.
bool has_text_field(const config::ModelConfig& model, std::string_view name);

}  // namespace kernelpath::engines::vllm
