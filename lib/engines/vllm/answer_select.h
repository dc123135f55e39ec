#pragma once

#include "base/result.h"
#include "engines/vllm/profile.h"
#include "json/value.h"

namespace kernelpath::engines::vllm {

// Answers the question of one layer to the selector, as the recorded answers (select.jsonl) put it
// (facts: vllm, section 17): `in` names capability, head size, dtypes, flags, which model's fields
// are visible and which packages are missing. Error kBatchRequest.
Result<json::Value> answer_select(const Profile& profile, const json::Value& in);

}  // namespace kernelpath::engines::vllm
