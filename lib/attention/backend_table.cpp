#include "attention/backend_table.h"

#include <algorithm>

namespace kernelpath::attention {

std::string_view feature_name(Feature feature) {
  switch (feature) {
    case Feature::kMla:
      return "multi-head latent attention";
    case Feature::kSparse:
      return "index-sparse attention";
    case Feature::kSinks:
      return "attention sinks";
    case Feature::kWindow:
      return "sliding window";
    case Feature::kChunk:
      return "chunked attention";
    case Feature::kSoftcap:
      return "logit soft cap";
    case Feature::kNonCausal:
      return "non-causal attention";
    case Feature::kOtherVHeadDim:
      return "values of another head size than keys";
    case Feature::kLse:
      return "returning the log-sum-exp";
    case Feature::kContextParallel:
      return "context-parallel caches";
    case Feature::kFusedRope:
      return "fused RoPE";
    case Feature::kFusedQkv:
      return "fused QKV input";
  }
  return "";
}

std::string_view graph_level_name(GraphLevel level) {
  switch (level) {
    case GraphLevel::kNever:
      return "never";
    case GraphLevel::kSingleTokenDecode:
      return "uniform single-token decode";
    case GraphLevel::kUniformBatch:
      return "uniform batch";
    case GraphLevel::kAlways:
      return "always";
  }
  return "";
}

std::span<const BackendRow> backend_table() { return kBackendTable; }

const BackendRow& backend_row(BackendId id) {
  return *std::ranges::find(kBackendTable, id, &BackendRow::id);
}

std::string_view kv_shape(KvLayout layout) {
  return layout == KvLayout::kNhd ? "[num_pages, page_size, num_kv_heads, head_dim]"
                                  : "[num_pages, num_kv_heads, page_size, head_dim]";
}

std::string_view kv_layout_name(KvLayout layout) {
  return layout == KvLayout::kNhd ? "NHD" : "HND";
}

std::string_view log_base_name(LogBase base) { return base == LogBase::kE ? "e" : "2"; }

}  // namespace kernelpath::attention
