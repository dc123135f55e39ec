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

// A tile of a work item; no item: none.
struct ItemTile {
  const attention::WorkItem* item = nullptr;
  std::int64_t tile = 0;

  friend bool operator==(const ItemTile&, const ItemTile&) = default;
};

// Runs tiles of work items: finds the rows of their tokens in the cache, and hands them to a unit.
// Several items may be under way, each in a slot: the KV heads of a request lie side by side in its
// pages, and are read together.
class TileRunner {
 public:
  static constexpr std::size_t kSlots = 4;

  // `bytes` is work memory that the runner enlarges as needed and uses while it lives.
  TileRunner(const attention::AttentionParams& params, const AttentionUnit& unit,
             std::vector<std::byte>& bytes);

  // Makes `item` the one whose tiles run in `slot`. Copies its query rows.
  void begin(std::size_t slot, const attention::WorkItem& item);
  // The state of the slot's rows over one tile alone. `next` is what will be run after it: its rows
  // are asked for meanwhile.
  void run(std::size_t slot, std::int64_t tile, const RowStates& out, const ItemTile& next);
  // Folds a tile into `total`, whose state is that of the tiles before it.
  void fold(std::size_t slot, std::int64_t tile, const RowStates& total, const ItemTile& next);

  // Room for the state of a slot's rows.
  [[nodiscard]] RowStates total(std::size_t slot) const { return slots_[slot].total; }

 private:
  struct Query {
    std::int64_t token = 0;           // row of q
    std::int64_t position = 0;        // in the request
    attention::SlotRange slots = {};  // that it sees
  };
  struct Slot {
    const attention::WorkItem* item = nullptr;
    float* q = nullptr;
    RowStates total = {};
  };
  // Where the tokens of a tile lie.
  struct Places {
    ItemTile of;
    attention::SlotRange slots = {};
    std::array<const std::byte*, kTileTokens> k = {};
    std::array<const std::byte*, kTileTokens> k_scales = {};
    std::array<const std::byte*, kTileTokens> v = {};
    std::array<const std::byte*, kTileTokens> v_scales = {};
  };
  [[nodiscard]] Query query_of(const attention::WorkItem& item, std::int64_t row) const;
  [[nodiscard]] std::int64_t group() const;
  [[nodiscard]] attention::SlotRange seen_slots(const ItemTile& of) const;
  void place_tile(const ItemTile& of, Places& places) const;
  void place_run(std::int64_t token, std::int64_t slot, std::int64_t count, Places& places) const;
  void gather_run(const ItemTile& of, const ItemTile& next, TileJob& job);
  void gather_selected(const ItemTile& of, TileJob& job);

  const attention::AttentionParams& params_;
  const AttentionUnit& unit_;
  std::array<Slot, kSlots> slots_{};
  float* scores_ = nullptr;
  float* wide_ = nullptr;
  RowStates one_;
  std::array<TokenRange, kBlockRows> ranges_{};
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
