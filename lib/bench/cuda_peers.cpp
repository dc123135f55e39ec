#include "bench/cuda_peers.h"

#include "bench/peers.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

namespace kernelpath::bench {
namespace {

using MakePeers = std::vector<Peer> (*)(CudaMachine&, const Shape&, const CudaAttentionData&);

#if defined(KERNELPATH_HAVE_FLASHINFER)
constexpr MakePeers kFlashInfer = flashinfer_peers;
#else
constexpr MakePeers kFlashInfer = nullptr;
#endif
#if defined(KERNELPATH_HAVE_CUDNN)
constexpr MakePeers kCudnn = cudnn_peers;
#else
constexpr MakePeers kCudnn = nullptr;
#endif

struct DecodePeers {
  std::string_view kind;    // of --peer
  std::string_view name;    // of the row of one that this build lacks
  std::string_view option;  // that brings it into a build
  MakePeers make;           // null: not in this build
};
constexpr std::array<DecodePeers, 2> kDecodePeers = {{
    {"flashinfer", "flashinfer", "KERNELPATH_FLASHINFER", kFlashInfer},
    {"cudnn", "cudnn_paged", "KERNELPATH_CUDNN", kCudnn},
}};

// Its output against ours.
Result<void> compare(const Shape& shape, const CudaAttentionData& data, const Buffer& output) {
  const auto count = static_cast<std::size_t>(data.o.bytes() / 2);
  std::vector<std::uint16_t> own(count);
  std::vector<std::uint16_t> other(count);
  KERNELPATH_CHECK_OK(kernels::cuda::copy_to_host(own.data(), data.o.data(), data.o.bytes()));
  KERNELPATH_CHECK_OK(kernels::cuda::copy_to_host(other.data(), output.data(), output.bytes()));
  const std::vector<float> ours = widened(shape.dtype, own);
  const std::vector<float> theirs = widened(shape.dtype, other);
  Difference difference;
  for (std::size_t i = 0; i < count; ++i) difference.add(theirs[i], ours[i]);
  constexpr double kBound = 3e-2;
  return check_peer_output(difference.relative(), kBound);
}

}  // namespace

std::vector<Peer> cuda_decode_peers(CudaMachine& machine, const Shape& shape,
                                    const CudaAttentionData& data, const std::string& wanted) {
  std::vector<Peer> out;
  for (const DecodePeers& peers : kDecodePeers) {
    if (!names_peer(wanted, peers.kind)) continue;
    if (peers.make != nullptr) {
      std::vector<Peer> made = peers.make(machine, shape, data);
      std::ranges::move(made, std::back_inserter(out));
    } else if (wanted != "all") {
      out.push_back({.name = std::string(peers.name),
                     .reason = "not in this build (" + std::string(peers.option) + ")"});
    }
  }
  return out;
}

Result<std::unique_ptr<GraphWorkload>> capture_peer(CudaMachine& machine, const Shape& shape,
                                                    const CudaAttentionData& data,
                                                    std::shared_ptr<PeerKernel> kernel) {
  const std::int64_t copies = data.plan.copies;
  const Buffer& output = kernel->output();
  // The workload keeps it as long as the graph.
  const auto launch = [copies, kernel = std::move(kernel)](std::int64_t pass,
                                                           StreamView stream) -> Result<void> {
    const std::string text = kernel->launch(pass % copies, stream);
    if (text.empty()) return {};
    return fail({.code = ErrorCode::kRuntime, .message = text});
  };
  KERNELPATH_TRY(
      graph, GraphWorkload::capture(machine, {.before = {}, .launch = launch, .launches = copies}));
  KERNELPATH_CHECK_OK(graph->run(1));
  KERNELPATH_CHECK_OK(compare(shape, data, output));
  return std::move(graph);
}

}  // namespace kernelpath::bench
