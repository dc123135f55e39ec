#pragma once

#include "bench/cuda_attention_data.h"
#include "bench/cuda_machine.h"
#include "bench/shape.h"
#include "bench/target.h"

#include <functional>
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

// Puts one launch over the pages of a copy on the stream. "" or what went wrong.
using PeerLaunch = std::function<std::string(std::int64_t copy, StreamView stream)>;

// A peer's launches, captured as ours are. Its `output` is compared with ours, which was compared
// with the reference: error kRuntime where it is another.
Result<std::unique_ptr<GraphWorkload>> capture_peer(CudaMachine& machine, const Shape& shape,
                                                    const CudaAttentionData& data,
                                                    const Buffer& output, PeerLaunch launch);

// Gives a peer its workload, of a class with `prepare(arguments…)`, or the reason why it has none.
template <class PeerWorkload, class... Arguments>
void prepare_peer(Peer& peer, Arguments&&... arguments) {
  auto workload = std::make_unique<PeerWorkload>();
  const Result<void> prepared = workload->prepare(std::forward<Arguments>(arguments)...);
  if (prepared) {
    peer.workload = std::move(workload);
  } else {
    peer.reason = prepared.error().text();
  }
}

}  // namespace kernelpath::bench
