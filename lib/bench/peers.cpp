#include "bench/peers.h"

#if defined(KERNELPATH_HAVE_FLASHINFER)
#include "bench/flashinfer/version.h"
#endif

namespace kernelpath::bench {

std::vector<PeerKind> peer_kinds() {
#if defined(KERNELPATH_HAVE_FLASHINFER)
  const std::string flashinfer = std::string("yes, ") + flashinfer_peer::version();
#else
  const std::string flashinfer = "not in this build (KERNELPATH_FLASHINFER)";
#endif
  const std::string by_script = "by scripts/bench-peers.py and --peers-file";
  return {
      {"flashinfer", flashinfer, "FlashInfer's fa2 decode with and without tensor cores, on CUDA"},
      {"torch", by_script, "PyTorch's scaled_dot_product_attention over K and V without pages"},
      {"cudnn", by_script, "cuDNN's paged attention through its Python frontend"},
      {"xqa", by_script, "FlashInfer's xqa kernels, which its Python package compiles"},
      {"flash-attention-3", by_script, "FlashAttention-3 with a KV cache in pages"},
  };
}

}  // namespace kernelpath::bench
