#pragma once

#include "base/result.h"
#include "config/model_config.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::memory {

// What a weight belongs to, in the order of reports.
enum class Part : std::uint8_t {
  kEmbedding,      // token (and position) embeddings
  kAttention,      // projections of attention layers, their biases, norms of Q and K, sinks
  kIndexer,        // of sparse attention
  kState,          // linear-attention and state-space layers
  kMlp,            // dense MLPs
  kRouter,         // of mixtures of experts
  kExperts,        // routed experts
  kSharedExperts,  // experts that every token passes
  kNorm,           // layer norms and the final norm
  kLmHead,         // output projection, where it is not the embedding
  kDraft,          // input projection of a draft model
  kVision,         // vision tower and its projector
  kMtp,            // multi-token-prediction layers that a target brings along
};
inline constexpr int kPartCount = static_cast<int>(Part::kMtp) + 1;
std::string_view part_name(Part part);  // "embedding", "shared experts" …

// How a model is spread over ranks. Attention and dense MLPs are split over tp ranks; routed
// experts go whole to ep groups, and each expert is split over the tp / ep ranks of a group.
struct Parallel {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t ep = 1;
  bool attention_dp = false;  // attention weights are replicated instead of split (each rank serves
                              // its own requests)
};

struct WeightOptions {
  Parallel parallel = {};
  bool load_mtp = false;                  // the engine loads the MTP layers (speculative decoding)
  std::optional<std::string> dtype = {};  // of what is not quantised; else the checkpoint's
};

struct WeightItem {
  Part part = Part::kEmbedding;
  std::int64_t parameters = 0;  // of the whole model; scales and zero points of quantisation count
                                // as bytes only
  std::int64_t bytes = 0;       // of the whole model
  std::int64_t rank_bytes = 0;  // over the pipeline stages, of one rank each
};

// The weight ledger of a model.
struct WeightLedger {
  std::vector<WeightItem> items;    // parts that the model has
  std::int64_t parameters = 0;      // of the model without MTP layers
  std::int64_t mtp_parameters = 0;  // of the MTP layers, which not every engine loads
  std::int64_t bytes = 0;           // unsharded, of what is loaded; the files' total where known
  std::string source;               // of `bytes`: "safetensors headers", "index", "geometry"
  std::vector<std::int64_t> stage_bytes;  // of one rank of each pipeline stage
  std::int64_t rank_bytes = 0;            // the largest of them: what must fit one device
  bool exact = true;                      // every tensor of the checkpoint is accounted for
  std::vector<std::string> reasons;       // why it is an estimate; what was assumed
};

// Counts the weights of `model` from its geometry and quantisation, and spreads them over ranks as
// `options` says. Where the checkpoint's files gave a total, `bytes` is that total, and what a rank
// holds is scaled to it.
// Errors: kConfigMissing (no geometry to count from), kConfigOverflow (a product does not fit 64
// bits; names the factors), kUsage (a parallel size < 1), kUsageConflict (pp > layers, ep >
// experts).
Result<WeightLedger> count_weights(const config::ModelConfig& model,
                                   const WeightOptions& options = {});

}  // namespace kernelpath::memory
