#pragma once

#include "cli/validate_judge.h"
#include "features/matrix.h"

#include <vector>

namespace kernelpath::cli {

// How the facts that rules read change with the axes, for the fields of the engine's table and of
// the table that all engines share.
struct MatrixFacts {
  std::vector<features::MatrixFact> own = {};
  std::vector<features::MatrixFact> shared = {};
};

// Resolves `base` with the axes' values. A fact is computed once for each combination of the axes
// that its table says it depends on (RuleTable::resolution), the others as in `base`; texts go to
// the contexts' arenas.
MatrixFacts matrix_facts(const Judge& judge, const EngineCombination& base,
                         const std::vector<features::MatrixAxis>& axes, features::Context& own,
                         features::Context& shared);

}  // namespace kernelpath::cli
