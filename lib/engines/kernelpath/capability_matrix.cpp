#include "engines/kernelpath/capability_matrix.h"

#include "attention/selector.h"

#include <fmt/format.h>

namespace kernelpath::engines::kernelpath {
namespace {

using attention::Feature;

// Sizes that every backend takes.
constexpr std::int64_t kHeadDim = 128;
constexpr std::int64_t kRopeDim = 64;

attention::LayerRequest plain_layer(const hardware::Device& device) {
  attention::LayerRequest out;
  out.platform = device.platform;
  // A type that every backend's cache has.
  out.kv_type = attention::DataType::kBf16;
  out.geometry = {.num_heads = 2, .num_kv_heads = 1, .head_dim = kHeadDim, .v_head_dim = kHeadDim};
  return out;
}

// The smallest change of a layer that makes it need the feature.
void need(Feature feature, attention::LayerRequest& layer) {
  switch (feature) {
    case Feature::kMla:
      layer.mla = attention::MlaDims{.q_lora_rank = 0,
                                     .kv_lora_rank = kHeadDim,
                                     .qk_nope_head_dim = kHeadDim,
                                     .qk_rope_head_dim = kRopeDim,
                                     .v_head_dim = kHeadDim};
      return;
    case Feature::kSparse:
      layer.sparse = true;
      return;
    case Feature::kSinks:
      layer.sinks = true;
      return;
    case Feature::kWindow:
      layer.geometry.window = kHeadDim;
      return;
    case Feature::kChunk:
      layer.geometry.chunk = kHeadDim;
      return;
    case Feature::kSoftcap:
      layer.geometry.softcap = 1.0F;
      return;
    case Feature::kNonCausal:
      layer.geometry.causal = false;
      return;
    case Feature::kOtherVHeadDim:
      layer.geometry.v_head_dim = kHeadDim / 2;
      return;
    case Feature::kLse:
      layer.lse_base = attention::LogBase::kE;
      return;
    case Feature::kContextParallel:
      layer.context_parallel = 2;
      return;
    case Feature::kFusedRope:
      layer.fused_rope = true;
      return;
    case Feature::kFusedQkv:
      layer.fused_qkv = true;
      return;
  }
}

// The first reason of each backend that is for this device; where there is none, of all.
std::string refusal_of(const attention::LayerRequest& layer) {
  const Result<attention::Selection> selection = attention::select({.layer = layer});
  if (!selection) return selection.error().message;
  if (selection->chosen != nullptr) return {};
  std::vector<std::string_view> here;
  std::vector<std::string_view> all;
  for (const attention::Candidate& candidate : selection->candidates) {
    const std::string_view reason = candidate.refusals.front().reason;
    all.push_back(reason);
    if (candidate.row->platform == layer.platform) here.push_back(reason);
  }
  return fmt::format("{}", fmt::join(here.empty() ? all : here, "; "));
}

}  // namespace

CapabilityMatrix capability_matrix(const hardware::Device& device) {
  CapabilityMatrix out;
  for (std::size_t row = 0; row < attention::kFeatures.size(); ++row) {
    out.features.emplace_back(feature_name(attention::kFeatures.at(row)));
    std::vector<std::string>& refusals = out.refusals.emplace_back();
    for (std::size_t column = 0; column < row; ++column) {
      attention::LayerRequest layer = plain_layer(device);
      need(attention::kFeatures.at(row), layer);
      need(attention::kFeatures.at(column), layer);
      refusals.push_back(refusal_of(layer));
    }
  }
  return out;
}

}  // namespace kernelpath::engines::kernelpath
