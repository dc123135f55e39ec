// Compiled for AVX-512 F, BW, DQ, VL and F16C; called only where the processor has them.
#include "kernels/cpu/attention_tile.inc"

// g++ 12 warns about the undefined vectors in its own intrinsics.
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

namespace kernelpath::kernels::cpu {
namespace {

struct Avx512 {
  using Reg = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kRows =
      4;  // query rows at a time, four tokens each: what the registers hold

  static Reg load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Reg a) { _mm512_storeu_ps(p, a); }
  static Reg set(float a) { return _mm512_set1_ps(a); }
  static Reg zero() { return _mm512_setzero_ps(); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }
  static Reg add(Reg a, Reg b) { return _mm512_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm512_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) { return _mm512_div_ps(a, b); }
  static Reg max(Reg a, Reg b) { return _mm512_max_ps(a, b); }
  static Reg min(Reg a, Reg b) { return _mm512_min_ps(a, b); }
  static Reg round(Reg a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  // a * 2^n for whole n.
  static Reg scale_by_power(Reg a, Reg n) { return _mm512_scalef_ps(a, n); }
  // 0 where x < limit, else a.
  static Reg zero_below(Reg x, Reg limit, Reg a) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ), a);
  }
  // a in the lanes [first, last), else `other`.
  static Reg inside(Reg a, std::int64_t first, std::int64_t last, float other) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __mmask16 from =
        _mm512_cmpge_epi32_mask(lane, _mm512_set1_epi32(static_cast<int>(first)));
    const __mmask16 to = _mm512_cmplt_epi32_mask(lane, _mm512_set1_epi32(static_cast<int>(last)));
    return _mm512_mask_blend_ps(_kand_mask16(from, to), _mm512_set1_ps(other), a);
  }
  static float max_of(Reg a) { return _mm512_reduce_max_ps(a); }
  static float sum_of(Reg a) { return _mm512_reduce_add_ps(a); }

  // In each quarter, the sums of that quarter of four registers.
  static Reg sum_four(const Reg* a) {
    const __m512d ab = _mm512_castps_pd(
        _mm512_add_ps(_mm512_unpacklo_ps(a[0], a[1]), _mm512_unpackhi_ps(a[0], a[1])));
    const __m512d cd = _mm512_castps_pd(
        _mm512_add_ps(_mm512_unpacklo_ps(a[2], a[3]), _mm512_unpackhi_ps(a[2], a[3])));
    return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)),
                         _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)));
  }
  // Lane 4 * i + t of the result is the sum of a[i] over its quarters, lane t of each.
  static Reg join_fours(const Reg* a) {
    return fold_quarters(fold_quarters(a[0], a[1]), fold_quarters(a[2], a[3]));
  }
  static Reg fold_quarters(Reg a, Reg b) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
  }

  static __m128i bytes16(const std::byte* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  static __m256i bytes32(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }

  template <DataType Type>
  static Reg widen(const std::byte* p) {
    if constexpr (Type == DataType::kF32) {
      return load(reinterpret_cast<const float*>(p));
    } else if constexpr (Type == DataType::kBf16) {
      return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bytes32(p)), 16));
    } else if constexpr (Type == DataType::kF16) {
      return _mm512_cvtph_ps(bytes32(p));
    } else if constexpr (Type == DataType::kFp8E5m2) {
      // The upper byte of a half.
      return _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(bytes16(p)), 8));
    } else {
      return widen_e4m3(bytes16(p));
    }
  }

  // As a half with the exponent 8 too small, which also holds e4m3's subnormals; NaN apart.
  static Reg widen_e4m3(__m128i codes) {
    const __m256i wide = _mm256_cvtepu8_epi16(codes);
    const __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi16(0x7F));
    const __m256i sign = _mm256_slli_epi16(_mm256_sub_epi16(wide, magnitude), 8);
    const __m256i half = _mm256_or_si256(sign, _mm256_slli_epi16(magnitude, 7));
    const __mmask16 nan = _mm256_cmpeq_epi16_mask(magnitude, _mm256_set1_epi16(0x7F));
    const Reg value = _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(256.0F));
    return _mm512_mask_blend_ps(nan, value, _mm512_set1_ps(__builtin_nanf("")));
  }

  // 16 codes, the lower half of a byte first, times their block scale.
  static void widen_nvfp4(const std::byte* codes, const std::byte* scale, float* out) {
    const __m512 table = _mm512_set_ps(-6.0F, -4.0F, -3.0F, -2.0F, -1.5F, -1.0F, -0.5F, -0.0F, 6.0F,
                                       4.0F, 3.0F, 2.0F, 1.5F, 1.0F, 0.5F, 0.0F);
    const __m128i packed = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes));
    const __m128i low = _mm_and_si128(packed, _mm_set1_epi8(0x0F));
    const __m128i high = _mm_and_si128(_mm_srli_epi16(packed, 4), _mm_set1_epi8(0x0F));
    const __m512i index = _mm512_cvtepu8_epi32(_mm_unpacklo_epi8(low, high));
    const Reg block = widen_e4m3(_mm_set1_epi8(static_cast<char>(*scale)));
    store(out, _mm512_mul_ps(_mm512_permutexvar_ps(index, table), block));
  }
};

}  // namespace

const AttentionUnit& attention_unit_avx512() {
  static constexpr AttentionUnit kUnit{.tile = attention_tile<Avx512>,
                                       .soften = soften_rows<Avx512>,
                                       .rescale_add = rescale_add<Avx512>};
  return kUnit;
}

}  // namespace kernelpath::kernels::cpu
