#pragma once

namespace kernelpath::bench::flashinfer_peer {

// "0.7.4": of the headers that were compiled in.
inline const char* version() { return KERNELPATH_FLASHINFER_VERSION; }

}  // namespace kernelpath::bench::flashinfer_peer
