#pragma once

#include "bench/cuda_attention_data.h"
#include "bench/cuda_machine.h"
#include "bench/shape.h"
#include "bench/target.h"

#include <string>
#include <vector>

namespace kernelpath::bench {

// The peers of this build that `wanted` names (a list with commas, or "all"), on the data of a
// decode. A peer that cannot do the shape is there with the reason.
std::vector<Peer> cuda_decode_peers(CudaMachine& machine, const Shape& shape,
                                    const CudaAttentionData& data, const std::string& wanted);

}  // namespace kernelpath::bench
