#pragma once

#include "json/value.h"

#include <string>

namespace kernelpath::golden {

// Empty if `answer` equals the recorded whole run of vLLM, else the first difference: of `errors`
// stage and type count; of `layers` not `example` and `note`; everything else exactly. A run that
// was worked out by reading states only what the reading gave: its layers are looked for among
// ours, by the fields that they state.
std::string vllm_end_to_end_difference(const json::Value& record, const json::Value& answer);

}  // namespace kernelpath::golden
