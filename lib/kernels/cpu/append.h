#pragma once

#include "attention/params.h"
#include "kernels/cpu/team.h"

namespace kernelpath::kernels::cpu {

// Writes a step's K and V rows into the cache, by all threads of a team; returns on each when all
// is written. Values are divided by the side's scale and rounded to nearest; fp8 saturates. kNvfp4:
// a block's scale is its largest magnitude over 6; a block whose scale rounds to 0 stores zeros. A
// row is rounded by itself, whatever else the step holds. No two tokens may have the same slot.
void paged_append(const Team& team, const attention::AppendParams& params);

}  // namespace kernelpath::kernels::cpu
