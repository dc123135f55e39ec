#pragma once

#include "base/result.h"
#include "engines/sglang/profile.h"
#include "json/value.h"

namespace kernelpath::engines::sglang {

// Answers the `in` of a question about a launch: a config.json, flags and a device. The answer has
// the fields of the recorded `out`. Error kBatchRequest for a field that cannot be read.
Result<json::Value> answer_select(const Profile& profile, const json::Value& in);

}  // namespace kernelpath::engines::sglang
