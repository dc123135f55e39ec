#pragma once

#include "engines/engine.h"
#include "engines/vllm/release_tables.h"

#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::vllm {

// The tables of --list: "architectures", "backends" (the attention contract), "settings", ….
std::vector<std::string> table_kinds();

// Nothing for a kind that is not one of table_kinds().
std::vector<TableRow> table_rows(const ReleaseTables& tables, std::string_view kind);

}  // namespace kernelpath::engines::vllm
