#pragma once

#include "base/result.h"
#include "bench/shape.h"

#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::bench {

// A library whose kernels can stand beside ours.
struct PeerKind {
  std::string name;  // of --peer
  std::string here;  // "yes, 0.7.4", or why this build does not measure it
  std::string what;
  bool by_script = false;  // measured by scripts/bench-peers.py
};
std::vector<PeerKind> peer_kinds();

// Whether a list of --peer (with commas, or "all") names one.
bool names_peer(std::string_view wanted, std::string_view peer);

// Why FlashInfer's or cuDNN's kernels do not stand beside a decode of this shape; "" if they do.
std::string flashinfer_refusal(const Shape& shape);
std::string cudnn_refusal(const Shape& shape);

// Whether a peer's output, which lies this far from ours, is that of the same problem: a peer that
// computes something else is no peer. Error kRuntime.
Result<void> check_peer_output(double difference, double bound);

}  // namespace kernelpath::bench
