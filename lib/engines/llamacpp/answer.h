#pragma once

#include "base/result.h"
#include "engines/llamacpp/profile.h"
#include "json/value.h"

#include <span>
#include <string_view>

namespace kernelpath::engines::llamacpp {

// Operations of a batch request.
std::span<const std::string_view> answer_ops();  // "kv_size", "fattn"

// Sizes of a context: `in` names the architecture, the metadata and the context's parameters, `out`
// is what the engine's context gets on a machine whose device serves flash attention.
// Error kBatchRequest.
Result<json::Value> answer_kv_size(const Profile& profile, const json::Value& in);

// The CUDA kernel of one attention operation. Error kBatchRequest.
Result<json::Value> answer_fattn(const json::Value& in);

// Error kBatchRequest for an operation that there is not.
Result<json::Value> answer_op(const Profile& profile, std::string_view op, const json::Value& in);

}  // namespace kernelpath::engines::llamacpp
