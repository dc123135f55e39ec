#include "kernels/cpu/elementwise.h"

namespace kernelpath::kernels::cpu {

void rope_rows(const RopeParams& p, std::int64_t begin, std::int64_t end) {
  const std::int64_t half = p.rotary / 2;
  const std::int64_t step = p.interleaved ? 2 : 1;
  const std::int64_t other = p.interleaved ? 1 : half;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t token = row / p.heads;
    const std::int64_t head = row % p.heads;
    const float* const src = p.src + token * p.src_stride + head * p.src_head_stride;
    float* const dst = p.dst + token * p.dst_stride + head * p.dst_head_stride;
    const float* const cos = p.cos + token * half;
    const float* const sin = p.sin + token * half;
    for (std::int64_t i = 0; i < half; ++i) {
      const float x = src[i * step];
      const float y = src[i * step + other];
      dst[i * step] = x * cos[i] - y * sin[i];
      dst[i * step + other] = y * cos[i] + x * sin[i];
    }
    if (src == dst) continue;
    for (std::int64_t i = p.rotary; i < p.width; ++i) dst[i] = src[i];
  }
}

}  // namespace kernelpath::kernels::cpu
