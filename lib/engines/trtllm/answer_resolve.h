#pragma once

#include "base/result.h"
#include "engines/trtllm/profile.h"
#include "json/value.h"

#include <string_view>

namespace kernelpath::engines::trtllm {

// Answers the `in` of a --batch line about model classes; in.op says which question:
//   resolve_class, from_config, get_model_architecture  config, options
//   vision             arch
//   builder            mode, ask_modes_of ("module.builder")
//   getattr            name
//   export
//   attn_layer_keys    layer_idx_sequence
//   is_builtin_zoo_module  module
// Each of the first six may carry external_modules, broken_modules and events_before. The answer
// has the fields of the recorded `out`: class, module, error, steps and what the question asks for.
// Error kBatchRequest for a question that cannot be read; it names the field.
Result<json::Value> answer_resolve(const json::Value& in, const Profile& profile);

// The same with the embedded profile.
Result<json::Value> answer_resolve(const json::Value& in);

// Whether answer_resolve() knows the question.
bool is_resolve_op(std::string_view op);

}  // namespace kernelpath::engines::trtllm
