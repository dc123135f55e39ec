#include "bench/peers.h"

#include <fmt/format.h>

#include <algorithm>

#if defined(KERNELPATH_HAVE_FLASHINFER)
#include "bench/flashinfer/version.h"
#endif
#if defined(KERNELPATH_HAVE_CUDNN)
#include "bench/cudnn/decode.h"
#endif

namespace kernelpath::bench {
namespace {

using attention::DataType;

// What is compared with no library.
std::string common_refusal(const Shape& shape) {
  const attention::Geometry& g = shape.geometry;
  if (shape.query_tokens != 1) return "several query tokens are not compared";
  if (g.window > 0 || g.chunk > 0 || g.softcap > 0 || shape.sinks) {
    return "windows, chunks, soft caps and sinks are not compared";
  }
  return g.v_head_dim == g.head_dim ? "" : "V rows as wide as K rows only";
}

}  // namespace

std::vector<PeerKind> peer_kinds() {
#if defined(KERNELPATH_HAVE_FLASHINFER)
  const std::string flashinfer = std::string("yes, ") + flashinfer_peer::version();
#else
  const std::string flashinfer = "not in this build (KERNELPATH_FLASHINFER)";
#endif
#if defined(KERNELPATH_HAVE_CUDNN)
  const std::string cudnn =
      "where libcudnn.so.9 is installed, through frontend " + cudnn_peer::version();
  constexpr bool kCudnnByScript = false;
#else
  const std::string cudnn = "not in this build (KERNELPATH_CUDNN), but by scripts/bench-peers.py";
  constexpr bool kCudnnByScript = true;
#endif
  const std::string by_script = "by scripts/bench-peers.py and --peers-file";
  return {
      {"cublas", "where libcublas.so.13 is installed", "cuBLAS's products beside gemv, on CUDA"},
      {"flashinfer", flashinfer, "FlashInfer's fa2 decode with and without tensor cores, on CUDA"},
      {"torch", by_script, "PyTorch's scaled_dot_product_attention over K and V without pages",
       true},
      {"cudnn", cudnn, "cuDNN's paged attention, on CUDA", kCudnnByScript},
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

std::string flashinfer_refusal(const Shape& shape) {
  if (std::string text = common_refusal(shape); !text.empty()) return text;
  if (shape.dtype != DataType::kBf16) return "bf16 queries only";
  if (shape.layout != attention::KvLayout::kHnd) return "HND pages only";
  const bool cached = shape.kv_type == DataType::kBf16 || shape.kv_type == DataType::kFp8E4m3;
  return cached ? "" : "KV caches in bf16 and fp8 (e4m3) only";
}

std::string cudnn_refusal(const Shape& shape) {
  if (std::string text = common_refusal(shape); !text.empty()) return text;
  const bool known = shape.dtype == DataType::kBf16 || shape.dtype == DataType::kF16;
  return known && shape.kv_type == shape.dtype ? "" : "bf16 or f16, queries and KV cache alike";
}

Result<void> check_peer_output(double difference, double bound) {
  if (difference <= bound) return {};
  return fail({.code = ErrorCode::kRuntime,
               .message = fmt::format("its output differs from ours by {:.2g}, {:.2g} is allowed",
                                      difference, bound)});
}

}  // namespace kernelpath::bench
