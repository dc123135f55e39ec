#pragma once

#include "kernels/cuda/sm80/gqa/state.cuh"

// Scores and weighted values over nvfp4: e2m1 codes, eight to a word, and an e4m3 scale for each
// block of 16 elements.
//
// Codes become f16 without a look-up (4 LOP3, 3 shifts and 4 PRMT for eight). K's are multiplied
// with their block's scale; a lane holds a row's elements side by side, so that it needs one or two
// scales. V's are not: their weights are, which is cheaper by the number of elements in a block.
// One ldmatrix of V spans two blocks, the first in rows 0 to 3 (and 8 to 11) of the M of an MMA,
// the second in the others. So the columns 0 to 3 of P carry the scales of the first block, and
// columns 4 to 7, the same query rows again, those of the second: half of O is meaningless and
// never read.
namespace kernelpath::kernels::cuda::sm80 {

// Eight codes as bytes of e5m2 (an f16's upper ones), over kE2m1Factor: codes 0, 2, 4, 6 and codes
// 1, 3, 5, 7.
struct CodeBytes {
  std::uint32_t even;
  std::uint32_t odd;
};
__device__ inline CodeBytes code_bytes(std::uint32_t codes) {
  constexpr std::uint32_t kSign = 0x80808080U;
  constexpr std::uint32_t kMagnitude = 0x0E0E0E0EU;
  return {.even = (codes << 4 & kSign) | (codes << 1 & kMagnitude),
          .odd = (codes & kSign) | (codes >> 3 & kMagnitude)};
}

// 4 * Words bytes of shared memory, at a multiple of that many (or of 16).
template <int Words>
__device__ inline void load_words(std::uint32_t (&words)[Words], std::uint32_t address) {
  if constexpr (Words == 1) {
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(words[0]) : "r"(address) : "memory");
  } else if constexpr (Words == 2) {
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                 : "=r"(words[0]), "=r"(words[1])
                 : "r"(address)
                 : "memory");
  } else {
#pragma unroll
    for (int i = 0; i < Words; i += 4) {
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(words[i]), "=r"(words[i + 1]), "=r"(words[i + 2]), "=r"(words[i + 3])
                   : "r"(address + i * 4)
                   : "memory");
    }
  }
}

template <int Words>
__device__ inline void store_words(const std::uint32_t (&words)[Words], std::uint32_t address) {
  if constexpr (Words == 2) {
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(words[0]), "r"(words[1])
                 : "memory");
  } else {
#pragma unroll
    for (int i = 0; i < Words; i += 4) {
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address + i * 4), "r"(words[i]),
                   "r"(words[i + 1]), "r"(words[i + 2]), "r"(words[i + 3])
                   : "memory");
    }
  }
}

// What lane group t (of four) holds of a row of K: the t-th quarter of its codes and scales.
template <class Config>
struct KeyQuarter {
  static constexpr int kWords = Config::kDim / 32;
  static constexpr int kScales = Config::kDim / 64;
  std::uint32_t codes[kWords];
  std::uint32_t scales[kScales];  // as f16 pairs (twice the same)

  __device__ void load(std::uint32_t side, std::uint32_t scale_rows, int row, int t) {
    load_codes(side, row, t);
    std::uint32_t bytes = 0;
    const std::uint32_t at = scale_rows + row * Config::kScaleRowBytes + t * kScales;
    if constexpr (kScales == 1) {
      asm volatile("ld.shared.u8 %0, [%1];" : "=r"(bytes) : "r"(at) : "memory");
    } else if constexpr (kScales == 2) {
      asm volatile("ld.shared.u16 %0, [%1];" : "=r"(bytes) : "r"(at) : "memory");
    } else {
      asm volatile("ld.shared.b32 %0, [%1];" : "=r"(bytes) : "r"(at) : "memory");
    }
    std::uint32_t pairs[2] = {0, 0};
    widen_e4m3(bytes, pairs[0], pairs[1]);
#pragma unroll
    for (int i = 0; i < kScales; ++i) {
      scales[i] = i % 2 == 0 ? both_low(pairs[i / 2]) : both_high(pairs[i / 2]);
    }
  }

 private:
  __device__ void load_codes(std::uint32_t side, int row, int t) {
    if constexpr (kWords == 2) {
      load_words(codes, side + Swizzle<Config>::offset(row, t >> 1) + (t & 1) * 8);
    } else if constexpr (kWords == 4) {
      load_words(codes, side + Swizzle<Config>::offset(row, t));
    } else {
      // Rows of 128 bytes: chunks 2t and 2t + 1, which the XOR keeps in different banks.
      const std::uint32_t at = side + Swizzle<Config>::offset(row, 2 * t);
      std::uint32_t half[4];
#pragma unroll
      for (int chunk = 0; chunk < 2; ++chunk) {
        load_words(half, Swizzle<Config>::other_chunk(at, chunk));
#pragma unroll
        for (int i = 0; i < 4; ++i) codes[chunk * 4 + i] = half[i];
      }
    }
  }
};

// Scores of 16 tokens whose K begins at `side`, as score_tile().
template <class Config>
__device__ inline void score_codes(const WarpState<Config>& state, std::uint32_t side,
                                   std::uint32_t scale_rows, int lane,
                                   float (&s)[Config::kRowTiles][4]) {
#pragma unroll
  for (int n = 0; n < Config::kRowTiles; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) s[n][i] = 0.0F;
  }
  KeyQuarter<Config> rows[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    rows[half].load(side, scale_rows, (lane >> 2) + half * 8, lane & 3);
  }
#pragma unroll
  for (int word = 0; word < KeyQuarter<Config>::kWords; ++word) {
    std::uint32_t a[2][4];  // [even, odd]
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const CodeBytes bytes = code_bytes(rows[half].codes[word]);
      widen_e5m2(bytes.even, a[0][half], a[0][half + 2]);
      widen_e5m2(bytes.odd, a[1][half], a[1][half + 2]);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        std::uint32_t& pair = a[i / 2][half + i % 2 * 2];
        pair = multiply_f16x2(pair, rows[half].scales[word / 2]);
      }
    }
#pragma unroll
    for (int n = 0; n < Config::kRowTiles; ++n) {
      multiply_add<false>(s[n], a[0], state.q[2 * word][n]);
      multiply_add<false>(s[n], a[1], state.q[2 * word + 1][n]);
    }
  }
}

// The scales of V as the columns of P take them: for each pair of adjacent tokens f16 pairs, those
// of the first blocks of all chunks, then those of the second ones. They are made once for some
// tiles, not by each lane that needs them, and lie where the tiles' K was.
template <class Config, int Tiles>
struct ValueScales {
  static constexpr int kWords = Config::kScaleRowBytes / 4;       // of a token's scales
  static constexpr int kPairs = Tiles * Config::kTileTokens / 2;  // of tokens
  static constexpr int kPairBytes = 2 * Config::kChunks * 4;
  static_assert(kPairBytes <= 2 * Config::kRowBytes);

  // All lanes call it when all have read K.
  static __device__ void spread(TilePlace place, int lane) {
    __syncwarp();
#pragma unroll
    for (int first = 0; first < kPairs; first += 32) {
      const int pair = first + lane;
      if (kPairs % 32 != 0 && pair >= kPairs) break;
      std::uint32_t words[2 * kWords];
      load_words(words, place.scales + Config::kScaleBytes + pair * 2 * Config::kScaleRowBytes);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        std::uint32_t out[Config::kChunks];
#pragma unroll
        for (int w = 0; w < kWords; ++w) {
          const unsigned select = half == 0 ? 0x6240 : 0x7351;
          const std::uint32_t bytes = __byte_perm(words[w], words[kWords + w], select);
          widen_e4m3(bytes, out[2 * w], out[2 * w + 1]);
        }
        store_words(out, place.side + pair * kPairBytes + half * (kPairBytes / 2));
      }
    }
    __syncwarp();
  }

  std::uint32_t pairs[2][Config::kChunks];  // of tokens (2t, 2t + 1) and (2t + 8, 2t + 9)

  __device__ void load(TilePlace place, int tile, int lane) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int pair = tile * (Config::kTileTokens / 2) + half * 4 + (lane & 3);
      load_words(pairs[half], place.side + pair * kPairBytes + (lane >> 4) * (kPairBytes / 2));
    }
  }
};

// O^T += V^T P^T for the 16 tokens of one of the tiles whose scales have been spread; as
// weigh_tile().
template <class Config, int Tiles>
__device__ inline void weigh_codes(WarpState<Config>& state, TilePlace place, int tile, int lane,
                                   const std::uint32_t (&p)[Config::kRowTiles][2]) {
  ValueScales<Config, Tiles> scales;
  scales.load(place, tile, lane);
  const std::uint32_t side =
      place.side + Config::kSideBytes + tile * Config::kTileTokens * Config::kRowBytes;
  const std::uint32_t first = side + matrix_offset<Config>(lane);
#pragma unroll
  for (int pair = 0; pair < Config::kChunks; pair += 2) {
    std::uint32_t r[4];  // [chunk][tokens 0-7, 8-15]; a register: two tokens of four codes
    load_matrices_transposed(r, Swizzle<Config>::other_chunk(first, pair));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      std::uint32_t a[2][4];  // [even, odd]
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const CodeBytes bytes = code_bytes(r[2 * i + half]);
        // Bytes come as (token, code / 2) 00 01 10 11; pairs of tokens are wanted.
        a[0][half * 2] = __byte_perm(bytes.even, 0, 0x2404);
        a[0][half * 2 + 1] = __byte_perm(bytes.even, 0, 0x3414);
        a[1][half * 2] = __byte_perm(bytes.odd, 0, 0x2404);
        a[1][half * 2 + 1] = __byte_perm(bytes.odd, 0, 0x3414);
      }
      const int chunk = pair + i;
#pragma unroll
      for (int n = 0; n < Config::kRowTiles; ++n) {
        const std::uint32_t weights[2] = {multiply_f16x2(p[n][0], scales.pairs[0][chunk]),
                                          multiply_f16x2(p[n][1], scales.pairs[1][chunk])};
        multiply_add<false>(state.o[2 * chunk][n], a[0], weights);
        multiply_add<false>(state.o[2 * chunk + 1][n], a[1], weights);
      }
    }
  }
}

}  // namespace kernelpath::kernels::cuda::sm80
