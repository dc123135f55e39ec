#include "memory/precision.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace kernelpath::memory {
namespace {

constexpr std::string_view kLayers = "layers.";

// The longest list of excluded modules in published checkpoints has 712 entries.
constexpr std::size_t kMaxExclusions = 4096;
constexpr std::size_t kMaxReasons = 4;

std::string quoted(std::string_view text) {
  return "'" + escape_for_terminal(shorten(text, 80)) + "'";
}

// compressed-tensors' target for all modules that no other target names.
constexpr std::string_view kEveryLinear = "Linear";

// Vision towers and MTP layers have "layers" of their own.
bool is_elsewhere(std::string_view path) {
  constexpr std::array<std::string_view, 4> kWords = {"vision", "visual", "audio", "mtp."};
  return std::ranges::any_of(
      kWords, [path](std::string_view word) { return path.find(word) != std::string_view::npos; });
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

class Precision::Reasons {
 public:
  explicit Reasons(std::vector<std::string>& out) : out_(out) {}
  ~Reasons() {
    if (count_ > kMaxReasons) {
      out_.push_back("and " + std::to_string(count_ - kMaxReasons) + " more of this kind");
    }
  }
  Reasons(const Reasons&) = delete;
  Reasons& operator=(const Reasons&) = delete;
  void add(std::string reason) {
    if (++count_ <= kMaxReasons) out_.push_back(std::move(reason));
  }

 private:
  std::vector<std::string>& out_;
  std::size_t count_ = 0;
};

Precision::Precision(const config::Quantization& quantization, std::size_t num_layers,
                     std::vector<std::string>& reasons) {
  if (!quantization.any()) return;
  Reasons noted(reasons);
  add_algorithm(quantization, noted);
  const auto& exclusions = quantization.exclude_modules;
  for (std::size_t i = 0; i < std::min(exclusions.size(), kMaxExclusions); ++i) {
    add_exclusion(exclusions[i], num_layers, noted);
  }
  if (exclusions.size() > kMaxExclusions) {
    noted.add("only the first " + std::to_string(kMaxExclusions) + " of " +
              std::to_string(exclusions.size()) + " excluded modules are read");
  }
  add_modules(quantization, noted);
}

void Precision::add_algorithm(const config::Quantization& quantization, Reasons& reasons) {
  if (quantization.expert_dtype.value_or("") == "fp4") {
    expert_format_ = format_of("MXFP4", quantization);
  }
  const std::string algo = quantization.algo.value_or("");
  if (algo == "MIXED_PRECISION") return;
  format_ = format_of(algo, quantization);
  if (format_) return;
  const std::string name = quoted(algo.empty() ? quantization.method.value_or("") : algo);
  format_ = format_from_bits(quantization);
  reasons.add(format_ ? "quantisation " + name + " is not known: scales are guessed"
                      : "quantisation " + name +
                            " is not known: weights are counted at the model's dtype");
}

void Precision::add_exclusion(const std::string& text, std::size_t num_layers, Reasons& reasons) {
  const bool regex = text.substr(0, 3) == "re:";
  if (!regex && is_elsewhere(text)) return;
  const auto path = regex ? std::nullopt : split_layer(text);
  std::string_view rest = path ? path->rest : std::string_view(text);
  if (path && rest.substr(0, 1) == ".") rest.remove_prefix(1);
  auto pattern = ModulePattern::compile(path && rest.empty() ? "*" : rest);
  if (!pattern) {
    reasons.add("modules " + quoted(text) +
                " are excluded from quantisation in a form that is not understood");
    return;
  }
  if (!path) {
    general_.push_back(std::move(*pattern));
    return;
  }
  std::size_t first = 0;
  std::from_chars(path->digits.data(), path->digits.data() + path->digits.size(), first);
  layer_patterns_.push_back(std::move(*pattern));
  // "layers.7*" also means layers 70 to 79 and 700 to 799.
  const bool open_number = path->rest.substr(0, 1) == "*" && first > 0;
  for (std::size_t begin = first, count = 1; begin < num_layers; begin *= 10, count *= 10) {
    for (std::size_t layer = begin; layer < std::min(begin + count, num_layers); ++layer) {
      by_layer_[layer].push_back(layer_patterns_.size() - 1);
    }
    if (!open_number) break;
  }
}

void Precision::add_modules(const config::Quantization& quantization, Reasons& reasons) {
  for (const auto& [module, algo] : quantization.layer_algos) {
    if (is_elsewhere(module)) continue;
    auto known = algorithms_.find(algo);
    if (known == algorithms_.end()) {
      const auto format = format_of(algo, quantization);
      if (!format) {
        reasons.add("quantisation " + quoted(algo) +
                    " of a module is not known: counted as 16 bits");
      }
      known = algorithms_.emplace(algo, format.value_or(Format{})).first;
    }
    if (module == kEveryLinear) {
      format_ = known->second;
      continue;
    }
    if (module.starts_with("re:")) {
      reasons.add("modules " + quoted(module) + " have an algorithm of their own (" + algo +
                  "), which is not counted: a pattern is not followed");
      continue;
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
                  [&](std::size_t place) { return layer_patterns_[place].matches(path); });
  return excluded ? nullptr : base;
}

const Format* Precision::outside(const Tensor& tensor) const {
  if (tensor.storage != Storage::kHead) return nullptr;
  const auto found = by_module_.find(tensor.name);
  return found == by_module_.end() ? nullptr : found->second;
}

}  // namespace kernelpath::memory
