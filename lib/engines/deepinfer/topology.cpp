#include "engines/deepinfer/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace kernelpath::engines::deepinfer {
namespace {

constexpr std::string_view kStage = "configs";

tl::unexpected<Fault> refused(std::string_view rule, std::string text = {}) {
  return refuse(std::string(kStage), std::string(rule), std::move(text));
}

// From the smallest source on, each backbone layer shares with the largest source not above it.
std::vector<std::int64_t> source_map(const Model& model, std::vector<std::int64_t> sources) {
  std::ranges::sort(sources);
  std::vector<std::int64_t> map;
  for (std::int64_t layer = 0; layer < model.all_layers(); ++layer) {
    const auto above = std::ranges::upper_bound(sources, layer);
    const bool shares = layer < model.num_layers && above != sources.begin();
    // A negative id counts from the end for nobody: the layer keeps itself.
    const std::int64_t source = shares ? *std::prev(above) : layer;
    map.push_back(source < 0 ? layer : source);
  }
  return map;
}

std::int64_t ratio_of(const Model& model, std::int64_t layer) {
  return layer < model.num_layers ? model.compress_ratios[static_cast<std::size_t>(layer)] : 0;
}

std::int64_t index_topk_of(const Model& model, std::int64_t layer) {
  return model.compressed(layer) ? model.index_topk : 0;
}

Checked<bool> check_map(const Model& model, const std::vector<std::int64_t>& map,
                        std::string_view name) {
  for (std::int64_t layer = 0; layer < model.all_layers(); ++layer) {
    if (Topology::is_source(map, layer)) continue;
    const std::int64_t source = map[static_cast<std::size_t>(layer)];
    if (!model.compressed(layer)) {
      return refused("consumer-without-shared-cfg",
                     fmt::format("shared {} map marks layer {} as a consumer, but it has no "
                                 "layer_info_shared_cfg",
                                 name, layer));
    }
    if (ratio_of(model, layer) != ratio_of(model, source)) {
      return refused(
          "shared-layer-cfg-differs",
          fmt::format("shared {} layer {} and source {} have different kv_compress_ratio: {} != {}",
                      name, layer, source, ratio_of(model, layer), ratio_of(model, source)));
    }
  }
  return true;
}

Checked<bool> check_refines(const std::vector<std::int64_t>& fine, std::string_view fine_name,
                            const std::vector<std::int64_t>& coarse, std::string_view coarse_name) {
  for (std::size_t layer = 0; layer < fine.size(); ++layer) {
    const std::int64_t source = fine[layer];
    const std::int64_t own = coarse[layer];
    const std::int64_t of_source = coarse[static_cast<std::size_t>(source)];
    if (own == of_source) continue;
    return refused(
        "map-not-refining",
        fmt::format("shared {} map must refine {} map: layer {} -> {} source {}, but {} "
                    "sources differ: {} != {}",
                    fine_name, coarse_name, layer, fine_name, source, coarse_name, own, of_source));
  }
  return true;
}

Checked<bool> check_sharing(const Model& model, const Topology& topology) {
  KERNELPATH_CHECK_OK(check_map(model, topology.index_topk, "index-topk"));
  KERNELPATH_CHECK_OK(check_map(model, topology.index_k, "index-k"));
  KERNELPATH_CHECK_OK(check_map(model, topology.kv, "kv"));
  if (model.boundary < model.num_layers && !Topology::is_source(topology.kv, model.boundary)) {
    return refused("boundary-not-kv-source");
  }
  KERNELPATH_CHECK_OK(
      check_refines(topology.index_topk, "index-topk", topology.index_k, "index-k"));
  return check_refines(topology.index_k, "index-k", topology.kv, "kv");
}

Checked<bool> check_candidates(const Model& model, const Topology& topology) {
  if (!model.candidates) return true;
  const CandidateSettings& candidates = *model.candidates;
  const std::int64_t source = candidates.source_layer;
  if (source >= model.num_layers) {
    return refused("candidate-source-without-cfg",
                   "All candidate source layers must have a source cfg.");
  }
  if (!Topology::is_source(topology.index_topk, source)) {
    return refused("candidate-source-not-index-source");
  }
  if (index_topk_of(model, source) <= 0) return refused("candidate-source-not-sparse");
  if (candidates.topk_blocks <= 0 || candidates.topk_blocks % 8 != 0) {
    return refused("candidate-topk-blocks-multiple-of-8");
  }
  if (candidates.block_size < 1 || candidates.block_size > 16) {
    return refused("candidate-block-size-1-16");
  }
  for (std::int64_t layer = source + 1; layer < model.num_layers; ++layer) {
    if (ratio_of(model, layer) != ratio_of(model, source))
      return refused("candidate-ratio-differs");
  }
  if (candidates.topk_blocks * candidates.block_size < model.index_topk) {
    return refused("candidate-capacity-below-index-topk");
  }
  return true;
}

Checked<bool> check_truncation(const Model& model, const Variables& variables) {
  KERNELPATH_TRY(mode, variables.truncation_mode(kStage));
  if (mode == "off") return true;
  if (model.boundary <= 0 || model.boundary >= model.num_layers) {
    return refused("yoco-boundary-out-of-range");
  }
  KERNELPATH_TRY(keep, variables.count("YOCO_PREFILL_KEEP_TOKENS", kStage));
  if (keep <= 0) return refused("yoco-keep-tokens-not-positive");
  return true;
}

}  // namespace

Checked<Topology> build_topology(const Model& model, const Variables& variables) {
  for (std::int64_t layer = 0; layer < model.num_layers; ++layer) {
    const std::int64_t ratio = ratio_of(model, layer);
    if (ratio >= 0 && ratio <= 2) continue;
    return raise({.stage = std::string(kStage),
                  .type = "ValueError",
                  .text = "Only C1/C2 compression is supported; C4 and C128 have been removed",
                  .rule = "ratio-not-0-1-2"});
  }
  // A model without compressed layers shares nothing: no map is built and none is checked.
  if (!model.any_compressed()) {
    KERNELPATH_CHECK_OK(check_truncation(model, variables));
    const std::vector<std::int64_t> own = source_map(model, {model.all_layers()});
    return Topology{.index_topk = own, .index_k = own, .kv = own};
  }
  if (model.candidates && (model.candidates->source_layer < 0 ||
                           model.candidates->source_layer >= model.all_layers())) {
    return refused("candidate-id-out-of-range");
  }
  Topology topology{.index_topk = source_map(model, model.index_sources),
                    .index_k = source_map(model, model.index_k_sources),
                    .kv = source_map(model, model.kv_sources)};
  KERNELPATH_CHECK_OK(check_sharing(model, topology));
  KERNELPATH_CHECK_OK(check_candidates(model, topology));
  KERNELPATH_CHECK_OK(check_truncation(model, variables));
  if (!model.engram.layers.empty() && !model.engram.compressed_tokenizer) {
    return refused("engram-needs-compressed-tokenizer",
                   "engram requires engram_cfg.enable_tokenizer_compression=True");
  }
  return topology;
}

}  // namespace kernelpath::engines::deepinfer
