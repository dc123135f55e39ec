#include "memory/precision.h"

#include "base/text.h"

#include <algorithm>
#include <charconv>

namespace kernelpath::memory {
namespace {

constexpr std::string_view kLayers = "layers.";

// Vision towers and MTP layers have "layers" of their own.
bool is_elsewhere(std::string_view path) {
  for (const std::string_view word : {"vision", "visual", "audio", "mtp."}) {
    if (path.find(word) != std::string_view::npos) return true;
  }
  return false;
}

// "model.layers.3.mlp.gate" → 3 and "mlp.gate"; "model.layers.3*" → 3 and "*".
struct LayerPath {
  std::string_view digits;
  std::string_view rest;
};
std::optional<LayerPath> split_layer(std::string_view path) {
  const std::size_t at = path.find(kLayers);
  if (at == std::string_view::npos || (at > 0 && path[at - 1] != '.')) return std::nullopt;
  std::string_view rest = path.substr(at + kLayers.size());
  const auto* last =
      std::find_if(rest.begin(), rest.end(), [](char c) { return c < '0' || c > '9'; });
  const auto count = static_cast<std::size_t>(last - rest.begin());
  if (count == 0 || count > 6) return std::nullopt;
  return LayerPath{.digits = rest.substr(0, count), .rest = rest.substr(count)};
}

}  // namespace

std::string tensor_path(const Tensor& tensor) {
  std::string path(tensor.module);
  if (!path.empty()) path += '.';
  return path += tensor.name;
}

Precision::Precision(const config::Quantization& quantization, std::size_t num_layers,
                     std::vector<std::string>& reasons) {
  if (!quantization.any()) return;
  const std::string algo = quantization.algo.value_or("");
  const bool mixed = algo == "MIXED_PRECISION";
  if (!mixed) {
    format_ = format_of(algo, quantization);
    if (!format_) format_ = format_from_bits(quantization);
    if (!format_) {
      reasons.push_back("quantisation '" + (algo.empty() ? *quantization.method : algo) +
                        "' is not known: weights are counted at the model's dtype");
    } else if (!format_of(algo, quantization)) {
      reasons.push_back("quantisation '" + algo + "' is not known: scales are guessed");
    }
  }
  if (quantization.expert_dtype.value_or("") == "fp4") {
    expert_format_ = format_of("MXFP4", quantization);
  }
  for (const std::string& text : quantization.exclude_modules) {
    add_exclusion(text, num_layers, reasons);
  }
  add_modules(quantization, reasons);
}

void Precision::add_exclusion(const std::string& text, std::size_t num_layers,
                              std::vector<std::string>& reasons) {
  const bool regex = text.substr(0, 3) == "re:";
  if (!regex && is_elsewhere(text)) return;
  const auto path = regex ? std::nullopt : split_layer(text);
  std::string_view rest = path ? path->rest : std::string_view(text);
  if (path && rest.substr(0, 1) == ".") rest.remove_prefix(1);
  const auto pattern = ModulePattern::compile(path && rest.empty() ? "*" : rest);
  if (!pattern) {
    reasons.push_back("modules '" + escape_for_terminal(shorten(text, 80)) +
                      "' are excluded from quantisation in a form that is not understood");
    return;
  }
  if (!path) {
    general_.push_back(*pattern);
    return;
  }
  // "layers.7*" also means layers 70 to 79.
  const bool open_number = path->rest.substr(0, 1) == "*";
  std::size_t number = 0;
  std::from_chars(path->digits.data(), path->digits.data() + path->digits.size(), number);
  if (!open_number) {
    if (number < num_layers) by_layer_[number].push_back(*pattern);
    return;
  }
  for (std::size_t layer = number; layer < num_layers; ++layer) {
    if (std::to_string(layer).substr(0, path->digits.size()) == path->digits) {
      by_layer_[layer].push_back(*pattern);
    }
  }
}

void Precision::add_modules(const config::Quantization& quantization,
                            std::vector<std::string>& reasons) {
  for (const auto& [module, algo] : quantization.layer_algos) {
    if (is_elsewhere(module)) continue;
    auto known = algorithms_.find(algo);
    if (known == algorithms_.end()) {
      const auto format = format_of(algo, quantization);
      if (!format) {
        reasons.push_back("quantisation '" + escape_for_terminal(shorten(algo, 80)) +
                          "' of a module is not known: counted at the model's dtype");
      }
      known = algorithms_.emplace(algo, format.value_or(Format{})).first;
    }
    std::string_view key = module;
    if (const auto path = split_layer(module)) {
      key.remove_prefix(static_cast<std::size_t>(path->digits.data() - key.data()));
    }
    by_module_.emplace(key, &known->second);
  }
}

// The module itself or the nearest one above it.
const Format* Precision::find_module(std::string path) const {
  for (;;) {
    const auto found = by_module_.find(path);
    if (found != by_module_.end()) return found->second;
    const std::size_t dot = path.rfind('.');
    if (dot == std::string::npos) return nullptr;
    path.resize(dot);
  }
}

const Format* Precision::base(const Tensor& tensor, const std::string& path) const {
  if (tensor.storage != Storage::kLinear) return nullptr;
  const bool routed = tensor.part == Part::kExperts;
  const Format* format = routed && expert_format_ ? &*expert_format_
                         : format_                ? &*format_
                                                  : nullptr;
  if (format == nullptr || general_.empty()) return format;
  const std::string full_path = "model.layers.0." + path;
  const bool excluded = std::any_of(general_.begin(), general_.end(),
                                    [&](const ModulePattern& p) { return p.matches(full_path); });
  return excluded ? nullptr : format;
}

const Format* Precision::in_layer(const Tensor& tensor, const std::string& path, std::size_t layer,
                                  const Format* base) const {
  if (tensor.storage != Storage::kLinear) return nullptr;
  if (!by_module_.empty()) {
    const std::string number = std::to_string(layer) + ".";
    if (const Format* own = find_module(number + path)) return own;
    // Experts may be listed one by one; the first stands for all.
    const std::size_t dot = path.rfind('.');
    if (tensor.routed && dot != std::string::npos) {
      const std::string first = path.substr(0, dot) + ".0" + path.substr(dot);
      if (const Format* own = find_module(number + first)) return own;
    }
  }
  const auto rules = by_layer_.find(layer);
  if (base == nullptr || rules == by_layer_.end()) return base;
  const bool excluded =
      std::any_of(rules->second.begin(), rules->second.end(),
                  [&](const ModulePattern& pattern) { return pattern.matches(path); });
  return excluded ? nullptr : base;
}

const Format* Precision::outside(const Tensor& tensor) const {
  if (tensor.storage != Storage::kHead) return nullptr;
  const auto found = by_module_.find(tensor.name);
  return found == by_module_.end() ? nullptr : found->second;
}

}  // namespace kernelpath::memory
