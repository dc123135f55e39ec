#pragma once

#include "base/result.h"
#include "engines/answer_fields.h"
#include "engines/resolution.h"
#include "hardware/device.h"
#include "json/value.h"

#include <optional>

namespace kernelpath::engines::trtllm {

// The part of answer_backend() that is about inner kernels and the KV cache. Each answers one op;
// errors are kBatchRequest.
Result<json::Value> answer_kv_bytes_per_token(AnswerFields& fields);
Result<json::Value> answer_flashinfer_inner(AnswerFields& fields);
Result<json::Value> answer_fmha_libs_env(AnswerFields& fields);
Result<json::Value> answer_fmha_select(AnswerFields& fields);

// The field `capability`, a list such as [9, 0].
hardware::Capability read_capability(AnswerFields& fields);

// {"type": …, "code": …} of an error of the engine, or null.
json::Value error_value(const std::optional<EngineError>& error);

}  // namespace kernelpath::engines::trtllm
