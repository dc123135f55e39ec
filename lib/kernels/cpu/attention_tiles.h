#pragma once

#include "attention/params.h"
#include "attention/plan.h"
#include "kernels/cpu/attention_unit.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kernelpath::kernels::cpu {

// Softmax state of the rows of a block: maximum and sum a row, and the weighted values.
struct RowStates {
  float* maximum = nullptr;  // [rows]
  float* sum = nullptr;      // [rows]
  float* acc = nullptr;      // [rows, stride]
  std::int64_t stride = 0;
};

// States of `rows` rows that follow each other in memory from `data` on: acc, then maxima, then
// sums.
constexpr std::int64_t state_floats(std::int64_t rows, std::int64_t stride) {
  return rows * (stride + 2);
}
RowStates states_at(float* data, std::int64_t rows, std::int64_t stride);

// Runs tiles of work items: finds the rows of their tokens in the cache, and hands them to a unit.
class TileRunner {
 public:
  // `bytes` is work memory that the runner enlarges as needed and uses while it lives.
  TileRunner(const attention::AttentionParams& params, const AttentionUnit& unit,
             std::vector<std::byte>& bytes);

  // Makes `item` the one whose tiles run, up to `last_tile`. Copies its query rows.
  void begin(const attention::WorkItem& item, std::int64_t last_tile);
  // The state of the item's rows over one tile alone.
  void run(std::int64_t tile, const RowStates& out);
  // Folds the tiles [first, last) in order into `total`, whose state is that of no keys at first.
  void fold(std::int64_t first, std::int64_t last, const RowStates& total);

  [[nodiscard]] RowStates total() const { return total_; }

 private:
  struct Query {
    std::int64_t token = 0;           // row of q
    std::int64_t position = 0;        // in the request
    attention::SlotRange slots = {};  // that it sees
  };
  // Where the tokens of a tile lie.
  struct Places {
    std::int64_t tile = -1;
    attention::SlotRange slots = {};
    std::array<const std::byte*, kTileTokens> k = {};
    std::array<const std::byte*, kTileTokens> k_scales = {};
    std::array<const std::byte*, kTileTokens> v = {};
    std::array<const std::byte*, kTileTokens> v_scales = {};
  };
  [[nodiscard]] Query query_of(std::int64_t row) const;
  [[nodiscard]] std::int64_t group() const;
  [[nodiscard]] attention::SlotRange seen_slots(std::int64_t tile) const;
  void place_tile(std::int64_t tile, Places& places) const;
  void place_run(std::int64_t token, std::int64_t slot, std::int64_t count, Places& places) const;
  void gather_run(std::int64_t tile, TileJob& job);
  void gather_selected(std::int64_t tile, TileJob& job);

  const attention::AttentionParams& params_;
  const AttentionUnit& unit_;
  attention::WorkItem item_;
  float* q_ = nullptr;
  float* scores_ = nullptr;
  float* wide_ = nullptr;
  RowStates total_;
  RowStates one_;
  std::array<TokenRange, kBlockRows> ranges_{};
  std::int64_t last_tile_ = 0;
  std::array<Places, 2> places_{};
  std::size_t current_ = 0;  // the places of the tile that runs; the others are those of the next
};

// Folds the state of later keys into that of the keys before them, row by row.
void fold_states(const AttentionUnit& unit, std::int64_t rows, const RowStates& later,
                 const RowStates& total);

// Writes output and lse of a row from its complete state; the sink joins here, once.
void finish_row(const attention::AttentionParams& params, const attention::WorkItem& item,
                std::int64_t row, const RowStates& total);

// The state of no keys.
void clear_states(std::int64_t rows, const RowStates& states);

}  // namespace kernelpath::kernels::cpu
