#pragma once

#include "base/result.h"
#include "config/fields.h"
#include "config/model_config.h"
#include "json/value.h"

#include <string>

namespace kernelpath::config {

// Gives `quant` its algorithm under one name, whatever tool wrote the object: "FP8",
// "FP8_BLOCK_SCALES", "FP8_PER_CHANNEL_PER_TOKEN", "NVFP4", "W4A16_AWQ", "W4A16_GPTQ",
// "W4A16_MXFP4", "MIXED_PRECISION" … (the names of TensorRT-LLM's QuantAlgo where it has one); also
// bits and group size where they follow from it. Leaves the algorithm absent where nothing tells.
Result<void> derive_algorithm(const json::Value& object, const std::string& pointer,
                              const FieldReader& reader, Quantization& quant);

}  // namespace kernelpath::config
