// Compiled for AVX-512 (BF16 too) and AMX-BF16; called only where processor and system have them.
//
// Attention of many query rows (prompts) over one tile of keys, in bfloat16 tiles with float32
// sums. A float32 query or key goes in as three bfloat16 numbers, which together are all of it, for
// the error of a large score is one of its weight; a float16 as two, which are all of it too.
// Values of float32 and probabilities go in as two, which leave out 2^-17. The softmax between the
// products is that of the AVX-512 unit, and so is everything for a few rows, where reading the
// cache is what takes the time.
//
// Keys are the left tiles as they lie, 16 tokens by 32 values; queries the right ones, packed once
// a tile of keys. Values are the right tiles, two tokens to a column; probabilities the left ones.
// Limit to hit: the tile unit, 16 x 16 x 32 multiply-adds in 16 clocks;
// docs/kernels/cpu-attention.md.
#include "kernels/cpu/attention_unit.h"

// g++ 12 warns about the undefined vectors in its own intrinsics.
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <array>
#include <bit>
#include <cstring>
#include <immintrin.h>

namespace kernelpath::kernels::cpu {
namespace {
// What is left uninitialised is written before it is read; immintrin.h casts pointers.
// NOLINTBEGIN(cppcoreguidelines-pro-type-member-init)

using attention::DataType;

constexpr std::int64_t kSide = 16;  // rows of a tile, and its columns of 32 bits
constexpr std::int64_t kTileBytes = 1024;
constexpr std::int64_t kStep = 32;  // products that one tile product adds up
constexpr std::int64_t kMaxDim = 256;
constexpr std::int64_t kMaxSteps = kMaxDim / kStep;
constexpr std::int64_t kRowTiles = kBlockRows / kSide;
constexpr std::int64_t kTokenSteps = kTileTokens / kStep;
constexpr std::int64_t kQueryPieces = 3;
constexpr std::int64_t kKeyPieces = 3;  // room for them: a float32 needs three, see key_pieces()
constexpr std::int64_t kPieces = 2;     // of values and probabilities
// Fewer rows go to the AVX-512 unit.
constexpr std::int64_t kLeastRows = 9;

using TileData = std::array<std::byte, kTileBytes>;

struct alignas(64) Scratch {
  std::array<TileData, kMaxSteps * kRowTiles * kQueryPieces> queries;
  std::array<TileData, kMaxSteps * kKeyPieces> keys;  // of 16 tokens
  std::array<TileData, kTokenSteps * kRowTiles * kPieces> weights;
  std::array<TileData, kTokenSteps*(kMaxDim / kSide) * kPieces> values;
  std::array<TileData, 4> out;
};

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::array<std::uint8_t, 14> reserved{};
  std::array<std::uint16_t, 16> row_bytes{64, 64, 64, 64, 64, 64, 64, 64};
  std::array<std::uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 16};
};

// The tile registers of this thread, for as long as it lives.
class Tiles {
 public:
  Tiles() {
    const TileConfig config;
    _tile_loadconfig(&config);
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// 32 values of a row, and the rest of them that no piece has yet.
struct Columns {
  __m512 low;
  __m512 high;
};

// The values rounded to bfloat16, in order; what that leaves out stays in `columns`, nothing of an
// infinity.
[[gnu::always_inline]] inline __m512i take_piece(Columns& columns) {
  constexpr int kInfinite = 0x18;
  const auto piece = std::bit_cast<__m512i>(_mm512_cvtne2ps_pbh(columns.high, columns.low));
  const auto rest = [](__m512 value, __m256i bits) {
    const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16);
    const auto finite = static_cast<__mmask16>(~_mm512_fpclass_ps_mask(value, kInfinite));
    return _mm512_maskz_sub_ps(finite, value, _mm512_castsi512_ps(wide));
  };
  columns.low = rest(columns.low, _mm512_castsi512_si256(piece));
  columns.high = rest(columns.high, _mm512_extracti64x4_epi64(piece, 1));
  return piece;
}

inline __mmask16 first_lanes(std::int64_t count) {
  if (count <= 0) return 0;
  return count >= kSide ? __mmask16{0xFFFF} : static_cast<__mmask16>((1U << count) - 1U);
}

inline __mmask32 first_words(std::int64_t count) {
  if (count <= 0) return 0;
  return count >= kStep ? __mmask32{0xFFFFFFFF} : static_cast<__mmask32>((1U << count) - 1U);
}

// Values [d, d + 16) of a stored row as floats; 0 behind `dim`.
template <DataType Type>
[[gnu::always_inline]] inline __m512 stored(const std::byte* row, std::int64_t d,
                                            std::int64_t dim) {
  const __mmask16 lanes = first_lanes(dim - d);
  if constexpr (Type == DataType::kF32) {
    return _mm512_maskz_loadu_ps(lanes, row + d * 4);
  } else {
    const __m256i bits = _mm256_maskz_loadu_epi16(lanes, row + d * 2);
    if constexpr (Type == DataType::kF16) return _mm512_cvtph_ps(bits);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
}

// Rows become columns.
struct Row {
  __m512i v;
};
using Square = std::array<Row, kSide>;
[[gnu::always_inline]] inline void transpose(Square& m) {
  Square t;
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; i += 2) {
    t[i].v = _mm512_unpacklo_epi32(m[i].v, m[i + 1].v);
    t[i + 1].v = _mm512_unpackhi_epi32(m[i].v, m[i + 1].v);
  }
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; i += 4) {
    m[i].v = _mm512_unpacklo_epi64(t[i].v, t[i + 2].v);
    m[i + 1].v = _mm512_unpackhi_epi64(t[i].v, t[i + 2].v);
    m[i + 2].v = _mm512_unpacklo_epi64(t[i + 1].v, t[i + 3].v);
    m[i + 3].v = _mm512_unpackhi_epi64(t[i + 1].v, t[i + 3].v);
  }
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; i += 8) {
#pragma GCC unroll 16
    for (std::size_t j = i; j < i + 4; ++j) {
      t[j].v = _mm512_shuffle_i32x4(m[j].v, m[j + 4].v, 0x88);
      t[j + 4].v = _mm512_shuffle_i32x4(m[j].v, m[j + 4].v, 0xDD);
    }
  }
#pragma GCC unroll 16
  for (std::size_t j = 0; j < 8; ++j) {
    m[j].v = _mm512_shuffle_i32x4(t[j].v, t[j + 8].v, 0x88);
    m[j + 8].v = _mm512_shuffle_i32x4(t[j].v, t[j + 8].v, 0xDD);
  }
}

void store_square(const Square& m, std::byte* to) {
  for (std::size_t i = 0; i < m.size(); ++i) _mm512_storeu_si512(to + i * 64, m[i].v);
}

std::int64_t tiles_of(std::int64_t count, std::int64_t each) { return (count + each - 1) / each; }

// Right tiles [step][row tile][piece]: 16 pairs of values by 16 rows. Rows that there are not are
// 0.
void pack_queries(const TileJob& job, Scratch& scratch) {
  const std::int64_t steps = tiles_of(job.k.dim, kStep);
  for (std::int64_t tile = 0; tile < steps * kRowTiles; ++tile) {
    const std::int64_t d = tile / kRowTiles * kStep;
    const std::int64_t first = tile % kRowTiles * kSide;
    std::array<Square, kQueryPieces> pieces;
    for (std::int64_t r = 0; r < kSide; ++r) {
      const float* q = job.q + (first + r) * job.k.stride + d;
      const std::int64_t left = first + r < job.rows ? job.k.dim - d : 0;
      Columns columns{.low = _mm512_maskz_loadu_ps(first_lanes(left), q),
                      .high = _mm512_maskz_loadu_ps(first_lanes(left - kSide), q + kSide)};
      for (Square& piece : pieces) piece[static_cast<std::size_t>(r)].v = take_piece(columns);
    }
    for (std::int64_t p = 0; p < kQueryPieces; ++p) {
      auto& piece = pieces[static_cast<std::size_t>(p)];
      transpose(piece);
      store_square(piece,
                   scratch.queries[static_cast<std::size_t>(tile * kQueryPieces + p)].data());
    }
  }
}

constexpr int key_pieces(DataType type) {
  if (type == DataType::kBf16) return 1;
  return type == DataType::kF32 ? 3 : 2;
}

// Row `row` of the left tiles [step][piece] of keys.
template <DataType Type>
void pack_key(const std::byte* key, std::int64_t dim, std::int64_t row, Scratch& scratch) {
  for (std::int64_t step = 0; step * kStep < dim; ++step) {
    auto* out = scratch.keys[static_cast<std::size_t>(step * kKeyPieces)].data() + row * 64;
    const std::int64_t d = step * kStep;
    if constexpr (Type == DataType::kBf16) {
      _mm512_storeu_si512(out, _mm512_maskz_loadu_epi16(first_words(dim - d), key + d * 2));
    } else {
      Columns columns{.low = stored<Type>(key, d, dim), .high = stored<Type>(key, d + kSide, dim)};
      for (std::int64_t p = 0; p < key_pieces(Type); ++p) {
        _mm512_storeu_si512(out + p * kTileBytes, take_piece(columns));
      }
    }
  }
}

// 16 tokens from `first` on; the last token is repeated.
template <DataType Type>
void pack_keys(const TileJob& job, std::int64_t first, Scratch& scratch) {
  for (std::int64_t t = 0; t < kSide; ++t) {
    const std::int64_t token = first + t < job.tokens ? first + t : job.tokens - 1;
    pack_key<Type>(job.k.data[token], job.k.dim, t, scratch);
  }
}

// Columns of scores for 16 tokens become those of 16 rows from `row` on.
void store_scores(const TileJob& job, std::int64_t row, std::int64_t first, const TileData& out) {
  Square m;
  for (std::size_t i = 0; i < m.size(); ++i) m[i].v = _mm512_loadu_si512(out.data() + i * 64);
  transpose(m);
  const std::int64_t left = job.rows - row;
  for (std::int64_t i = 0; i < (left < kSide ? left : kSide); ++i) {
    _mm512_storeu_si512(job.scores + (row + i) * kScoreStride + job.first_column + first,
                        m[static_cast<std::size_t>(i)].v);
  }
}

// Scores of 16 tokens, whose left tiles are packed, for the 32 rows of two tiles.
template <int KeyPieces>
void multiply_keys(const TileJob& job, std::int64_t row, std::int64_t first, Scratch& scratch) {
  const std::int64_t steps = tiles_of(job.k.dim, kStep);
  _tile_zero(0);
  _tile_zero(1);
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto* keys = scratch.keys[static_cast<std::size_t>(step * kKeyPieces)].data();
    const std::int64_t tile = step * kRowTiles + row / kSide;
    const auto* queries = scratch.queries[static_cast<std::size_t>(tile * kQueryPieces)].data();
    _tile_loadd(2, keys, 64);
    if constexpr (KeyPieces > 1) _tile_loadd(3, keys + kTileBytes, 64);
    if constexpr (KeyPieces > 2) _tile_loadd(6, keys + 2 * kTileBytes, 64);
    for (std::int64_t p = 0; p < kQueryPieces; ++p) {
      _tile_loadd(4, queries + p * kTileBytes, 64);
      _tile_loadd(5, queries + (kQueryPieces + p) * kTileBytes, 64);
      _tile_dpbf16ps(0, 2, 4);
      _tile_dpbf16ps(1, 2, 5);
      // What is left out is below the last bit of a float32 product.
      if constexpr (KeyPieces > 1) {
        if (p + 1 == kQueryPieces) continue;
        _tile_dpbf16ps(0, 3, 4);
        _tile_dpbf16ps(1, 3, 5);
      }
      if constexpr (KeyPieces > 2) {
        if (p > 0) continue;
        _tile_dpbf16ps(0, 6, 4);
        _tile_dpbf16ps(1, 6, 5);
      }
    }
  }
  _tile_stored(0, scratch.out[0].data(), 64);
  _tile_stored(1, scratch.out[1].data(), 64);
  store_scores(job, row, first, scratch.out[0]);
  store_scores(job, row + kSide, first, scratch.out[1]);
}

template <DataType Type>
void score_tile(const TileJob& job, Scratch& scratch) {
  for (std::int64_t first = 0; first < job.tokens; first += kSide) {
    pack_keys<Type>(job, first, scratch);
    for (std::int64_t row = 0; row < job.rows; row += 2 * kSide) {
      multiply_keys<key_pieces(Type)>(job, row, first, scratch);
    }
  }
}

// Left tiles [step][row tile][piece] of probabilities: 16 rows by 32 tokens; 0 for tokens that a
// row does not see.
void pack_weights(const TileJob& job, std::int64_t steps, Scratch& scratch) {
  for (std::int64_t row = 0; row < tiles_of(job.rows, 2 * kSide) * 2 * kSide; ++row) {
    const TokenRange range = row < job.rows ? job.ranges[row] : TokenRange{};
    const float* p = job.scores + (row < job.rows ? row : 0) * kScoreStride + job.first_column;
    for (std::int64_t step = 0; step < steps; ++step) {
      const std::int64_t t = step * kStep;
      const auto seen = [&](std::int64_t from) {
        return static_cast<__mmask16>(first_lanes(range.last - from) &
                                      static_cast<__mmask16>(~first_lanes(range.first - from)));
      };
      Columns columns{.low = _mm512_maskz_loadu_ps(seen(t), p + t),
                      .high = _mm512_maskz_loadu_ps(seen(t + kSide), p + t + kSide)};
      const std::int64_t tile = (step * kRowTiles + row / kSide) * kPieces;
      for (std::int64_t i = 0; i < kPieces; ++i) {
        _mm512_storeu_si512(
            scratch.weights[static_cast<std::size_t>(tile + i)].data() + row % kSide * 64,
            take_piece(columns));
      }
    }
  }
}

// Right tiles [step][16 values][piece]: 16 pairs of tokens by 16 values; 0 past the last token.
// False where a value is no finite number: 0 times it would be NaN for rows that do not see it.
template <DataType Type>
bool pack_values(const TileJob& job, std::int64_t steps, Scratch& scratch) {
  constexpr int kNotFinite = 0x99;
  const std::int64_t width = tiles_of(job.v.dim, kSide);
  const __m512i pairs = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  unsigned not_finite = 0;
  for (std::int64_t t = 0; t < steps * kStep; t += 2) {
    for (std::int64_t column = 0; column < width; ++column) {
      const auto value = [&](std::int64_t token) {
        if (token >= job.tokens) return _mm512_setzero_ps();
        return stored<Type>(job.v.data[token], column * kSide, job.v.dim);
      };
      Columns columns{.low = value(t), .high = value(t + 1)};
      not_finite |= static_cast<unsigned>(_mm512_fpclass_ps_mask(columns.low, kNotFinite)) |
                    static_cast<unsigned>(_mm512_fpclass_ps_mask(columns.high, kNotFinite));
      const std::int64_t tile = (t / kStep * width + column) * kPieces;
      auto* out = scratch.values[static_cast<std::size_t>(tile)].data() + t % kStep / 2 * 64;
      _mm512_storeu_si512(out, _mm512_permutexvar_epi16(pairs, take_piece(columns)));
      if constexpr (Type != DataType::kBf16) {
        _mm512_storeu_si512(out + kTileBytes, _mm512_permutexvar_epi16(pairs, take_piece(columns)));
      }
    }
  }
  return not_finite == 0;
}

// Adds the products of a piece of probabilities with the values in tiles 6 and 7.
template <bool Two>
[[gnu::always_inline]] inline void multiply_weights(const std::byte* weights) {
  _tile_loadd(4, weights, 64);
  _tile_loadd(5, weights + kPieces * kTileBytes, 64);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 5, 6);
  if constexpr (Two) {
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
}

// Sums of 32 rows by 16 or 32 values.
template <int ValuePieces, bool Two>
void multiply_values(const std::byte* weights, const std::byte* values, std::int64_t steps,
                     std::int64_t step_bytes) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::byte* left = weights + step * kRowTiles * kPieces * kTileBytes;
    const std::byte* right = values + step * step_bytes;
    _tile_loadd(6, right, 64);
    if constexpr (Two) _tile_loadd(7, right + kPieces * kTileBytes, 64);
    multiply_weights<Two>(left);
    multiply_weights<Two>(left + kTileBytes);
    if constexpr (ValuePieces == 2) {
      _tile_loadd(6, right + kTileBytes, 64);
      if constexpr (Two) _tile_loadd(7, right + (kPieces + 1) * kTileBytes, 64);
      multiply_weights<Two>(left);
    }
  }
}

// The sums of 16 rows by 16 values to their rows.
void store_values(const TileJob& job, std::int64_t row, std::int64_t column, const TileData& out) {
  const std::int64_t left = job.rows - row;
  for (std::int64_t i = 0; i < (left < kSide ? left : kSide); ++i) {
    _mm512_storeu_ps(job.acc + (row + i) * job.v.stride + column * kSide,
                     _mm512_loadu_ps(out.data() + i * 64));
  }
}

// The sums of the 32 rows from `row` on, all values.
template <int ValuePieces>
void sum_rows(const TileJob& job, std::int64_t row, std::int64_t steps, Scratch& scratch) {
  const std::int64_t width = tiles_of(job.v.dim, kSide);
  const std::int64_t step_bytes = width * kPieces * kTileBytes;
  const auto* weights = scratch.weights[static_cast<std::size_t>(row / kSide * kPieces)].data();
  for (std::int64_t column = 0; column < width; column += 2) {
    const auto* values = scratch.values[static_cast<std::size_t>(column * kPieces)].data();
    const bool two = column + 1 < width;
    if (two) {
      multiply_values<ValuePieces, true>(weights, values, steps, step_bytes);
    } else {
      multiply_values<ValuePieces, false>(weights, values, steps, step_bytes);
    }
    _tile_stored(0, scratch.out[0].data(), 64);
    _tile_stored(1, scratch.out[1].data(), 64);
    store_values(job, row, column, scratch.out[0]);
    store_values(job, row + kSide, column, scratch.out[1]);
    if (!two) continue;
    _tile_stored(2, scratch.out[2].data(), 64);
    _tile_stored(3, scratch.out[3].data(), 64);
    store_values(job, row, column + 1, scratch.out[2]);
    store_values(job, row + kSide, column + 1, scratch.out[3]);
  }
}

template <DataType Type>
bool value_tile(const TileJob& job, Scratch& scratch) {
  constexpr int kValuePieces = Type == DataType::kBf16 ? 1 : 2;
  const std::int64_t steps = tiles_of(job.tokens, kStep);
  if (!pack_values<Type>(job, steps, scratch)) return false;
  pack_weights(job, steps, scratch);
  for (std::int64_t row = 0; row < job.rows; row += 2 * kSide) {
    sum_rows<kValuePieces>(job, row, steps, scratch);
  }
  return true;
}

template <DataType Type>
bool attention_tile_of(const TileJob& job) {
  thread_local Scratch scratch;
  {
    const Tiles tiles;
    pack_queries(job, scratch);
    score_tile<Type>(job, scratch);
  }
  attention_unit_avx512().soften(job);
  const Tiles tiles;
  return value_tile<Type>(job, scratch);
}

// Both sides of a cache have one type.
bool attention_tile_of_type(const TileJob& job) {
  if (job.k.type != job.v.type) return false;
  switch (job.k.type) {
    case DataType::kF32:
      return attention_tile_of<DataType::kF32>(job);
    case DataType::kBf16:
      return attention_tile_of<DataType::kBf16>(job);
    case DataType::kF16:
      return attention_tile_of<DataType::kF16>(job);
    case DataType::kFp8E4m3:
    case DataType::kFp8E5m2:
    case DataType::kNvfp4:
      return false;
  }
  return false;
}

void attention_tile(const TileJob& job) {
  const bool fits =
      job.rows >= kLeastRows && job.tokens > 0 && job.k.dim <= kMaxDim && job.v.dim <= kMaxDim;
  if (fits && attention_tile_of_type(job)) return;
  attention_unit_avx512().tile(job);
}

// NOLINTEND(cppcoreguidelines-pro-type-member-init)
}  // namespace

const AttentionUnit& attention_unit_amx() {
  static const AttentionUnit kUnit{.tile = attention_tile,
                                   .soften = attention_unit_avx512().soften,
                                   .rescale_add = attention_unit_avx512().rescale_add};
  return kUnit;
}

}  // namespace kernelpath::kernels::cpu
