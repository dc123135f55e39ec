#pragma once

#include "base/huge_memory.h"
#include "base/result.h"
#include "model/layers.h"
#include "model/spec.h"

namespace kernelpath::model {

// Splits every kv_b_proj by head into W_UK (transposed) and W_UV, in the type of the file where it
// is a plain one, else in float32, and makes the layers' matrices point into the memory returned.
// kv_b_proj's own weights are not needed any more. Error: kResource.
Result<HugeMemory> absorb_latent_weights(const DecoderSpec& spec, Parameters& parameters);

// Bytes of that memory; the formats of kv_b_proj must be known.
std::int64_t absorbed_bytes(const Parameters& parameters);

}  // namespace kernelpath::model
