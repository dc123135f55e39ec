// Compiled for AVX-512 and AMX with BF16 and INT8; called only where processor and system have
// them.
//
// Products of many tokens in tiles: of whole numbers where the weights are some (amx_codes.inc), in
// bfloat16 of all other formats (amx_pieces.inc). Bytes moved: weights once per block of tokens,
// whose packed activations stay in the second-level cache; every thread packs them for itself,
// since lines fresh from another core cost more than the work. Limit to hit: the tile unit (16 x 16
// x 32 multiply-adds in 16 clocks) for a prompt, read bandwidth for a few tokens.
// docs/kernels/cpu-matmul.md has the arithmetic and the measurements.
#include "kernels/cpu/simd_avx512.inc"
// The vectors come first, then the readers.
#include "kernels/cpu/matmul_ggml_readers.inc"
// And then what uses them.
#include "kernels/cpu/amx_codes.inc"
#include "kernels/cpu/amx_pieces.inc"
#include "kernels/cpu/matmul.h"

#include <algorithm>
#include <cstdint>

namespace kernelpath::kernels::cpu {
namespace {

// What multiplies a part.
enum class Kind : std::uint8_t { kVectors, kFloats, kCodes };

// Tiles where they are faster than vectors: at once where the weights are read as they lie, later
// where they are first cut into pieces. Whole numbers are cut too where enough tokens share that:
// then it takes less than scaling the sum of every 32 columns.
Kind kind_of(const MatmulPart& part) {
  constexpr std::int64_t kInPlace = 8;
  constexpr std::int64_t kCut = 16;
  constexpr std::int64_t kCutCodes = 96;
  switch (part.w.format) {
    case WeightFormat::kQ8_0:
    case WeightFormat::kQ4_0:
      if (part.n < kInPlace) return Kind::kVectors;
      return part.n < kCutCodes ? Kind::kCodes : Kind::kFloats;
    case WeightFormat::kBf16:
      return part.n >= kInPlace ? Kind::kFloats : Kind::kVectors;
    default:
      return part.n >= kCut ? Kind::kFloats : Kind::kVectors;
  }
}

void multiply(Kind kind, const Work& work) {
  if (kind == Kind::kFloats) return multiply_pieces(work);
  if (work.rows.part->w.format == WeightFormat::kQ8_0) {
    return multiply_coded<WeightFormat::kQ8_0>(work);
  }
  multiply_coded<WeightFormat::kQ4_0>(work);
}

bool same_activations(const MatmulPart& a, const MatmulPart& b) {
  return a.x == b.x && a.x_stride == b.x_stride && a.n == b.n && a.x_rows == b.x_rows &&
         a.w.cols == b.w.cols;
}

// Blocks of columns, then of tokens, whose activations are packed once for all rows: all columns
// where they fit, so that the weights are read in the order in which they lie.
void multiply_group(Kind kind, std::span<const PartRows> group, const Scratch& scratch) {
  const Tiles tiles(kind == Kind::kCodes ? code_config() : TileConfig{});
  const MatmulPart& part = *group.front().part;
  const std::int64_t steps = steps_of(part.w.cols);
  const std::int64_t token_tiles = (part.n + kTile - 1) / kTile;
  const std::int64_t token_blocks = (token_tiles + kBlockTiles - 1) / kBlockTiles;
  const bool all = token_tiles * steps <= kBlockTiles * kBlockSteps;
  const std::int64_t steps_at_once = all ? steps : kBlockSteps;
  Place at;
  for (at.step = 0; at.step < steps; at.step += steps_at_once) {
    at.steps = std::min(steps - at.step, steps_at_once);
    for (std::int64_t block = 0; block < token_blocks; ++block) {
      at.tile = token_tiles * block / token_blocks;
      at.tiles = token_tiles * (block + 1) / token_blocks - at.tile;
      if (kind == Kind::kCodes) {
        pack_codes(part, at, scratch);
      } else {
        pack_pieces(part, at, scratch);
      }
      for (const PartRows& rows : group) multiply(kind, {rows, at, scratch});
    }
  }
}

}  // namespace

void matmul_rows_amx(std::span<const PartRows> share) {
  const Scratch scratch{matmul_scratch(kScratchBytes)};
  while (!share.empty()) {
    const MatmulPart& first = *share.front().part;
    const Kind kind = kind_of(first);
    std::size_t count = 1;
    if (kind == Kind::kVectors) {
      matmul_rows_avx512(share.first(count));
    } else {
      while (count < share.size() && kind_of(*share[count].part) == kind &&
             same_activations(first, *share[count].part)) {
        ++count;
      }
      multiply_group(kind, share.first(count), scratch);
    }
    share = share.subspan(count);
  }
}

}  // namespace kernelpath::kernels::cpu
