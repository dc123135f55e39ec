// Compiled for AVX2, FMA and F16C; called only where the processor has them.
#include "kernels/ops.h"

#include <cstdint>
#include <cstring>
#include <immintrin.h>

namespace kernelpath::kernels::cpu {
namespace {

struct Simd {
  // In a structure, since a bare vector loses its attributes as a template argument.
  struct Reg {
    __m256 v;
  };
  static constexpr int kLanes = 8;
  static constexpr int kMaxTokens = 2;  // 8 sums, 4 weights, 1 activation of 16 registers

  static Reg zero() { return {_mm256_setzero_ps()}; }
  static Reg load(const float* from) { return {_mm256_loadu_ps(from)}; }
  static Reg fma(Reg a, Reg b, Reg c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  static Reg mul(Reg a, float b) { return {_mm256_mul_ps(a.v, _mm256_set1_ps(b))}; }
  static Reg scale_minus(Reg a, float scale, float low) {
    return {_mm256_fmsub_ps(a.v, _mm256_set1_ps(scale), _mm256_set1_ps(low))};
  }
  static float sum(Reg a) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float f16(std::uint16_t code) { return _cvtsh_ss(code); }

  static Reg from_bf16(const void* from) {
    const __m128i codes = _mm_loadu_si128(static_cast<const __m128i*>(from));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16))};
  }
  static Reg from_f16(const void* from) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(from)))};
  }
  // Through f16, whose subnormals convert at full speed: an e4m3 code is that of an f16 number
  // 2^8 times smaller. Only NaN is not, and is put in.
  static Reg from_e4m3(const void* from) {
    const __m128i codes = _mm_cvtepu8_epi16(_mm_loadl_epi64(static_cast<const __m128i*>(from)));
    const __m128i magnitude = _mm_and_si128(codes, _mm_set1_epi16(0x7F));
    const __m128i sign = _mm_slli_epi16(_mm_and_si128(codes, _mm_set1_epi16(0x80)), 8);
    const __m128i half = _mm_or_si128(_mm_slli_epi16(magnitude, 7), sign);
    const __m128i nan = _mm_cmpeq_epi16(magnitude, _mm_set1_epi16(0x7F));
    return {_mm256_cvtph_ps(_mm_or_si128(half, _mm_and_si128(nan, _mm_set1_epi16(0x7E00))))};
  }
  static Reg from_int8(__m128i codes) { return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes))}; }
  // 4 bytes of pairs, low half first, to 8 codes in order.
  static __m128i unpack_pairs(const void* from) {
    std::int32_t four = 0;
    std::memcpy(&four, from, sizeof(four));
    const __m128i bytes = _mm_cvtsi32_si128(four);
    const __m128i low = _mm_and_si128(bytes, _mm_set1_epi8(15));
    const __m128i high = _mm_and_si128(_mm_srli_epi16(bytes, 4), _mm_set1_epi8(15));
    return _mm_unpacklo_epi8(low, high);
  }
  // The low or high halves of 8 bytes.
  static __m128i halves(const void* from, bool high) {
    const __m128i bytes = _mm_loadl_epi64(static_cast<const __m128i*>(from));
    const __m128i chosen = high ? _mm_srli_epi16(bytes, 4) : bytes;
    return _mm_and_si128(chosen, _mm_set1_epi8(15));
  }
  // Twice the value of e2m1 codes.
  static __m128i double_e2m1(__m128i codes) {
    const __m128i table = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
    return _mm_shuffle_epi8(table, codes);
  }
  static __m128i minus_eight(__m128i codes) { return _mm_sub_epi8(codes, _mm_set1_epi8(8)); }
};

}  // namespace
}  // namespace kernelpath::kernels::cpu

#include "kernels/cpu/matmul_ggml_readers.inc"
#include "kernels/cpu/matmul_tile.inc"

namespace kernelpath::kernels::cpu {

void matmul_rows_avx2(std::span<const PartRows> share) {
  for (const PartRows& rows : share) matmul_rows_simd(*rows.part, rows.begin, rows.end);
}

}  // namespace kernelpath::kernels::cpu
