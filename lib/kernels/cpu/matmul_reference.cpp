#include "kernels/cpu/matmul.h"

#include <vector>

namespace kernelpath::kernels::cpu {
namespace {

// Sums in float64, so that its own rounding never decides a comparison.
double dot(const float* a, const float* b, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;
  double sums[kLanes] = {};  // NOLINT(modernize-avoid-c-arrays): vectorises
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
    }
  }
  double sum = 0.0;
  for (const double lane : sums) sum += lane;
  for (; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

void multiply(const MatmulPart& part, std::int64_t row_begin, std::int64_t row_end) {
  std::vector<float> row(static_cast<std::size_t>(part.w.cols));
  for (std::int64_t r = row_begin; r < row_end; ++r) {
    dequantize_row(part.w, r, row.data());
    const double bias = part.bias == nullptr ? 0.0 : static_cast<double>(part.bias[r]);
    for (std::int64_t i = 0; i < part.n; ++i) {
      const std::int64_t from = part.x_rows == nullptr ? i : part.x_rows[i];
      const std::int64_t to = part.y_rows == nullptr ? i : part.y_rows[i];
      const double sum = dot(row.data(), part.x + from * part.x_stride, part.w.cols);
      part.y[to * part.y_stride + r] = static_cast<float>(sum + bias);
    }
  }
}

}  // namespace

void matmul_rows_reference(std::span<const PartRows> share) {
  for (const PartRows& rows : share) multiply(*rows.part, rows.begin, rows.end);
}

MatmulRows matmul_rows(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAmx) return matmul_rows_amx;
  if (isa == Isa::kAvx512) return matmul_rows_avx512;
  if (isa == Isa::kAvx2) return matmul_rows_avx2;
#endif
  return matmul_rows_reference;
}

}  // namespace kernelpath::kernels::cpu
