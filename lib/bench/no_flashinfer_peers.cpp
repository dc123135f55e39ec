#include "bench/cuda_peers.h"
#include "bench/peers.h"

// In builds without FlashInfer's headers.

namespace kernelpath::bench {

std::vector<Peer> cuda_decode_peers(CudaMachine& /*machine*/, const Shape& /*shape*/,
                                    const CudaAttentionData& /*data*/, const std::string& wanted) {
  std::vector<Peer> out;
  if (wanted != "all" && names_peer(wanted, "flashinfer")) {
    out.push_back(
        {.name = "flashinfer", .reason = "this build has no FlashInfer (KERNELPATH_FLASHINFER)"});
  }
  return out;
}

}  // namespace kernelpath::bench
