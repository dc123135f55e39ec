#pragma once

#include "kernels/cpu/isa.h"
#include "kernels/ops.h"

#include <cstdint>

namespace kernelpath::kernels::cpu {

// Rows of W that kernels work on together; a thread's share is a multiple of it.
inline constexpr std::int64_t kRowsAtOnce = 4;

// Computes the outputs [row_begin, row_end) of a part for all its tokens. Each output is one sum
// over the columns in an order that depends on nothing but the number of columns.
using MatmulRows = void (*)(const MatmulPart& part, std::int64_t row_begin, std::int64_t row_end);

void matmul_rows_reference(const MatmulPart& part, std::int64_t row_begin, std::int64_t row_end);
void matmul_rows_avx2(const MatmulPart& part, std::int64_t row_begin, std::int64_t row_end);
void matmul_rows_avx512(const MatmulPart& part, std::int64_t row_begin, std::int64_t row_end);

MatmulRows matmul_rows(Isa isa);

}  // namespace kernelpath::kernels::cpu
