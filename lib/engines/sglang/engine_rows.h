#pragma once

#include "engines/engine.h"
#include "engines/sglang/profile.h"

#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::sglang {

// The tables of --list: "architectures", "backends", "settings", ….
std::vector<std::string> table_kinds();

// Nothing for a kind that is not one of table_kinds().
std::vector<TableRow> table_rows(const Profile& profile, std::string_view kind);

}  // namespace kernelpath::engines::sglang
