#pragma once

#include "attention/data_type.h"

#include <cstddef>
#include <cstdint>

// What the units compiled for one instruction set implement of attention. They see plain data only:
// a function of a shared header that such a unit instantiated could be the copy that the linker
// keeps for every processor.
namespace kernelpath::kernels::cpu {

inline constexpr std::int64_t kTileTokens = 256;
inline constexpr std::int64_t kBlockRows = 64;
// Lanes of the widest unit; rows of work memory are padded to it.
inline constexpr std::int64_t kMaxLanes = 16;

constexpr std::int64_t padded(std::int64_t dim) {
  return (dim + kMaxLanes - 1) / kMaxLanes * kMaxLanes;
}

// Tokens [first, last) of a tile.
struct TokenRange {
  std::int32_t first = 0;
  std::int32_t last = 0;
};

// The keys or the values of a tile: where the row of each token lies.
struct TileRows {
  const std::byte* const* data = nullptr;    // [tokens]
  const std::byte* const* scales = nullptr;  // [tokens]; kNvfp4 only
  attention::DataType type = attention::DataType::kF32;
  std::int64_t dim = 0;
  std::int64_t row_bytes = 0;  // of a stored row, without scales
  std::int64_t stride = 0;     // padded(dim)
};

// One tile of keys for a block of query rows: for each row with softmax state (maximum, sum, acc)
//   score = q . k * scale, capped; p = exp(score - maximum); sum = Σ p; acc = Σ p v
// over the tokens in its range. A row with an empty range gets (-inf, 0, 0). Tokens outside a row's
// range never enter its sums, whatever their rows hold.
struct TileJob {
  std::int64_t rows = 0;
  std::int64_t tokens = 0;  // at most kTileTokens
  // Place of token 0 among the columns of the tile. Columns decide the order of summation.
  std::int64_t first_column = 0;
  TileRows k = {};
  TileRows v = {};
  // The tokens of the tile that comes next: asked for while this one is worked on.
  const std::byte* const* next_k = nullptr;  // [next_tokens]
  const std::byte* const* next_v = nullptr;  // [next_tokens]
  std::int64_t next_tokens = 0;
  float scale = 1.0F;
  float softcap = 0.0F;
  const TokenRange* ranges = nullptr;  // [rows]
  const float* q = nullptr;            // [rows, k.stride], zeros behind k.dim
  float* maximum = nullptr;            // [rows]
  float* sum = nullptr;                // [rows]
  float* acc = nullptr;                // [rows, v.stride]
  float* scores = nullptr;             // [rows, kScoreStride]: work memory
  float* wide = nullptr;               // [kWideTokens, larger stride]: work memory
};

inline constexpr std::int64_t kWideTokens = 32;
inline constexpr std::int64_t kScoreStride = kTileTokens + kMaxLanes;

struct AttentionUnit {
  void (*tile)(const TileJob& job) = nullptr;
  // The softmax of a tile whose scores are there: maximum, sum, and probabilities in their place.
  void (*soften)(const TileJob& job) = nullptr;
  // Folds the state of a later tile into that of the tiles before it:
  //   acc = acc * scale + add * add_scale over `dim` floats, a multiple of kMaxLanes.
  void (*rescale_add)(float* acc, float scale, const float* add, float add_scale,
                      std::int64_t dim) = nullptr;
};

const AttentionUnit& attention_unit_avx2();
const AttentionUnit& attention_unit_avx512();
const AttentionUnit& attention_unit_amx();

}  // namespace kernelpath::kernels::cpu
