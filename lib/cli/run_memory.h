#pragma once

#include "runtime/session.h"

#include <string>

namespace kernelpath::cli {

// The three ledgers of a plan, and what a step needs beside them: a row each, in words and bytes.
std::string plan_table(const runtime::SessionPlan& plan);

// What building the model was said to take, and what it took; empty where the system does not say.
std::string memory_line(const runtime::SessionPlan& plan, const runtime::SessionMemory& memory);

}  // namespace kernelpath::cli
