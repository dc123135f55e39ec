#pragma once

#include "bench/cuda_attention_data.h"
#include "bench/cuda_machine.h"
#include "bench/shape.h"
#include "bench/target.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kernelpath::bench {

// The decode kernels of other libraries that `wanted` names (a list with commas, or "all"), on the
// data of a decode. A peer that cannot do the shape is there with the reason, and so is one that is
// asked for by name and not in this build.
std::vector<Peer> cuda_decode_peers(CudaMachine& machine, const Shape& shape,
                                    const CudaAttentionData& data, const std::string& wanted);

// Those of one library, in builds that have it.
std::vector<Peer> cudnn_peers(CudaMachine& machine, const Shape& shape,
                              const CudaAttentionData& data);
std::vector<Peer> flashinfer_peers(CudaMachine& machine, const Shape& shape,
                                   const CudaAttentionData& data);

// A peer's kernel with the tables and the memory that it needs.
class PeerKernel {
 public:
  virtual ~PeerKernel() = default;
  // Puts one launch over the pages of a copy on the stream. "" or what went wrong.
  virtual std::string launch(std::int64_t copy, StreamView stream) = 0;
  [[nodiscard]] virtual const Buffer& output() const = 0;
};

// A kernel's launches, captured as ours are; they end before it does. Its output is compared with
// ours, which was compared with the reference: error kRuntime where it is another.
Result<std::unique_ptr<GraphWorkload>> capture_peer(CudaMachine& machine, const Shape& shape,
                                                    const CudaAttentionData& data,
                                                    std::shared_ptr<PeerKernel> kernel);

// Gives a peer the launches of a kernel with `prepare(machine, shape, data, options…)`, or the
// reason why it has none.
template <class Kernel, class... Options>
void prepare_peer(Peer& peer, CudaMachine& machine, const Shape& shape,
                  const CudaAttentionData& data, Options... options) {
  auto kernel = std::make_shared<Kernel>();
  const Result<void> prepared = kernel->prepare(machine, shape, data, options...);
  if (!prepared) {
    peer.reason = prepared.error().text();
    return;
  }
  Result<std::unique_ptr<GraphWorkload>> captured =
      capture_peer(machine, shape, data, std::move(kernel));
  if (captured) {
    peer.workload = std::move(*captured);
  } else {
    peer.reason = captured.error().text();
  }
}

}  // namespace kernelpath::bench
