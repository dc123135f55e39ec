#include "kernels/cpu/elementwise.h"

namespace kernelpath::kernels::cpu {

const ElementwiseUnit& elementwise_unit(Isa isa) {
#if defined(__x86_64__)
  if (vector_isa(isa) == Isa::kAvx512) return elementwise_unit_avx512();
  if (isa == Isa::kAvx2) return elementwise_unit_avx2();
#endif
  static constexpr ElementwiseUnit kReference{
      .norm = norm_rows, .rope = rope_rows, .gate = gate_elements};
  return kReference;
}

}  // namespace kernelpath::kernels::cpu
