#include "bench/peers.h"

#include <fmt/format.h>

#include <algorithm>

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
      {"cublas", "where libcublas.so.13 is installed", "cuBLAS's products beside gemv, on CUDA"},
      {"flashinfer", flashinfer, "FlashInfer's fa2 decode with and without tensor cores, on CUDA"},
      {"torch", by_script, "PyTorch's scaled_dot_product_attention over K and V without pages",
       true},
      {"cudnn", by_script, "cuDNN's paged attention through its Python frontend", true},
      {"xqa", by_script, "FlashInfer's xqa kernels, which its Python package compiles", true},
      {"flash-attention-3", by_script, "FlashAttention-3 with a KV cache in pages", true},
  };
}

bool names_peer(std::string_view wanted, std::string_view peer) {
  for (std::size_t first = 0; first <= wanted.size();) {
    const std::size_t end = std::min(wanted.find(',', first), wanted.size());
    const std::string_view name = wanted.substr(first, end - first);
    if (name == "all" || name == peer) return true;
    first = end + 1;
  }
  return false;
}

Result<void> check_peer_output(double difference, double bound) {
  if (difference <= bound) return {};
  return fail({.code = ErrorCode::kRuntime,
               .message = fmt::format("its output differs from ours by {:.2g}, {:.2g} is allowed",
                                      difference, bound)});
}

}  // namespace kernelpath::bench
