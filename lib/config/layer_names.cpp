#include "config/layer_plan.h"

#include <algorithm>
#include <array>

namespace kernelpath::config {
namespace {

using enum LayerKind;
constexpr std::optional<bool> kUnsaid = std::nullopt;

// Names of layer_types, layers_block_type, block_types, attention_layers in files of all families.
// "linear_attention" is a Mamba layer in families that have Mamba fields; see plan_layers().
constexpr std::array<LayerName, 34> kLayerNames = {{
    {"full_attention", kFull, false, kUnsaid},
    {"attention", kFull, false, kUnsaid},
    {"full", kFull, false, kUnsaid},
    {"global", kFull, false, kUnsaid},
    {"global_attention", kFull, false, kUnsaid},
    {"sliding_attention", kSliding, false, kUnsaid},
    {"sliding_window", kSliding, false, kUnsaid},
    {"sliding", kSliding, false, kUnsaid},
    {"swa", kSliding, false, kUnsaid},
    {"local", kSliding, false, kUnsaid},
    {"local_attention", kSliding, false, kUnsaid},
    {"reference_sliding_attention", kSliding, false, kUnsaid},
    {"chunked_attention", kChunked, false, kUnsaid},
    {"window_attention", kChunked, false, kUnsaid},
    {"linear_attention", kLinear, true, kUnsaid},
    {"linear", kLinear, true, kUnsaid},
    {"gated_deltanet", kLinear, true, kUnsaid},
    {"kda", kLinear, true, kUnsaid},
    {"recurrent", kLinear, true, kUnsaid},
    {"conv", kLinear, true, kUnsaid},
    {"mamba", kMamba, true, kUnsaid},
    {"mamba2", kMamba, true, kUnsaid},
    {"hybrid", kFull, true, kUnsaid},
    {"hybrid_sliding", kSliding, true, kUnsaid},
    {"indexed_attention", kSparse, false, kUnsaid},
    {"sparse_attention", kSparse, false, kUnsaid},
    {"deepseek_sparse_attention", kSparse, false, kUnsaid},
    {"qwen_sparse_attention", kSparse, false, kUnsaid},
    {"minimax_m3_sparse", kSparse, false, kUnsaid},
    {"compressed_sparse_attention", kSparse, false, kUnsaid},
    {"heavily_compressed_attention", kSparse, false, kUnsaid},
    {"cross_attention", kCross, false, kUnsaid},
    {"moe", kNone, false, true},
    {"mlp", kNone, false, false},
}};

}  // namespace

const LayerName* find_layer_name(std::string_view name) {
  const auto* const found = std::find_if(kLayerNames.begin(), kLayerNames.end(),
                                         [&](const LayerName& row) { return row.name == name; });
  return found == kLayerNames.end() ? nullptr : &*found;
}

}  // namespace kernelpath::config
