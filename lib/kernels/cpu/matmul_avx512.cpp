// Compiled for AVX-512 F, BW, DQ and VL; called only where the processor has them.
#include "kernels/ops.h"

#include <cstdint>
#include <immintrin.h>

namespace kernelpath::kernels::cpu {
namespace {

struct Simd {
  // In a structure, since a bare vector loses its attributes as a template argument.
  struct Reg {
    __m512 v;
  };
  static constexpr int kLanes = 16;
  static constexpr int kMaxTokens = 6;  // 24 sums, 4 weights, 1 activation of 32 registers

  static Reg zero() { return {_mm512_setzero_ps()}; }
  static Reg load(const float* from) { return {_mm512_loadu_ps(from)}; }
  static Reg fma(Reg a, Reg b, Reg c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  static Reg mul(Reg a, float b) { return {_mm512_mul_ps(a.v, _mm512_set1_ps(b))}; }
  static Reg scale_minus(Reg a, float scale, float low) {
    return {_mm512_fmsub_ps(a.v, _mm512_set1_ps(scale), _mm512_set1_ps(low))};
  }
  static float sum(Reg a) { return _mm512_reduce_add_ps(a.v); }
  static float f16(std::uint16_t code) { return _cvtsh_ss(code); }

  static Reg from_bf16(const void* from) {
    const __m256i codes = _mm256_loadu_si256(static_cast<const __m256i*>(from));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(codes), 16))};
  }
  static Reg from_f16(const void* from) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(from)))};
  }
  // Through f16, whose subnormals convert at full speed: an e4m3 code is that of an f16 number
  // 2^8 times smaller. Only NaN is not, and is put in.
  static Reg from_e4m3(const void* from) {
    const __m256i codes = _mm256_cvtepu8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(from)));
    const __m256i magnitude = _mm256_and_si256(codes, _mm256_set1_epi16(0x7F));
    const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(codes, _mm256_set1_epi16(0x80)), 8);
    const __m256i half = _mm256_or_si256(_mm256_slli_epi16(magnitude, 7), sign);
    const __m256i nan = _mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7F));
    return {
        _mm512_cvtph_ps(_mm256_or_si256(half, _mm256_and_si256(nan, _mm256_set1_epi16(0x7E00))))};
  }
  static Reg from_int8(__m128i codes) { return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes))}; }
  // 8 bytes of pairs, low half first, to 16 codes in order.
  static __m128i unpack_pairs(const void* from) {
    const __m128i bytes = _mm_loadl_epi64(static_cast<const __m128i*>(from));
    const __m128i low = _mm_and_si128(bytes, _mm_set1_epi8(15));
    const __m128i high = _mm_and_si128(_mm_srli_epi16(bytes, 4), _mm_set1_epi8(15));
    return _mm_unpacklo_epi8(low, high);
  }
  // The low or high halves of 16 bytes.
  static __m128i halves(const void* from, bool high) {
    const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(from));
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

#include "kernels/cpu/matmul_readers.inc"
#include "kernels/cpu/matmul_tile.inc"

namespace kernelpath::kernels::cpu {

void matmul_rows_avx512(const MatmulPart& part, std::int64_t row_begin, std::int64_t row_end) {
  matmul_rows_simd(part, row_begin, row_end);
}

}  // namespace kernelpath::kernels::cpu
