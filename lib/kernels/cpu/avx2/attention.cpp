// Compiled for AVX2, FMA and F16C; called only where the processor has them.
#include "kernels/cpu/attention_tile.inc"

#include <immintrin.h>

namespace kernelpath::kernels::cpu {
namespace {

struct Avx2 {
  using Reg = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kRows =
      2;  // query rows at a time, four tokens each: what the registers hold

  static Reg load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Reg a) { _mm256_storeu_ps(p, a); }
  static Reg set(float a) { return _mm256_set1_ps(a); }
  static Reg zero() { return _mm256_setzero_ps(); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm256_fmadd_ps(a, b, c); }
  static Reg add(Reg a, Reg b) { return _mm256_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm256_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm256_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) { return _mm256_div_ps(a, b); }
  static Reg max(Reg a, Reg b) { return _mm256_max_ps(a, b); }
  static Reg min(Reg a, Reg b) { return _mm256_min_ps(a, b); }
  static Reg round(Reg a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  // a * 2^n for whole n in [-127, 127].
  static Reg scale_by_power(Reg a, Reg n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
  }
  // 0 where x < limit, else a.
  static Reg zero_below(Reg x, Reg limit, Reg a) {
    return _mm256_and_ps(_mm256_cmp_ps(x, limit, _CMP_NLT_UQ), a);
  }
  // a in the lanes [first, last), else `other`.
  static Reg inside(Reg a, std::int64_t first, std::int64_t last, float other) {
    const __m256i lane = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    const __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(first)), lane);
    const __m256i to = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(last)), lane);
    const __m256i in = _mm256_andnot_si256(before, to);
    return _mm256_blendv_ps(_mm256_set1_ps(other), a, _mm256_castsi256_ps(in));
  }
  static float max_of(Reg a) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_shuffle_ps(half, half, 1)));
  }
  static float sum_of(Reg a) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_shuffle_ps(half, half, 1)));
  }

  // In each half, the sums of that half of four registers.
  static Reg sum_four(const Reg* a) {
    return _mm256_hadd_ps(_mm256_hadd_ps(a[0], a[1]), _mm256_hadd_ps(a[2], a[3]));
  }
  // Lane 4 * i + t of the result is the sum of a[i] over its halves, lane t of each.
  static Reg join_fours(const Reg* a) {
    return _mm256_add_ps(_mm256_permute2f128_ps(a[0], a[1], 0x20),
                         _mm256_permute2f128_ps(a[0], a[1], 0x31));
  }

  static __m128i bytes8(const std::byte* p) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  }
  static __m128i bytes16(const std::byte* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }

  template <DataType Type>
  static Reg widen(const std::byte* p) {
    if constexpr (Type == DataType::kF32) {
      return load(reinterpret_cast<const float*>(p));
    } else if constexpr (Type == DataType::kBf16) {
      return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bytes16(p)), 16));
    } else if constexpr (Type == DataType::kF16) {
      return _mm256_cvtph_ps(bytes16(p));
    } else if constexpr (Type == DataType::kFp8E5m2) {
      // The upper byte of a half.
      return _mm256_cvtph_ps(_mm_slli_epi16(_mm_cvtepu8_epi16(bytes8(p)), 8));
    } else {
      return widen_e4m3(bytes8(p));
    }
  }

  // As a half with the exponent 8 too small, which also holds e4m3's subnormals; NaN apart.
  static Reg widen_e4m3(__m128i codes) {
    const __m128i wide = _mm_cvtepu8_epi16(codes);
    const __m128i magnitude = _mm_and_si128(wide, _mm_set1_epi16(0x7F));
    const __m128i sign = _mm_slli_epi16(_mm_sub_epi16(wide, magnitude), 8);
    const __m128i half = _mm_or_si128(sign, _mm_slli_epi16(magnitude, 7));
    const __m128i nan = _mm_cmpeq_epi16(magnitude, _mm_set1_epi16(0x7F));
    const Reg value = _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256.0F));
    return _mm256_blendv_ps(value, _mm256_set1_ps(__builtin_nanf("")),
                            _mm256_castsi256_ps(_mm256_cvtepi16_epi32(nan)));
  }

  // 16 codes, the lower half of a byte first, times their block scale.
  static void widen_nvfp4(const std::byte* codes, const std::byte* scale, float* out) {
    // Twice the values, which are whole numbers.
    const __m128i table = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
    const __m128i packed = bytes8(codes);
    const __m128i low = _mm_and_si128(packed, _mm_set1_epi8(0x0F));
    const __m128i high = _mm_and_si128(_mm_srli_epi16(packed, 4), _mm_set1_epi8(0x0F));
    const __m128i twice = _mm_shuffle_epi8(table, _mm_unpacklo_epi8(low, high));
    const Reg block =
        _mm256_mul_ps(widen_e4m3(_mm_set1_epi8(static_cast<char>(*scale))), _mm256_set1_ps(0.5F));
    const __m256i first = _mm256_cvtepi8_epi32(twice);
    const __m256i second = _mm256_cvtepi8_epi32(_mm_srli_si128(twice, 8));
    store(out, _mm256_mul_ps(_mm256_cvtepi32_ps(first), block));
    store(out + kLanes, _mm256_mul_ps(_mm256_cvtepi32_ps(second), block));
  }
};

}  // namespace

const AttentionUnit& attention_unit_avx2() {
  static constexpr AttentionUnit kUnit{
      .tile = attention_tile<Avx2>, .soften = soften_rows<Avx2>, .rescale_add = rescale_add<Avx2>};
  return kUnit;
}

}  // namespace kernelpath::kernels::cpu
