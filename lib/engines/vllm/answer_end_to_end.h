#pragma once

#include "base/result.h"
#include "engines/vllm/model_registry.h"
#include "engines/vllm/profile.h"
#include "json/value.h"

namespace kernelpath::engines::vllm {

// Answers the question of a whole run, as the recorded answers (end_to_end.jsonl) put it: `in`
// names a capability, a config.json, flags by the names of the engine's arguments, and variables of
// its environment. A sequence is no longer than 4096 tokens unless the flags say so; a question
// whose name ends with "-runtime" also counts what is raised when metadata is built. Errors:
// kBatchRequest; what the reader of configurations refuses.
Result<json::Value> answer_end_to_end(const Profile& profile, const ModelRegistry& registry,
                                      const json::Value& in);

}  // namespace kernelpath::engines::vllm
