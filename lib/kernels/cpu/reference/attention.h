#pragma once

#include "attention/params.h"
#include "kernels/cpu/team.h"

namespace kernelpath::kernels::cpu {

// Attention by its definition, one query row and head after the other, all sums in float64. What
// the other kernels are compared with, and the backend VANILLA.
void reference_attention(const Team& team, const attention::AttentionParams& params);

}  // namespace kernelpath::kernels::cpu
