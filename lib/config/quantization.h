#pragma once

#include "base/result.h"
#include "config/fields.h"
#include "config/model_config.h"

#include <string>

namespace kernelpath::config {

// One object of quantisation fields: quantization_config of config.json, or the content of a file
// beside it.
struct QuantSource {
  const json::Value* object = nullptr;
  std::string
      pointer;  // prefix of origins: "/quantization_config", "hf_quant_config.json:/quantization"
  OriginKind kind = OriginKind::kField;
};

// Reads any of the forms in use: fp8, fbgemm_fp8, modelopt (also without quant_method), compressed
// tensors, AWQ, GPTQ, MXFP4, bitsandbytes, torchao … Errors: fields of the wrong type, impossible
// block sizes.
Result<Quantization> read_quantization(const QuantSource& source, const FieldReader& reader);

// Fills what `own` leaves out from `other`.
void complete(Quantization& own, const Quantization& other);

// Warns where config.json and the file beside it disagree on weights or KV cache.
void compare(const Quantization& own, const Quantization& sibling, const FieldReader& reader);

}  // namespace kernelpath::config
