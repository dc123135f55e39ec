#pragma once

#include "engines/engine.h"
#include "engines/vllm/release_tables.h"

#include <vector>

namespace kernelpath::engines::vllm {

// The attention contract of a release: one row a backend that has a class, with what its class
// answers on each device generation of its platform (as "9.0 10.0: …; else: …" where they differ).
std::vector<TableRow> contract_rows(const ReleaseTables& tables);

// The orders in which candidates are tried, with the facts that each order holds for.
std::vector<TableRow> priority_rows(const ReleaseTables& tables);

}  // namespace kernelpath::engines::vllm
