// Compiled for AVX-512 and AMX-BF16; called only where processor and system have them.
//
// Products of many tokens in bfloat16 tiles with float32 sums. A float32 activation goes in as the
// sum of two bfloat16 numbers, which leaves out less than 2^-17 of it: as much as the rounding of a
// float32 sum over a thousand columns. Weights that are bfloat16 already are the left tile as they
// lie; others are cut into one piece or two, a block of rows at a time. The product of two second
// pieces lies below that error and is left out.
//
// q8_0 and q4_0 have a scale for every 32 columns, which is what one product of tiles adds up:
// their codes are the left tile, and each product is scaled on its way to the sum.
//
// Tile: 32 rows by 32 tokens, four sums of 16 x 16. Bytes moved: weights once per block of tokens,
// whose packed activations stay in the second-level cache; every thread packs them for itself,
// since lines fresh from another core cost more than the work. Limit to hit: the tile unit (16 x 16
// x 32 multiply-adds in 16 clocks) for a prompt, read bandwidth for a few tokens.
// docs/kernels/cpu-matmul.md has the arithmetic and the measurements.
#include "kernels/cpu/simd_avx512.inc"
// The vectors come first.
#include "kernels/cpu/amx_tiles.inc"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/matmul_ggml_readers.inc"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <immintrin.h>

namespace kernelpath::kernels::cpu {
namespace {
// Sizes are counted as the tensors' are, with a sign; what is left uninitialised is written before
// it is read; immintrin.h casts pointers.
// NOLINTBEGIN(cppcoreguidelines-pro-type-member-init)

// Where the left tiles of a block of 32 rows lie: that of a step, of the first or second 16 rows
// and of a piece begins at data + step * step_bytes + half * half_bytes + piece * piece_bytes.
struct LeftTiles {
  const std::byte* data = nullptr;
  std::int64_t row_bytes = 0;
  std::int64_t step_bytes = 0;
  std::int64_t half_bytes = 0;
  std::int64_t piece_bytes = 0;
};

// Of the left tiles of a step, and a line more: the same row of all steps would else lie in one or
// two sets of the first-level cache, and is written at one time.
constexpr std::int64_t left_step_bytes(std::int64_t pieces) {
  return 2 * pieces * kTileBytes + kLineBytes;
}
constexpr std::int64_t kLeftBytes = kBlockSteps * left_step_bytes(kPieces);
constexpr std::int64_t kTokensBytes = kBlockTiles * kTokenTileBytes;
// Scales of a block: [32 rows][step].
constexpr std::int64_t kScales = kBlockRows * kBlockSteps;

constexpr std::int64_t kScratchBytes =
    kTokensBytes + kLeftBytes + kScales * static_cast<std::int64_t>(sizeof(float));

// What a thread needs beside its registers.
struct Scratch {
  std::byte* memory = nullptr;  // kScratchBytes, aligned to a cache line

  [[nodiscard]] std::byte* tokens() const { return memory; }
  [[nodiscard]] std::byte* left() const { return memory + kTokensBytes; }
  [[nodiscard]] float* scales() const { return reinterpret_cast<float*>(left() + kLeftBytes); }
};

using Products = std::array<std::array<float, kTile * kTile>, 4>;

// Products of a block of rows with one or two tiles of tokens. Tiles 0 to 3 are the sums, 4 and 5
// the rows, 6 and 7 the tokens.
template <int LeftPieces, bool Two>
// NOLINTNEXTLINE(readability-function-size): every intrinsic of a tile is a block of statements
void multiply(const LeftTiles& left, const std::byte* tokens, std::int64_t steps, Products& out) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::int64_t step = 0; step < steps; ++step) {
    for (std::int64_t piece = 0; piece < LeftPieces; ++piece) {
      const std::byte* const rows = left.data + step * left.step_bytes + piece * left.piece_bytes;
      _tile_loadd(4, rows, left.row_bytes);
      _tile_loadd(5, rows + left.half_bytes, left.row_bytes);
      for (std::int64_t other = 0; other < kPieces - piece; ++other) {
        const std::byte* const right = tokens + (step * kPieces + other) * kTileBytes;
        _tile_loadd(6, right, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(2, 5, 6);
        if constexpr (Two) {
          _tile_loadd(7, right + kTokenTileBytes, 64);
          _tile_dpbf16ps(1, 4, 7);
          _tile_dpbf16ps(3, 5, 7);
        }
      }
    }
  }
  _tile_stored(0, out[0].data(), 64);
  _tile_stored(2, out[2].data(), 64);
  if constexpr (Two) {
    _tile_stored(1, out[1].data(), 64);
    _tile_stored(3, out[3].data(), 64);
  }
}

// What becomes of sums: the first block of columns stores them, the others add to what is there,
// and the last one applies the rows' factors and biases.
struct Finish {
  bool first = true;
  bool last = true;
  std::array<float, kBlockRows> factors{};
  std::array<float, kBlockRows> biases{};
};

float* y_row(const MatmulPart& part, std::int64_t i) {
  return part.y + (part.y_rows == nullptr ? i : part.y_rows[i]) * part.y_stride;
}

// Adds 16 rows by 16 tokens to y.
void store(const MatmulPart& part, const std::array<float, kTile * kTile>& products,
           const Place& at, std::int64_t half, const Finish& finish) {
  const std::int64_t rows = std::min(at.rows - half * kTile, kTile);
  if (rows <= 0) return;
  const auto mask = static_cast<__mmask16>((1U << static_cast<unsigned>(rows)) - 1U);
  Square m;
  for (std::size_t r = 0; r < m.size(); ++r) m[r].v = _mm512_loadu_si512(&products[r * 16]);
  transpose(m);
  const __m512 factors = _mm512_loadu_ps(finish.factors.data() + half * kTile);
  const __m512 biases = _mm512_loadu_ps(finish.biases.data() + half * kTile);
  const std::int64_t tokens = std::min(part.n - at.tile * kTile, kTile);
  for (std::int64_t t = 0; t < tokens; ++t) {
    float* const y = y_row(part, at.tile * kTile + t) + at.row + half * kTile;
    __m512 sum = _mm512_castsi512_ps(m[static_cast<std::size_t>(t)].v);
    if (!finish.first) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, y));
    if (finish.last) sum = _mm512_add_ps(_mm512_mul_ps(sum, factors), biases);
    _mm512_mask_storeu_ps(y, mask, sum);
  }
}

template <int LeftPieces>
void multiply_tokens(const MatmulPart& part, const LeftTiles& left, const std::byte* packed,
                     const Place& at, const Finish& finish) {
  Products products;
  Place here = at;
  for (std::int64_t done = 0; done < at.tiles; done += 2) {
    here.tile = at.tile + done;
    const std::byte* const tokens = packed + done * kTokenTileBytes;
    const bool two = done + 1 < at.tiles;
    if (two) {
      multiply<LeftPieces, true>(left, tokens, at.steps, products);
    } else {
      multiply<LeftPieces, false>(left, tokens, at.steps, products);
    }
    for (const std::int64_t half : {0, 1}) {
      const auto first = static_cast<std::size_t>(2 * half);
      store(part, products[first], here, half, finish);
      if (!two) continue;
      Place second = here;
      ++second.tile;
      store(part, products[first + 1], second, half, finish);
    }
  }
}

// Cuts 32 columns of a row and puts them into the tiles of a step.
template <int LeftPieces>
inline void put_columns(Columns columns, std::byte* to) {
#pragma GCC unroll 2
  for (std::int64_t piece = 0; piece < LeftPieces; ++piece) {
    _mm512_store_si512(to + piece * 2 * kTileBytes, take_piece(columns));
  }
}

template <class Reader>
float left_factor(const WeightMatrix& m, std::int64_t row) {
  const float factor = m.scale * Reader::kFactor;
  if (m.scale_format == ScaleFormat::kNone || Reader::kBlockScales) return factor;
  return factor * read_scale(m.scale_format, m.scales + row / m.block_rows * m.scale_row_bytes, 0);
}

// The last columns of a row, fewer than 32, filled up with zeros, without the row's factor.
template <class Reader>
std::array<float, kStepCols> last_columns(const WeightMatrix& w, std::int64_t row,
                                          std::int64_t first) {
  std::array<float, kStepCols> out{};
  dequantize_columns(w, row, first, w.cols - first, out.data());
  const float factor = left_factor<Reader>(w, row);
  for (float& value : out) value = factor == 0.0F ? 0.0F : value / factor;
  return out;
}

// The row of W in place `r` of a block; those past the last one repeat it and are not stored.
std::int64_t row_at(const Place& at, std::int64_t r) { return at.row + std::min(r, at.rows - 1); }

// Lays the pieces of a block of rows out as [step][piece][half][16 rows][32 columns].
template <class Reader, int LeftPieces>
LeftTiles cut_rows(const WeightMatrix& w, const Place& at, std::byte* buffer) {
  constexpr std::int64_t kStepBytes = left_step_bytes(LeftPieces);
  for (std::int64_t r = 0; r < kBlockRows; ++r) {
    const std::int64_t row = row_at(at, r);
    const Reader reader(w, row);
    std::byte* to = buffer + r * kLineBytes;
    for (std::int64_t step = 0; step < at.steps; ++step, to += kStepBytes) {
      const std::int64_t column = (at.step + step) * kStepCols;
      if (column % kStep == 0) reader.ahead(column, kPrefetchBytes);
      if (column + kStepCols <= w.cols) {
        put_columns<LeftPieces>({reader.at(column, 0).v, reader.at(column, 1).v}, to);
      } else {
        const auto last = last_columns<Reader>(w, row, column);
        put_columns<LeftPieces>(
            {_mm512_loadu_ps(last.data()), _mm512_loadu_ps(last.data() + kTile)}, to);
      }
    }
  }
  return {.data = buffer,
          .row_bytes = kLineBytes,
          .step_bytes = kStepBytes,
          .half_bytes = kTileBytes,
          .piece_bytes = 2 * kTileBytes};
}

// bfloat16 rows are the left tiles as they lie. For many tokens they are copied together: rows a
// power of two apart share few lines of the first-level cache.
LeftTiles left_tiles(const WeightMatrix& w, const Place& at, std::byte* buffer) {
  constexpr std::int64_t kTilesInPlace = 2;
  if (w.cols % kStepCols != 0) return cut_rows<Bf16Reader, 1>(w, at, buffer);
  const std::byte* const data = w.data + at.step * kStepCols * 2;
  if (at.tiles <= kTilesInPlace && at.rows == kBlockRows) {
    return {.data = data + at.row * w.row_bytes,
            .row_bytes = w.row_bytes,
            .step_bytes = kLineBytes,
            .half_bytes = kTile * w.row_bytes};
  }
  for (std::int64_t r = 0; r < kBlockRows; ++r) {
    const std::byte* const from = data + row_at(at, r) * w.row_bytes;
    std::byte* const to = buffer + r * kLineBytes;
    read_ahead(from + w.row_bytes, at.steps * kLineBytes);  // the next row
    for (std::int64_t step = 0; step < at.steps; ++step) {
      _mm512_store_si512(to + step * left_step_bytes(1),
                         _mm512_loadu_si512(from + step * kLineBytes));
    }
  }
  return {.data = buffer,
          .row_bytes = kLineBytes,
          .step_bytes = left_step_bytes(1),
          .half_bytes = kTileBytes};
}

template <class Reader>
Finish finish_of(const MatmulPart& part, const Place& at) {
  Finish out{.first = at.step == 0, .last = at.step + at.steps == steps_of(part.w.cols)};
  for (std::int64_t r = 0; r < at.rows; ++r) {
    const auto i = static_cast<std::size_t>(r);
    out.factors[i] = left_factor<Reader>(part.w, at.row + r);
    if (part.bias != nullptr) out.biases[i] = part.bias[at.row + r];
  }
  return out;
}

// What a thread does with a block of columns and tokens: all its rows.
struct Block {
  const PartRows& rows;
  const Place& place;
  const Scratch& scratch;
};

template <class Reader, int LeftPieces>
void multiply_cut(const Block& block) {
  const MatmulPart& part = *block.rows.part;
  Place at = block.place;
  for (at.row = block.rows.begin; at.row < block.rows.end; at.row += kBlockRows) {
    at.rows = std::min(block.rows.end - at.row, kBlockRows);
    const LeftTiles left = cut_rows<Reader, LeftPieces>(part.w, at, block.scratch.left());
    multiply_tokens<LeftPieces>(part, left, block.scratch.tokens(), at,
                                finish_of<Reader>(part, at));
  }
}

void multiply_bf16(const Block& block) {
  const MatmulPart& part = *block.rows.part;
  Place at = block.place;
  for (at.row = block.rows.begin; at.row < block.rows.end; at.row += kBlockRows) {
    at.rows = std::min(block.rows.end - at.row, kBlockRows);
    multiply_tokens<1>(part, left_tiles(part.w, at, block.scratch.left()), block.scratch.tokens(),
                       at, finish_of<Bf16Reader>(part, at));
  }
}

// The codes of 32 columns as floats, without their scale.
template <WeightFormat Format>
Columns codes_of(const std::byte* row, std::int64_t step) {
  if constexpr (Format == WeightFormat::kQ8_0) {
    const auto* const from = reinterpret_cast<const __m128i*>(row + step * kStepCols);
    return {Simd::from_int8(_mm_loadu_si128(from)).v, Simd::from_int8(_mm_loadu_si128(from + 1)).v};
  } else {
    const std::byte* const from = row + step * kStepCols / 2;
    return {Simd::from_int8(Simd::minus_eight(Simd::halves(from, false))).v,
            Simd::from_int8(Simd::minus_eight(Simd::halves(from, true))).v};
  }
}

// Lays codes out as [step][half][16 rows][32 columns], and scales as [32 rows][step].
template <WeightFormat Format>
void take_codes(const WeightMatrix& w, const Place& at, const Scratch& scratch) {
  const std::int64_t step_bytes = w.row_bytes / steps_of(w.cols);
  for (std::int64_t r = 0; r < kBlockRows; ++r) {
    const std::byte* const row = w.data + row_at(at, r) * w.row_bytes;
    const std::byte* const scales = w.scales + row_at(at, r) * w.scale_row_bytes + at.step * 2;
    std::byte* to = scratch.left() + r * kLineBytes;
    for (std::int64_t step = 0; step < at.steps; ++step, to += left_step_bytes(1)) {
      if (step % 2 == 0)
        read_ahead(row + (at.step + step) * step_bytes + kPrefetchBytes, kLineBytes);
      const Columns codes = codes_of<Format>(row, at.step + step);
      _mm512_store_si512(to, std::bit_cast<__m512i>(_mm512_cvtne2ps_pbh(codes.high, codes.low)));
    }
    for (std::int64_t step = 0; step < at.steps; step += kTile) {
      const std::int64_t left = std::min(at.steps - step, kTile);
      const auto mask = static_cast<__mmask16>((1U << static_cast<unsigned>(left)) - 1U);
      const __m256i f16 = _mm256_maskz_loadu_epi16(mask, scales + step * 2);
      _mm512_store_ps(scratch.scales() + r * kBlockSteps + step, _mm512_cvtph_ps(f16));
    }
  }
}

// 16 rows of codes in tiles of a step each, with their scales, and 16 tokens.
struct ScaledRows {
  const std::byte* codes = nullptr;
  const float* scales = nullptr;
  const std::byte* tokens = nullptr;
};

// The products of two steps; of one, where `two` does not hold.
inline void multiply_steps(const ScaledRows& rows, std::int64_t step, bool two, float* out) {
  const std::byte* const codes = rows.codes + step * left_step_bytes(1);
  const std::byte* const tokens = rows.tokens + step * kPieces * kTileBytes;
  _tile_zero(0);
  _tile_loadd(4, codes, kLineBytes);
  _tile_loadd(5, tokens, kLineBytes);
  _tile_dpbf16ps(0, 4, 5);
  _tile_loadd(6, tokens + kTileBytes, kLineBytes);
  _tile_dpbf16ps(0, 4, 6);
  if (two) {
    _tile_zero(1);
    _tile_loadd(7, codes + left_step_bytes(1), kLineBytes);
    _tile_loadd(2, tokens + 2 * kTileBytes, kLineBytes);
    _tile_dpbf16ps(1, 7, 2);
    _tile_loadd(3, tokens + 3 * kTileBytes, kLineBytes);
    _tile_dpbf16ps(1, 7, 3);
  }
  _tile_stored(0, out, kLineBytes);
  if (two) _tile_stored(1, out + kTile * kTile, kLineBytes);
}

// Sums of 16 rows and 16 tokens over steps that each have a scale for every row. The tile unit is
// two steps ahead of the vectors, which scale what it stored.
void multiply_scaled(const ScaledRows& rows, std::int64_t steps,
                     std::array<float, kTile * kTile>& out) {
  std::array<Simd::Reg, kTile> sums;
  sums.fill(Simd::zero());
  constexpr std::int64_t kPair = 2 * kTile * kTile;
  alignas(64) std::array<float, 2 * kPair> products;
  multiply_steps(rows, 0, steps > 1, products.data());
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t next = step + 2;
    if (step % 2 == 0 && next < steps) {
      multiply_steps(rows, next, next + 1 < steps, products.data() + next / 2 % 2 * kPair);
    }
    const float* const product = products.data() + step / 2 % 2 * kPair + step % 2 * kTile * kTile;
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kTile; ++r) {
      Simd::Reg& sum = sums[static_cast<std::size_t>(r)];
      sum.v = _mm512_fmadd_ps(_mm512_load_ps(product + r * kTile),
                              _mm512_set1_ps(rows.scales[r * kBlockSteps + step]), sum.v);
    }
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < 16; ++r) _mm512_storeu_ps(&out[r * 16], sums[r].v);
}

template <WeightFormat Format>
void multiply_codes(const Block& block) {
  const MatmulPart& part = *block.rows.part;
  Place at = block.place;
  std::array<float, kTile * kTile> sums;
  for (at.row = block.rows.begin; at.row < block.rows.end; at.row += kBlockRows) {
    at.rows = std::min(block.rows.end - at.row, kBlockRows);
    take_codes<Format>(part.w, at, block.scratch);
    const Finish finish = finish_of<Q8Reader>(part, at);
    for (std::int64_t tile = 0; tile < at.tiles; ++tile) {
      Place here = at;
      here.tile += tile;
      for (const std::int64_t half : {0, 1}) {
        multiply_scaled({.codes = block.scratch.left() + half * kTileBytes,
                         .scales = block.scratch.scales() + half * kTile * kBlockSteps,
                         .tokens = block.scratch.tokens() + tile * kTokenTileBytes},
                        at.steps, sums);
        store(part, sums, here, half, finish);
      }
    }
  }
}

// As many pieces as the values of a format have bits for.
void multiply_block(const Block& block) {
  const WeightMatrix& w = block.rows.part->w;
  switch (w.format) {
    case WeightFormat::kF32:
      return multiply_cut<F32Reader, 2>(block);
    case WeightFormat::kBf16:
      return multiply_bf16(block);
    case WeightFormat::kF16:  // 11 bits
      return multiply_cut<F16Reader, 2>(block);
    case WeightFormat::kFp8E4m3:
      if (w.scales_whole_rows()) return multiply_cut<Fp8Reader, 1>(block);
      return multiply_cut<Fp8BlockReader, 2>(block);
    case WeightFormat::kE2m1:  // 2 bits times a scale of 4 bits, or a power of two
      return multiply_cut<E2m1Reader, 1>(block);
    case WeightFormat::kQ8_0:
      return multiply_codes<WeightFormat::kQ8_0>(block);
    case WeightFormat::kQ4_0:
      return multiply_codes<WeightFormat::kQ4_0>(block);
    case WeightFormat::kQ5_0:
      return multiply_cut<Q5Reader, 2>(block);
    case WeightFormat::kQ4K:
      return multiply_cut<Q4KReader, 2>(block);
    case WeightFormat::kQ5K:
      return multiply_cut<Q5KReader, 2>(block);
    case WeightFormat::kQ6K:
      return multiply_cut<Q6KReader, 2>(block);
  }
}

// Whether tiles are faster than vectors: at once where the weights are read as they lie, later
// where they are first cut into pieces.
bool takes(const MatmulPart& part) {
  constexpr std::int64_t kInPlace = 8;
  constexpr std::int64_t kCodes = 8;
  constexpr std::int64_t kCut = 32;
  switch (part.w.format) {
    case WeightFormat::kBf16:
      return part.n >= kInPlace;
    case WeightFormat::kQ8_0:
    case WeightFormat::kQ4_0:
      return part.n >= kCodes;
    default:
      return part.n >= kCut;
  }
}

bool same_activations(const MatmulPart& a, const MatmulPart& b) {
  return a.x == b.x && a.x_stride == b.x_stride && a.n == b.n && a.x_rows == b.x_rows &&
         a.w.cols == b.w.cols;
}

// Blocks of columns, then of tokens, whose activations are packed once for all rows.
void multiply_group(std::span<const PartRows> group, const Scratch& scratch) {
  const Tiles tiles;
  const MatmulPart& part = *group.front().part;
  const std::int64_t steps = steps_of(part.w.cols);
  const std::int64_t token_tiles = (part.n + kTile - 1) / kTile;
  const std::int64_t token_blocks = (token_tiles + kBlockTiles - 1) / kBlockTiles;
  Place at;
  for (at.step = 0; at.step < steps; at.step += kBlockSteps) {
    at.steps = std::min(steps - at.step, kBlockSteps);
    for (std::int64_t block = 0; block < token_blocks; ++block) {
      at.tile = token_tiles * block / token_blocks;
      at.tiles = token_tiles * (block + 1) / token_blocks - at.tile;
      pack(part, at, scratch.tokens());
      for (const PartRows& rows : group) multiply_block({rows, at, scratch});
    }
  }
}

// NOLINTEND(cppcoreguidelines-pro-type-member-init)
}  // namespace

void matmul_rows_amx(std::span<const PartRows> share) {
  const Scratch scratch{matmul_scratch(kScratchBytes)};
  while (!share.empty()) {
    const MatmulPart& first = *share.front().part;
    std::size_t count = 1;
    if (scratch.memory == nullptr || !takes(first)) {
      matmul_rows_avx512(share.first(count));
    } else {
      while (count < share.size() && takes(*share[count].part) &&
             same_activations(first, *share[count].part)) {
        ++count;
      }
      multiply_group(share.first(count), scratch);
    }
    share = share.subspan(count);
  }
}

}  // namespace kernelpath::kernels::cpu
