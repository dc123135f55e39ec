// Compiled for AVX-512 F, BW, DQ and VL; called only where the processor has them.
#include "kernels/cpu/elementwise_vector.inc"

namespace kernelpath::kernels::cpu {

const ElementwiseUnit& elementwise_unit_avx512() {
  static constexpr ElementwiseUnit kUnit{
      .norm = vector_norm, .rope = vector_rope, .gate = vector_gate};
  return kUnit;
}

}  // namespace kernelpath::kernels::cpu
