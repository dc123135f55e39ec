#pragma once

#include "base/result.h"
#include "json/value.h"

#include <string>
#include <string_view>

namespace kernelpath::features {

// One answer of the batch protocol's `validate` (docs: cli, section 9).
struct Answer {
  json::Value out;   // {"verdict": ok|downgrade|error, "error_type": …, "effects": {…}}
  std::string rule;  // id of the deciding rule; "OK" if there is none
};

// Answers the `in` of a validate request for one engine:
//   {…arguments…}                      what constructing the arguments gives; names that begin with
//                                      "_" are facts about machine and checkpoint
//   {"op": "kv_estimation_runs", …}    whether the run that sizes the KV pool takes place
//   {"op": "feature_pair", …}          the documented pair of two features
//   {"op": "model_feature", …}         the documented row of a key model
// Error kBatchRequest: an unknown op, feature or architecture, a missing field.
Result<Answer> answer_validate(std::string_view engine, const json::Value& in);

}  // namespace kernelpath::features
