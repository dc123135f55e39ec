#include "engines/vllm/layer_groups.h"

#include "base/text.h"
#include "engines/memory_account.h"
#include "engines/vllm/flashinfer_support.h"
#include "engines/vllm/kv_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

config::LayerKind kind_of(const BuiltLayer& layer) {
  using enum config::LayerKind;
  switch (layer.role) {
    case LayerRole::kAttention:
      if (layer.chunk) return kChunked;
      return layer.window ? kSliding : layer.sparse ? kSparse : kFull;
    case LayerRole::kMla:
      return layer.sparse ? kSparse : layer.window ? kSliding : kFull;
    case LayerRole::kIndexer:
      return kSparse;
    case LayerRole::kEncoderOnly:
      return kEncoder;
    case LayerRole::kCross:
      return kCross;
    case LayerRole::kWindow:
      return kLinear;
    case LayerRole::kState:
      return layer.state_kind.starts_with("mamba") ? kMamba : kLinear;
  }
  return kFull;
}

// "[num_blocks, 2, 16, 8, 128]".
std::string shape_text(const std::vector<ShapeAxis>& shape) {
  if (shape.empty()) return {};
  std::vector<std::string> parts;
  parts.reserve(shape.size());
  for (const ShapeAxis& axis : shape) {
    parts.push_back(axis ? fmt::to_string(*axis) : std::string("num_blocks"));
  }
  return "[" + join(parts, ", ") + "]";
}

// What FlashInfer runs: its own kernels, or TensorRT-LLM's where the device and the heads allow.
std::string flashinfer_kernel(const SelectorContext& context, const BuiltLayer& layer,
                              AttentionPhase phase) {
  if (!can_use_trtllm(context, layer.num_heads, layer.num_kv_heads, phase)) {
    return phase == AttentionPhase::kPrefill ? "FlashInfer prefill wrapper"
                                             : "FlashInfer decode wrapper";
  }
  return context.machine.family(10) ? "trtllm-gen" : "XQA";
}

std::string kernel_of(const SelectorContext& context, const BuiltLayer& layer,
                      AttentionPhase phase) {
  const std::string& name = layer.reported_backend;
  if (layer.role == LayerRole::kMla && phase == AttentionPhase::kPrefill &&
      !layer.mla_prefill.empty()) {
    return layer.mla_prefill + (layer.mla_prefill == "FLASH_ATTN" && layer.fa_version
                                    ? fmt::format(" (FA{})", *layer.fa_version)
                                    : std::string());
  }
  if (layer.fa_version) return fmt::format("FA{}", *layer.fa_version);
  if (name == "FLASHINFER" && layer.role != LayerRole::kMla) {
    return flashinfer_kernel(context, layer, phase);
  }
  return layer.implementation.empty() ? name : layer.implementation;
}

// The name by which reports call a type.
std::string short_name(const std::string& dtype) {
  if (dtype == "bfloat16") return "bf16";
  if (dtype == "float16") return "fp16";
  return dtype == "float32" ? "fp32" : dtype;
}

std::string stored_dtype(const RunResult& run, const BuiltLayer& layer, const LayerCache* cache) {
  if (layer.kv_dtype != "auto") return short_name(layer.kv_dtype);
  if (cache != nullptr && cache->spec && !cache->spec->cache_dtype.empty() &&
      cache->spec->cache_dtype != "auto") {
    return short_name(cache->spec->cache_dtype);
  }
  return short_name(run.run.dtype);
}

KvLayout kv_of(const RunResult& run, const BuiltLayer& layer, const LayerCache* cache) {
  KvLayout out;
  if (cache == nullptr || !cache->spec || layer.role == LayerRole::kState) return out;
  out.dtype = stored_dtype(run, layer, cache);
  out.layout = run.cache->layout.empty() ? run.run.kv_layout : run.cache->layout;
  out.page_size = cache->spec->block_size;
  out.shape = shape_text(cache->shape);
  return out;
}

// The name of a layer's backend; a plugin's class goes by the name that it was registered under.
std::string backend_of(const RunResult& run, std::size_t index) {
  const BuiltLayer& layer = run.layers[index];
  if (!layer.reported_backend.empty()) return layer.reported_backend;
  for (const LayerSelection& asked : run.selections) {
    if (std::find(asked.layers.begin(), asked.layers.end(), index) != asked.layers.end()) {
      return asked.selection.backend;
    }
  }
  return {};
}

// What tells two groups apart.
std::string key_of(const LayerGroup& group) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", static_cast<int>(group.kind), group.draft,
                     group.backend, group.window.value_or(-1), group.prefill.kernel,
                     group.decode.kernel, group.kv.dtype, group.kv.layout,
                     group.kv.page_size.value_or(-1), group.kv.shape);
}

std::string state_note(const BuiltLayer& layer) {
  if (layer.role != LayerRole::kState) return {};
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < layer.state_shapes.size(); ++i) {
    std::vector<std::string> axes;
    for (const std::int64_t axis : layer.state_shapes[i]) axes.push_back(fmt::to_string(axis));
    parts.push_back(fmt::format("[{}] {}", join(axes, ", "),
                                i < layer.state_dtypes.size() ? layer.state_dtypes[i] : ""));
  }
  return "state " + join(parts, ", ");
}

LayerGroup group_of(const SelectorContext& context, const RunResult& run, std::size_t index) {
  const BuiltLayer& layer = run.layers[index];
  const LayerCache* cache =
      run.cache && index < run.cache->layers.size() ? &run.cache->layers[index] : nullptr;
  LayerGroup out;
  out.kind = kind_of(layer);
  out.draft = layer.draft;
  out.window = layer.window ? layer.window : layer.chunk;
  out.backend = backend_of(run, index);
  out.prefill.kernel = kernel_of(context, layer, AttentionPhase::kPrefill);
  out.decode.kernel = kernel_of(context, layer, AttentionPhase::kDecode);
  out.decode.note = state_note(layer);
  out.kv = kv_of(run, layer, cache);
  if (cache != nullptr) {
    out.kv_bytes_per_token = token_bytes(*cache);
    out.kv_parts = kv_parts(layer, *cache);
  }
  return out;
}

// The CUDA-graph levels of layers; the same for layers that are alike and share a cache group.
class GraphLevels {
 public:
  GraphLevels(const SelectorContext& context, const RunResult& run) : context_(context), run_(run) {
    question_.speculative_tokens = run.run.speculative_tokens;
    question_.dcp = run.run.dcp;
    question_.use_non_causal = run.run.use_non_causal;
    question_.unclamped_window = std::any_of(
        run.layers.begin(), run.layers.end(),
        [](const BuiltLayer& layer) { return layer.window && !layer.clamps_prefix_mask; });
  }

  std::string of(std::size_t index, const std::string& key) {
    const BuiltLayer& layer = run_.layers[index];
    // A plan that ended with an error may know some layers only.
    const bool planned = run_.cache && index < run_.cache->layers.size();
    if (layer.role == LayerRole::kEncoderOnly || layer.backend == nullptr || !planned) return {};
    const std::optional<std::size_t> group = run_.cache->layers[index].group;
    const auto place = known_.try_emplace({key, group}).first;
    if (place->second.empty()) place->second = level_of(layer, index, group);
    return place->second;
  }

 private:
  std::string level_of(const BuiltLayer& layer, std::size_t index,
                       std::optional<std::size_t> group) {
    if (layer.chunk) return std::string(graph_level_name(GraphLevel::kNever));
    std::vector<KvSpec> specs;
    std::vector<std::size_t> asked = {index};
    // Until 0.32 all specs of the group are asked about at once.
    if (group && !context_.profile.at_least(0, 33)) asked = run_.cache->groups[*group].layers;
    for (const std::size_t mate : asked) {
      if (run_.cache->layers[mate].spec) specs.push_back(*run_.cache->layers[mate].spec);
    }
    question_.specs = specs;
    return std::string(graph_level_name(graph_level(context_, *layer.backend, question_)));
  }

  const SelectorContext& context_;
  const RunResult& run_;
  GraphQuestion question_;
  std::map<std::pair<std::string, std::optional<std::size_t>>, std::string> known_;
};

bool is_of_target(const BuiltLayer& layer) {
  return layer.role != LayerRole::kState && layer.role != LayerRole::kIndexer &&
         layer.role != LayerRole::kWindow && !layer.draft;
}

}  // namespace

std::int64_t token_bytes(const LayerCache& cache) {
  if (!cache.spec || cache.spec->kind == SpecKind::kMamba || cache.spec->block_size <= 0) return 0;
  return cache.page_bytes / cache.spec->block_size;
}

std::vector<LayerGroup> layer_groups(const SelectorContext& context, const RunResult& run) {
  std::vector<LayerGroup> out;
  std::map<std::string, std::size_t> known;
  GraphLevels levels(context, run);
  for (std::size_t i = 0; i < run.layers.size(); ++i) {
    LayerGroup group = group_of(context, run, i);
    std::string key = key_of(group);
    group.cuda_graph = levels.of(i, key);
    key += group.cuda_graph;
    const auto [place, added] = known.emplace(std::move(key), out.size());
    if (added) {
      group.layers.push_back(run.layers[i].index);
      out.push_back(std::move(group));
      continue;
    }
    LayerGroup& same = out[place->second];
    if (same.layers.back() != run.layers[i].index) same.layers.push_back(run.layers[i].index);
    same.kv_bytes_per_token += group.kv_bytes_per_token;
    add_parts(same.kv_parts, group.kv_parts);
  }
  return out;
}

MainBackend main_backend(const RunResult& run) {
  std::map<std::string, std::size_t> counts;
  for (std::size_t i = 0; i < run.layers.size(); ++i) {
    if (is_of_target(run.layers[i])) ++counts[backend_of(run, i)];
  }
  MainBackend best;
  std::size_t most = 0;
  for (std::size_t i = 0; i < run.layers.size(); ++i) {
    if (!is_of_target(run.layers[i])) continue;
    std::string name = backend_of(run, i);
    if (counts[name] <= most) continue;
    most = counts[name];
    best = {.name = std::move(name), .class_name = run.layers[i].class_name};
  }
  return best;
}

}  // namespace kernelpath::engines::vllm
