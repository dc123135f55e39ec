#include "attention/layer_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::attention {
namespace {

constexpr std::array<RefusalRule, 11> kRules{{
    {"KP-BUILD", "a backend runs only where this build has its kernels"},
    {"KP-PLATFORM", "a backend's kernels are for one platform"},
    {"KP-FEATURE", "a layer's features must be among those that the backend claims"},
    {"KP-CHUNK", "a sequence longer than the chunk needs chunked attention"},
    {"KP-KV-DTYPE", "the cache's type must be among those that the backend reads"},
    {"KP-LAYOUT", "the cache's layout must be among those that the backend reads"},
    {"KP-PAGE-SIZE", "page sizes are multiples of what the backend's tiles need"},
    {"KP-HEAD-DIM", "head sizes lie in the backend's range"},
    {"KP-GRAPH", "a step that is to run from a CUDA graph needs a backend that can be captured"},
    {"KP-LSE-BASE", "a log-sum-exp is merged in the base in which the backend returns it"},
    {"KP-GEOMETRY", "heads, sizes and ranks of a layer go together"},
}};

// Collects reasons.
class Reasons {
 public:
  void add(std::string_view rule, std::string reason) {
    out_.push_back({.rule = std::string(rule), .reason = std::move(reason)});
  }
  void add_if(bool condition, std::string_view rule, std::string reason) {
    if (condition) add(rule, std::move(reason));
  }
  std::vector<Refusal> take() { return std::move(out_); }

 private:
  std::vector<Refusal> out_;
};

std::vector<std::int64_t> head_dims(const LayerRequest& request) {
  if (!request.mla) return {request.geometry.head_dim, request.geometry.v_head_dim};
  return {request.mla->kv_lora_rank + request.mla->qk_rope_head_dim, request.mla->kv_lora_rank,
          request.mla->qk_nope_head_dim + request.mla->qk_rope_head_dim, request.mla->v_head_dim};
}

bool chunk_is_empty_promise(const LayerRequest& request) {
  return request.max_seq_len > 0 && request.max_seq_len <= request.geometry.chunk;
}

void check_features(const BackendRow& row, const LayerRequest& request, Reasons& reasons) {
  const FeatureSet needed = request.features();
  for (const Feature feature : kFeatures) {
    if (!needed.has(feature) || row.features.has(feature)) continue;
    if (feature == Feature::kFusedRope && request.compressed_length) continue;
    if (feature != Feature::kChunk) {
      reasons.add("KP-FEATURE", fmt::format("{} has no {}", row.name, feature_name(feature)));
    } else if (!chunk_is_empty_promise(request)) {
      reasons.add("KP-CHUNK",
                  fmt::format("{} has no chunked attention, and sequences may be longer than the "
                              "chunk of {} tokens",
                              row.name, request.geometry.chunk));
    }
  }
}

void check_cache(const BackendRow& row, const LayerRequest& request, Reasons& reasons) {
  const std::string_view type = data_type_name(request.kv_type);
  reasons.add_if(!row.kv_types.has(request.kv_type), "KP-KV-DTYPE",
                 fmt::format("{} does not read {} caches", row.name, type));
  reasons.add_if(
      !row.layouts.has(request.layout), "KP-LAYOUT",
      fmt::format("{} does not read {} pages", row.name, kv_layout_name(request.layout)));
  reasons.add_if(request.page_size % row.page_multiple != 0, "KP-PAGE-SIZE",
                 fmt::format("a page of {} tokens is no multiple of {}", request.page_size,
                             row.page_multiple));
}

void check_head_dims(const BackendRow& row, const LayerRequest& request, Reasons& reasons) {
  for (const std::int64_t dim : head_dims(request)) {
    if (dim < row.min_head_dim || dim > row.max_head_dim) {
      reasons.add("KP-HEAD-DIM", fmt::format("head size {} is outside {} to {}", dim,
                                             row.min_head_dim, row.max_head_dim));
      return;
    }
    if (dim % row.head_dim_multiple != 0) {
      reasons.add("KP-HEAD-DIM",
                  fmt::format("head size {} is no multiple of {}", dim, row.head_dim_multiple));
      return;
    }
  }
}

void check_plain_sizes(const LayerRequest& request, Reasons& reasons) {
  const Geometry& geometry = request.geometry;
  reasons.add_if(geometry.head_dim < 1 || geometry.v_head_dim < 1, "KP-GEOMETRY",
                 fmt::format("head sizes {} and {} must be at least 1", geometry.head_dim,
                             geometry.v_head_dim));
  reasons.add_if(geometry.num_kv_heads < 1 ||
                     geometry.num_heads % std::max<std::int64_t>(geometry.num_kv_heads, 1) != 0,
                 "KP-GEOMETRY",
                 fmt::format("{} heads cannot share {} KV heads evenly", geometry.num_heads,
                             geometry.num_kv_heads));
}

void check_mla_sizes(const MlaDims& dims, Reasons& reasons) {
  reasons.add_if(!dims.q_lora_rank.has_value() || *dims.q_lora_rank < 0, "KP-GEOMETRY",
                 "MLA needs q_lora_rank (0 where queries have no latent)");
  const std::array<std::pair<std::string_view, std::int64_t>, 4> sizes{{
      {"kv_lora_rank", dims.kv_lora_rank},
      {"qk_nope_head_dim", dims.qk_nope_head_dim},
      {"qk_rope_head_dim", dims.qk_rope_head_dim},
      {"v_head_dim", dims.v_head_dim},
  }};
  for (const auto& [name, size] : sizes) {
    reasons.add_if(size < 1, "KP-GEOMETRY", fmt::format("MLA needs {}, which is {}", name, size));
  }
}

}  // namespace

FeatureSet LayerRequest::features() const {
  FeatureSet out;
  out.set(Feature::kMla, mla.has_value());
  out.set(Feature::kSparse, sparse);
  out.set(Feature::kSinks, sinks);
  out.set(Feature::kWindow, geometry.window > 0);
  out.set(Feature::kChunk, geometry.chunk > 0);
  out.set(Feature::kSoftcap, geometry.softcap > 0.0F);
  out.set(Feature::kNonCausal, !geometry.causal);
  out.set(Feature::kOtherVHeadDim, !mla && geometry.head_dim != geometry.v_head_dim);
  out.set(Feature::kLse, lse_base.has_value());
  out.set(Feature::kContextParallel, context_parallel > 1);
  out.set(Feature::kFusedRope, fused_rope);
  out.set(Feature::kFusedQkv, fused_qkv);
  return out;
}

Geometry mqa_geometry(const Geometry& layer, const MlaDims& dims) {
  Geometry out = layer;
  out.num_kv_heads = 1;
  out.head_dim = dims.kv_lora_rank + dims.qk_rope_head_dim;
  out.v_head_dim = dims.kv_lora_rank;
  return out;
}

Geometry mha_geometry(const Geometry& layer, const MlaDims& dims) {
  Geometry out = layer;
  out.num_kv_heads = layer.num_heads;
  out.head_dim = dims.qk_nope_head_dim + dims.qk_rope_head_dim;
  out.v_head_dim = dims.v_head_dim;
  return out;
}

std::vector<Refusal> refusals(const BackendRow& row, const LayerRequest& request) {
  Reasons reasons;
  reasons.add_if(!row.missing.empty(), "KP-BUILD", std::string(row.missing));
  reasons.add_if(
      row.platform != request.platform, "KP-PLATFORM",
      fmt::format("{} has kernels for {} only", row.name, hardware::platform_name(row.platform)));
  check_features(row, request, reasons);
  check_cache(row, request, reasons);
  check_head_dims(row, request, reasons);
  reasons.add_if(
      request.graph_level > row.graph_level, "KP-GRAPH",
      fmt::format("{} can be captured: {}; asked for: {}", row.name,
                  graph_level_name(row.graph_level), graph_level_name(request.graph_level)));
  reasons.add_if(request.lse_base && row.lse_base && *request.lse_base != *row.lse_base,
                 "KP-LSE-BASE",
                 fmt::format("{} returns the log-sum-exp in base {}, asked for: base {}", row.name,
                             log_base_name(row.lse_base.value_or(LogBase::kE)),
                             log_base_name(request.lse_base.value_or(LogBase::kE))));
  return reasons.take();
}

std::vector<Refusal> request_faults(const LayerRequest& request) {
  Reasons reasons;
  const Geometry& geometry = request.geometry;
  reasons.add_if(geometry.num_heads < 1, "KP-GEOMETRY",
                 fmt::format("{} heads: there must be at least 1", geometry.num_heads));
  if (request.mla) {
    check_mla_sizes(*request.mla, reasons);
  } else {
    check_plain_sizes(request, reasons);
  }
  reasons.add_if(geometry.window < 0 || geometry.chunk < 0 || geometry.softcap < 0.0F,
                 "KP-GEOMETRY", "window, chunk and soft cap must not be negative");
  reasons.add_if(request.page_size < 1, "KP-PAGE-SIZE",
                 fmt::format("a page of {} tokens holds nothing", request.page_size));
  // The latent row holds K and V: only its own width is stored.
  const std::size_t stored = request.mla ? 1 : 2;
  const std::vector<std::int64_t> dims = head_dims(request);
  for (std::size_t i = 0; i < stored; ++i) {
    if (dims[i] < 1 || fits_rows_of(request.kv_type, dims[i])) continue;
    reasons.add("KP-KV-DTYPE",
                fmt::format("nvfp4 rows hold whole blocks of {}, and {} is no multiple",
                            kNvfp4Block, dims[i]));
    break;
  }
  return reasons.take();
}

bool rope_fused(const BackendRow& row, const LayerRequest& request) {
  return request.fused_rope && !request.compressed_length && row.features.has(Feature::kFusedRope);
}

std::span<const RefusalRule> refusal_rules() { return kRules; }

}  // namespace kernelpath::attention
