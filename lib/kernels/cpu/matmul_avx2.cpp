// Compiled for AVX2, FMA and F16C; called only where the processor has them.
#include "kernels/ops.h"

#include <array>
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
  // Of panels: 12 sums, 2 weights, 1 activation, and 16 KiB of weights.
  static constexpr int kPanelVectors = 2;
  static constexpr int kPanelTokens = 6;
  static constexpr int kPanelCols = 256;

  static Reg zero() { return {_mm256_setzero_ps()}; }
  static Reg load(const float* from) { return {_mm256_loadu_ps(from)}; }
  static Reg all(const float* from) { return {_mm256_broadcast_ss(from)}; }
  static void store(float* to, Reg a) { _mm256_storeu_ps(to, a.v); }
  static Reg add(Reg a, Reg b) { return {_mm256_add_ps(a.v, b.v)}; }
  static Reg fma(Reg a, Reg b, Reg c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  static Reg mul(Reg a, float b) { return {_mm256_mul_ps(a.v, _mm256_set1_ps(b))}; }
  static Reg scale_minus(Reg a, float scale, float low) {
    return {_mm256_fmsub_ps(a.v, _mm256_set1_ps(scale), _mm256_set1_ps(low))};
  }
  static Reg mul(Reg a, Reg b) { return {_mm256_mul_ps(a.v, b.v)}; }
  static Reg fma(Reg a, float b, Reg c) { return {_mm256_fmadd_ps(a.v, _mm256_set1_ps(b), c.v)}; }
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

  // 16 whole numbers of 16 bits, and 8 of 32 bits.
  struct Words {
    __m256i v;
  };
  struct Ints {
    __m256i v;
  };
  static Words words(const void* bytes) {
    return {_mm256_cvtepi8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(bytes)))};
  }
  // A block of q4_0: its 16 low halves are part 0, its high ones part 1.
  static Words nibbles_minus_eight(const void* block, std::int64_t part) {
    const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(block));
    const __m128i chosen = part == 0 ? bytes : _mm_srli_epi16(bytes, 4);
    const __m128i codes = _mm_and_si128(chosen, _mm_set1_epi8(15));
    return {_mm256_cvtepi8_epi16(_mm_sub_epi8(codes, _mm_set1_epi8(8)))};
  }
  static Words load_words(const std::int16_t* from) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))};
  }
  // To the nearest whole numbers, which fit into 16 bits.
  static void store_words(std::int16_t* to, Reg a) {
    const __m256i ints = _mm256_cvtps_epi32(a.v);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(to),
        _mm_packs_epi32(_mm256_castsi256_si128(ints), _mm256_extracti128_si256(ints, 1)));
  }
  // Products of neighbours, added in pairs.
  static Ints dot(Words a, Words b) { return {_mm256_madd_epi16(a.v, b.v)}; }
  static Ints add(Ints a, Ints b) { return {_mm256_add_epi32(a.v, b.v)}; }
  static Reg to_float(Ints a) { return {_mm256_cvtepi32_ps(a.v)}; }
  // The bits of the largest magnitude so far; infinity and NaN are larger than all numbers.
  static Ints no_magnitude() { return {_mm256_setzero_si256()}; }
  static Ints max_magnitude(Ints largest, Reg a) {
    const __m256i bits = _mm256_and_si256(_mm256_castps_si256(a.v), _mm256_set1_epi32(0x7FFFFFFF));
    return {_mm256_max_epi32(largest.v, bits)};
  }
  static std::int32_t largest(Ints a) {
    const __m128i four =
        _mm_max_epi32(_mm256_castsi256_si128(a.v), _mm256_extracti128_si256(a.v, 1));
    const __m128i two = _mm_max_epi32(four, _mm_unpackhi_epi64(four, four));
    return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 1)));
  }

  // Rows become columns.
  using Square = std::array<Reg, kLanes>;
  [[gnu::always_inline]] static void transpose(Square& m) {
    Square t;
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 8; i += 2) {
      t[i].v = _mm256_unpacklo_ps(m[i].v, m[i + 1].v);
      t[i + 1].v = _mm256_unpackhi_ps(m[i].v, m[i + 1].v);
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 8; i += 4) {
      m[i].v = _mm256_shuffle_ps(t[i].v, t[i + 2].v, 0x44);
      m[i + 1].v = _mm256_shuffle_ps(t[i].v, t[i + 2].v, 0xEE);
      m[i + 2].v = _mm256_shuffle_ps(t[i + 1].v, t[i + 3].v, 0x44);
      m[i + 3].v = _mm256_shuffle_ps(t[i + 1].v, t[i + 3].v, 0xEE);
    }
    t = m;
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 4; ++i) {
      m[i].v = _mm256_permute2f128_ps(t[i].v, t[i + 4].v, 0x20);
      m[i + 4].v = _mm256_permute2f128_ps(t[i].v, t[i + 4].v, 0x31);
    }
  }
};

}  // namespace
}  // namespace kernelpath::kernels::cpu

#include "kernels/cpu/matmul_ggml_readers.inc"
// The readers come first.
#include "kernels/cpu/matmul_panels.inc"

namespace kernelpath::kernels::cpu {

void matmul_rows_avx2(std::span<const PartRows> share) {
  for (const PartRows& rows : share) matmul_rows_simd(*rows.part, rows.begin, rows.end);
}

}  // namespace kernelpath::kernels::cpu
