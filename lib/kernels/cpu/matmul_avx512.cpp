// Compiled for AVX-512 F, BW, DQ and VL; called only where the processor has them.
#include "kernels/cpu/simd_avx512.inc"
// The vectors come first.
#include "kernels/cpu/matmul_ggml_readers.inc"
#include "kernels/cpu/matmul_panels.inc"

namespace kernelpath::kernels::cpu {

void matmul_rows_avx512(std::span<const PartRows> share) {
  for (const PartRows& rows : share) matmul_rows_simd(*rows.part, rows.begin, rows.end);
}

}  // namespace kernelpath::kernels::cpu
