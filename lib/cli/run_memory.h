#pragma once

#include "engines/request.h"
#include "report/blocks.h"
#include "report/inspect.h"
#include "runtime/session.h"

#include <optional>
#include <string>
#include <vector>

namespace kernelpath::cli {

// Model, class, parameters, weights, backend and why, kernels and cache in a line; with several
// ranks another one that says whose sizes these are.
std::vector<std::string> plan_lines(const report::InputAnswer& answer,
                                    const runtime::SessionPlan& plan,
                                    const runtime::SessionOptions& options);

// The three ledgers of a rank's plan, and what a step needs beside them: a row each, in words and
// bytes.
report::Block plan_table(const runtime::SessionPlan& plan, const comm::Placement& ranks);

// Where --max-model-len is longer than what the model is made for.
std::optional<std::string> length_warning(const engines::Request& request);

// What building the model was said to take, and what it took; empty where the system does not say.
std::string memory_line(const runtime::SessionPlan& plan, const runtime::SessionMemory& memory);

}  // namespace kernelpath::cli
