#pragma once

#include "config/model_config.h"
#include "memory/format.h"
#include "memory/geometry.h"
#include "memory/module_pattern.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kernelpath::memory {

// "self_attn.q_proj": a tensor's place below its layer.
std::string tensor_path(const Tensor& tensor);

// Which format each weight of a checkpoint is stored in: the model's algorithm, per-module
// algorithms, and lists of modules that stay as they are.
class Precision {
 public:
  // `num_layers` includes the MTP layer that a list may name. Says in `reasons` what could not be
  // understood. Keeps references to `quantization`.
  Precision(const config::Quantization& quantization, std::size_t num_layers,
            std::vector<std::string>& reasons);

  // The format of a tensor in all layers of its shape, before layers' own exceptions; null pointer:
  // not quantised. `path` is tensor_path(tensor).
  [[nodiscard]] const Format* base(const Tensor& tensor, const std::string& path) const;
  // True if layers may differ from base().
  [[nodiscard]] bool has_layer_rules() const { return !by_layer_.empty() || !by_module_.empty(); }
  // The format in one layer, given base().
  [[nodiscard]] const Format* in_layer(const Tensor& tensor, const std::string& path,
                                       std::size_t layer, const Format* base) const;
  // The format of a tensor outside of layers.
  [[nodiscard]] const Format* outside(const Tensor& tensor) const;

 private:
  // Reasons of one kind, cut off where a hostile file gives thousands.
  class Reasons;
  void add_algorithm(const config::Quantization& quantization, Reasons& reasons);
  void add_exclusion(const std::string& text, std::size_t num_layers, Reasons& reasons);
  void add_modules(const config::Quantization& quantization, Reasons& reasons);
  const Format* find_module(std::string path) const;

  std::optional<Format> format_;
  std::optional<Format> expert_format_;
  std::vector<ModulePattern> general_;
  std::vector<ModulePattern> layer_patterns_;
  std::unordered_map<std::size_t, std::vector<std::size_t>> by_layer_;  // places in layer_patterns_
  // "3.mlp.experts" or "lm_head" → format; the keys are parts of the configuration's strings
  std::unordered_map<std::string_view, const Format*> by_module_;
  std::unordered_map<std::string_view, Format> algorithms_;
};

}  // namespace kernelpath::memory
