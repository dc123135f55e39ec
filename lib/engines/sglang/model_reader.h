#pragma once

#include "engines/sglang/hf_config.h"
#include "engines/sglang/model_facts.h"

namespace kernelpath::engines::sglang {

// The parts of read_model(), in the order in which the engine's constructor runs them.
struct ModelReader {
  const Profile& profile;
  const Platform& platform;
  const HfConfig& config;
  const json::Value& quant_config;  // hf_quant_config.json, or null
  const ModelOptions& options;
  ModelReading out = {};

  [[nodiscard]] bool has(std::string_view architecture) const;
  [[nodiscard]] bool any_in(std::string_view group) const;
  void refuse(std::string type, std::string rule, std::string text);
};

void read_shapes(ModelReader& reader);  // heads, MLA ranks, layers
// Sparse attention and other families that shapes depend on.
void read_architecture_flags(ModelReader& reader);
void read_hybrid(ModelReader& reader);        // sliding and linear layers
void read_quantization(ModelReader& reader);  // method, overrides, refusals
// Fields of quantization_config that rules look at.
void read_quantization_fields(ModelReader& reader);
void rename_draft(ModelReader& reader);

}  // namespace kernelpath::engines::sglang
