#pragma once

#include "engines/engine.h"
#include "report/blocks.h"

#include <vector>

namespace kernelpath::cli {

// --list engines: a row for each engine version of this build. Columns: what its own tables count
// (versions of the engine here, models, backends, arguments, rules), then the aspects of its
// descriptor.
std::vector<engines::TableRow> engine_rows();

// The rows as a comparison: the counts in one table, then one table an aspect. Versions of an
// engine that say the same stand in one row.
std::vector<report::Block> comparison_blocks(const std::vector<engines::TableRow>& rows);

}  // namespace kernelpath::cli
