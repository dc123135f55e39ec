#pragma once

#include "kernels/cpu/isa.h"
#include "kernels/ops.h"

#include <cstdint>

// Operations on the rows or elements [begin, end) of their parameters: one thread's share each.
namespace kernelpath::kernels::cpu {

// Rows count n * groups.
void norm_rows(const NormParams& params, std::int64_t begin, std::int64_t end);
// Rows count n * heads.
void rope_rows(const RopeParams& params, std::int64_t begin, std::int64_t end);
// Elements count n * dim.
void gate_elements(const GateParams& params, std::int64_t begin, std::int64_t end);
// The three of them by one instruction set. With kReference they are those above; vectors differ
// from them by the rounding of sums and exponentials.
struct ElementwiseUnit {
  void (*norm)(const NormParams& params, std::int64_t begin, std::int64_t end) = nullptr;
  void (*rope)(const RopeParams& params, std::int64_t begin, std::int64_t end) = nullptr;
  void (*gate)(const GateParams& params, std::int64_t begin, std::int64_t end) = nullptr;
};
const ElementwiseUnit& elementwise_unit_avx2();
const ElementwiseUnit& elementwise_unit_avx512();
const ElementwiseUnit& elementwise_unit(Isa isa);

void scale_and_cap_elements(float scale, float cap, float* x, std::int64_t count);
// Rows count n.
void route_rows(const RouteParams& params, std::int64_t begin, std::int64_t end);

}  // namespace kernelpath::kernels::cpu
