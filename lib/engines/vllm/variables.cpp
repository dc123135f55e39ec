#include "engines/vllm/variables.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

using Row = std::pair<std::string_view, std::string_view>;

constexpr std::array kRead = {
    Row{"VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE",
        "0: chunked layers are stored like full attention"},
    Row{"VLLM_BATCH_INVARIANT", "1: only backends whose results do not depend on the batch"},
    Row{"VLLM_HAS_FLASHINFER_CUBIN", "1: FlashInfer's precompiled kernels are there"},
    Row{"VLLM_KV_CACHE_LAYOUT", "the cache's layout, where no backend requires another"},
    Row{"VLLM_MLA_DISABLE", "1: latent attention runs as plain attention"},
    Row{"VLLM_ROCM_SHUFFLE_KV_CACHE_LAYOUT", "1: AITER keeps its cache shuffled"},
    Row{"VLLM_ROCM_USE_AITER", "1: AITER's kernels on AMD devices"},
    Row{"VLLM_USE_V2_MODEL_RUNNER", "0 or 1: the model runner, on which a draft's backend depends"},
};

}  // namespace

std::string_view effect_of_variable(std::string_view name) {
  const auto* found =
      std::find_if(kRead.begin(), kRead.end(), [&](const Row& row) { return row.first == name; });
  return found == kRead.end() ? std::string_view() : found->second;
}

}  // namespace kernelpath::engines::vllm
