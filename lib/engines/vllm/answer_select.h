#pragma once

#include "base/result.h"
#include "engines/answer_fields.h"
#include "engines/vllm/profile.h"
#include "hardware/device.h"
#include "json/value.h"

namespace kernelpath::engines::vllm {

// Answers the question of one layer to the selector, as the recorded answers (select.jsonl) put it:
// `in` names capability, head size, dtypes, flags, which model's fields
// are visible and which packages are missing. Error kBatchRequest.
Result<json::Value> answer_select(const Profile& profile, const json::Value& in);

// The member "cap" of a question: "9.0"; a refusal where it is none.
hardware::Capability read_capability(AnswerFields& fields);

}  // namespace kernelpath::engines::vllm
