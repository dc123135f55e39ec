#pragma once

#include "config/model_config.h"
#include "engines/llamacpp/attention_layers.h"
#include "engines/resolution.h"

#include <vector>

namespace kernelpath::engines::llamacpp {

// What groups are made of.
struct GroupContext {
  const AttentionQuestion& question;
  const Machine& machine;
  const CudaBuild& build;
  bool kv_offload = true;
  const config::ModelConfig& config;  // kinds of layers, where a config.json names them
};

// Layers that resolve alike: those of one cache with the same sizes, those that keep a state, and
// those that have neither. Steps tell of kernels that are worth a word.
std::vector<LayerGroup> make_groups(const GroupContext& context, std::vector<Step>& steps);

}  // namespace kernelpath::engines::llamacpp
