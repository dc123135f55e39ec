#include "report/facts.h"

#include "config/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::report {

std::string_view attention_word(const config::ModelConfig& model) {
  if (model.mla) return "mla";
  if (!model.num_attention_heads) return "none";
  const std::int64_t heads = *model.num_attention_heads;
  const std::int64_t kv_heads = model.num_key_value_heads.value_or(heads);
  if (kv_heads == heads) return "mha";
  return kv_heads == 1 ? "mqa" : "gqa";
}

std::string quantization_word(const config::ModelConfig& model) {
  return model.quantization.algo.value_or(model.quantization.method.value_or(""));
}

std::optional<std::int64_t> common_kv_bytes_per_token(const InputAnswer& answer) {
  std::optional<std::int64_t> common;
  for (const EngineAnswer& engine : answer.engines) {
    const std::optional<std::int64_t>& bytes = engine.resolution.memory.kv_bytes_per_token;
    if (!bytes) continue;
    if (common && *common != *bytes) return std::nullopt;
    common = bytes;
  }
  return common;
}

std::string_view stage_id(engines::Stage stage) {
  using enum engines::Stage;
  switch (stage) {
    case kModelClass:
      return "model-class";
    case kFinalValue:
      return "final-value";
    case kFallback:
      return "fallback";
    case kAvailability:
      return "availability";
    case kConstruction:
      return "construction";
    case kRewrite:
      return "rewrite";
    case kInnerKernel:
      return "inner-kernel";
    case kMemory:
      return "memory";
  }
  return "";
}

std::string_view stage_title(engines::Stage stage) {
  using enum engines::Stage;
  switch (stage) {
    case kModelClass:
      return "Model class";
    case kFinalValue:
      return "1. Final value, and who set it";
    case kFallback:
      return "2. Fallback";
    case kAvailability:
      return "3. Availability: what is installed, what the device can do";
    case kConstruction:
      return "4. Checks when the layers are built";
    case kRewrite:
      return "5. Rewrites by model or layer";
    case kInnerKernel:
      return "Then: the inner kernel of each phase";
    case kMemory:
      return "Memory";
  }
  return "";
}

std::string layer_ranges(const std::vector<std::int64_t>& layers) {
  std::string out;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    if (!out.empty()) out += ',';
    out += last == i ? fmt::format("{}", layers[i]) : fmt::format("{}-{}", layers[i], layers[last]);
    i = last + 1;
  }
  return out;
}

std::string kv_text(const engines::KvLayout& kv) {
  std::string out = kv.dtype;
  if (!kv.layout.empty()) out += (out.empty() ? "" : " ") + kv.layout;
  if (kv.page_size) out += fmt::format("{}page {}", out.empty() ? "" : " ", *kv.page_size);
  return out;
}

bool View::shows(std::string_view part) const {
  return std::any_of(show.begin(), show.end(),
                     [&](const std::string& asked) { return asked == part || asked == "all"; });
}

std::vector<std::string_view> show_parts() {
  std::vector<std::string_view> parts = {"all"};
  for (const std::string_view group : config::show_groups()) parts.push_back(group);
  for (const std::string_view part : {"device", "backend", "candidates", "memory"}) {
    parts.push_back(part);
  }
  return parts;
}

}  // namespace kernelpath::report
