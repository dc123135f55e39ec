// Compiled for AVX2, FMA and F16C; called only where the processor has them.
#include "kernels/cpu/elementwise_vector.inc"

namespace kernelpath::kernels::cpu {

const ElementwiseUnit& elementwise_unit_avx2() {
  static constexpr ElementwiseUnit kUnit{
      .norm = vector_norm, .rope = vector_rope, .gate = vector_gate};
  return kUnit;
}

}  // namespace kernelpath::kernels::cpu
