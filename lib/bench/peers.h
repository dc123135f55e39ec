#pragma once

#include <string>
#include <vector>

namespace kernelpath::bench {

// A library whose kernels can stand beside ours.
struct PeerKind {
  std::string name;  // of --peer
  std::string here;  // "yes, 0.7.4", or why this build does not measure it
  std::string what;
};
std::vector<PeerKind> peer_kinds();

}  // namespace kernelpath::bench
