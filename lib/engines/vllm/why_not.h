#pragma once

#include "base/result.h"
#include "engines/engine.h"
#include "engines/vllm/release_tables.h"

#include <string_view>

namespace kernelpath::engines::vllm {

// What refuses the backend `name` (any case) for a request, and the smallest sets of changes after
// which layers run on it. Every set in the answer was resolved again. Error kUsageUnknown for a
// name that the release does not have; it says which other version has it.
Result<Engine::WhyNot> why_not(const Request& request, std::string_view name,
                               const ReleaseTables& tables);

}  // namespace kernelpath::engines::vllm
