#pragma once

namespace kernelpath::bench::flashinfer_peer {

// "0.7.4": of the headers that were compiled in.
const char* version();

}  // namespace kernelpath::bench::flashinfer_peer
