#pragma once

#include "base/result.h"
#include "engines/deepinfer/fault.h"
#include "engines/deepinfer/start_up.h"
#include "json/value.h"

#include <span>
#include <string>
#include <string_view>

namespace kernelpath::engines::deepinfer {

// The `op`s that a batch line may name.
std::span<const std::string_view> ops();

// Answers one recorded kind of question: the whole start-up ("resolve", "llm") or a part of it.
// Errors: kBatchRequest for an unknown op or a field of the wrong type.
Result<json::Value> answer(const json::Value& in);

// Shared by the answers.
json::Value fault_value(const std::optional<Fault>& fault);
// `config`, `flags`, `env`, `platform`, `sm`, `machine` of a question.
Result<Question> read_question(const json::Value& in);

// Answers of the parts; `op` is one of part_ops().
std::span<const std::string_view> part_ops();
Result<json::Value> answer_part(std::string_view op, const json::Value& in,
                                const Question& question);

}  // namespace kernelpath::engines::deepinfer
