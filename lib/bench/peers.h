#pragma once

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

}  // namespace kernelpath::bench
