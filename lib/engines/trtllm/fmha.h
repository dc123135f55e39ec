#pragma once

#include "engines/resolution.h"
#include "engines/trtllm/fmha_libraries.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::trtllm {

struct FmhaRefusal {
  std::string library;
  std::string rule;  // "CTX-HEAD-DIM"; the step's rule is "TRT-FMHA-" + rule
};

struct FmhaSelection {
  std::string impl;                   // empty: nothing serves the request
  std::string context_impl;           // of a combined choice; else empty
  std::string generation_impl;        // of a combined choice; else empty
  std::vector<FmhaRefusal> rejected;  // libraries asked and refused before, for the whole request
  std::vector<std::string> available;
  struct Unavailable {
    std::string library;
    std::string reason;
  };
  std::vector<Unavailable> unavailable;  // enabled libraries that cannot serve the layer
  std::optional<EngineError> error;      // "NO-FMHA", "MLA-MIXED-CALL", "PAGED-CONTEXT-REFUSED" …
};

// Which FMHA library of the TRTLLM backend serves a request. `libs` is the value of TLLM_FMHA_LIBS.
// Source: backends/fmha/manager.py, 2c9ce61b; the paged-context refusal from a later fallback.py.
FmhaSelection select_fmha(const FmhaLayer& layer, const FmhaRequest& request,
                          const std::optional<std::string>& libs);
void append_steps(const FmhaSelection& selection, std::vector<Step>& steps);

// What a cached selection is keyed by: a later request of the same key reuses the choice, whatever
// else changed.
struct FmhaCacheKey {
  std::int64_t context_batch = 0;
  std::int64_t generation_batch = 0;
  std::int64_t generation_seq_len_q = 0;
  bool custom_mask = false;
  bool spec_decoding = false;
  bool block_sparse = false;
  DataType output = DataType::kBf16;
  friend bool operator==(const FmhaCacheKey&, const FmhaCacheKey&) = default;
};
FmhaCacheKey fmha_cache_key(const FmhaRequest& request, bool spec_decoding, bool block_sparse);

// The bucket of a batch size or query length: the next grid point at or above it, the largest one
// above the grid, 0 for nothing. A grid point stands at each candidate and just below it.
std::int64_t fmha_batch_bucket(std::int64_t batch);
std::int64_t fmha_query_bucket(std::int64_t seq_len_q);

}  // namespace kernelpath::engines::trtllm
