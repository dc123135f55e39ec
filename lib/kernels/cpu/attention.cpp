#include "kernels/cpu/attention.h"

#include "base/assert.h"
#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/attention_unit.h"
#include "kernels/cpu/reference/attention.h"

#include <algorithm>
#include <span>

namespace kernelpath::kernels::cpu {
namespace {

using attention::AttentionParams;
using attention::AttentionPlan;
using attention::SplitPart;
using attention::WorkItem;
using Share = AttentionWorkspace::Share;

const AttentionUnit& unit_of(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAmx) return attention_unit_amx();
  if (isa == Isa::kAvx512) return attention_unit_avx512();
  if (isa == Isa::kAvx2) return attention_unit_avx2();
#endif
  assertion_failed("an instruction set with an attention unit", __FILE__, __LINE__);
}

// What every thread of a call works on.
struct Call {
  const Team& team;
  const AttentionParams& params;
  const AttentionUnit& unit;
  const AttentionPlan& plan;
  std::span<const SplitPart> parts;
  float* states = nullptr;
  std::int64_t stride = 0;  // padded(v_head_dim)

  [[nodiscard]] RowStates states_of(const SplitPart& part, std::int64_t tile) const {
    const std::int64_t rows = plan.items[part.item].rows();
    return states_at(states + state_floats(part.first_state + tile * rows, stride), rows, stride);
  }
};

const SplitPart* part_of(const Call& call, std::size_t item, std::int64_t first_tile) {
  const auto found = std::ranges::find_if(call.parts, [&](const SplitPart& part) {
    return part.item == item && part.first_tile == first_tile;
  });
  return found == call.parts.end() ? nullptr : &*found;
}

// This thread's tiles of all items, in the order of the plan.
void find_shares(const Call& call, std::vector<Share>& shares) {
  shares.clear();
  for (std::size_t index = 0; index < call.plan.items.size(); ++index) {
    const WorkItem& item = call.plan.items[index];
    Share share{.item = &item,
                .first = call.plan.tile_begin(item, call.team.thread, call.team.threads),
                .last = call.plan.tile_begin(item, call.team.thread + 1, call.team.threads)};
    const bool empty_item = item.tiles() == 0;
    const bool mine = static_cast<std::int64_t>(index) % call.team.threads == call.team.thread;
    if (empty_item ? !mine : share.first >= share.last) continue;
    if (share.first != item.first_tile || share.last != item.last_tile) {
      share.part = part_of(call, index, share.first);
      KERNELPATH_ASSERT(share.part != nullptr);
    }
    shares.push_back(share);
  }
}

// Whether two shares read the same tokens for different KV heads.
bool side_by_side(const Share& a, const Share& b) {
  return a.item->request == b.item->request && a.item->first_row == b.item->first_row &&
         a.item->kv_head != b.item->kv_head && a.first == b.first && a.last == b.last;
}

// The share's state over its tiles so far, unless it keeps one for each tile.
RowStates total_of(const Call& call, const TileRunner& runner, const Share& share,
                   std::size_t slot) {
  return share.part == nullptr ? runner.total(slot) : call.states_of(*share.part, 0);
}

// Runs tile `tile` of the shares of a group, slot by slot, and asks for `after` at the end.
void run_tiles(const Call& call, TileRunner& runner, std::span<const Share> group,
               std::int64_t tile, const ItemTile& after) {
  for (std::size_t slot = 0; slot < group.size(); ++slot) {
    const Share& share = group[slot];
    const ItemTile next =
        slot + 1 < group.size() ? ItemTile{.item = group[slot + 1].item, .tile = tile} : after;
    if (share.part != nullptr && share.first != share.item->first_tile) {
      runner.run(slot, tile, call.states_of(*share.part, tile - share.first), next);
    } else {
      runner.fold(slot, tile, total_of(call, runner, share, slot), next);
    }
  }
}

// Shares that lie side by side, tile by tile; `after` is what comes behind them.
void run_group(const Call& call, TileRunner& runner, std::span<const Share> group,
               const ItemTile& after) {
  for (std::size_t slot = 0; slot < group.size(); ++slot) {
    runner.begin(slot, *group[slot].item);
    if (group[slot].first == group[slot].item->first_tile) {
      clear_states(group[slot].item->rows(), total_of(call, runner, group[slot], slot));
    }
  }
  for (std::int64_t tile = group[0].first; tile < group[0].last; ++tile) {
    const bool last = tile + 1 == group[0].last;
    run_tiles(call, runner, group, tile,
              last ? after : ItemTile{.item = group[0].item, .tile = tile + 1});
  }
  for (std::size_t slot = 0; slot < group.size(); ++slot) {
    if (group[slot].part != nullptr) continue;
    for (std::int64_t row = 0; row < group[slot].item->rows(); ++row) {
      finish_row(call.params, *group[slot].item, row, runner.total(slot));
    }
  }
}

void run_shares(const Call& call, TileRunner& runner, std::span<const Share> shares) {
  while (!shares.empty()) {
    std::size_t count = 1;
    while (count < std::min(shares.size(), TileRunner::kSlots) &&
           side_by_side(shares[count - 1], shares[count])) {
      ++count;
    }
    const std::span<const Share> group = shares.first(count);
    shares = shares.subspan(count);
    ItemTile after;
    if (!shares.empty() && shares[0].first < shares[0].last) {
      after = {.item = shares[0].item, .tile = shares[0].first};
    }
    run_group(call, runner, group, after);
  }
}

RowStates row_of(const RowStates& states, std::int64_t row) {
  return {.maximum = states.maximum + row,
          .sum = states.sum + row,
          .acc = states.acc + row * states.stride,
          .stride = states.stride};
}

// Merges a row of an item; `parts` are the item's, the folded one first.
void merge_row(const Call& call, std::span<const SplitPart> parts, std::int64_t row) {
  const RowStates all = call.states_of(parts.front(), 0);
  const RowStates total = row_of(all, row);
  for (const SplitPart& part : parts.subspan(1)) {
    for (std::int64_t tile = 0; tile < part.last_tile - part.first_tile; ++tile) {
      fold_states(call.unit, 1, row_of(call.states_of(part, tile), row), total);
    }
  }
  finish_row(call.params, call.plan.items[parts.front().item], row, all);
}

// Merges the items that several threads read; rows are handed out in turn. The parts of an item
// follow each other.
void merge_share(const Call& call) {
  std::int64_t turn = 0;
  for (std::size_t head = 0; head < call.parts.size();) {
    const WorkItem& item = call.plan.items[call.parts[head].item];
    std::size_t end = head + 1;
    while (end < call.parts.size() && call.parts[end].item == call.parts[head].item) ++end;
    for (std::int64_t row = 0; row < item.rows(); ++row, ++turn) {
      if (turn % call.team.threads != call.team.thread) continue;
      merge_row(call, call.parts.subspan(head, end - head), row);
    }
    head = end;
  }
}

// The given plan, or one of this call's own.
const AttentionPlan& plan_for(const AttentionParams& params, AttentionWorkspace::Own& own) {
  constexpr attention::PlanShape kShape{.tile_tokens = kTileTokens, .block_rows = kBlockRows};
  if (params.plan != nullptr && params.selected == nullptr) {
    KERNELPATH_ASSERT(params.plan->shape == kShape);
    return *params.plan;
  }
  attention::make_plan(params, kShape, own.plan);
  return own.plan;
}

}  // namespace

void paged_attention(const Team& team, Isa isa, const AttentionParams& params,
                     AttentionWorkspace& workspace) {
  if (isa == Isa::kReference || params.reference) {
    reference_attention(team, params);
    return;
  }
  AttentionWorkspace::Own& own = workspace.own(team.thread);
  const AttentionPlan& plan = plan_for(params, own);
  own.parts = attention::split_parts(plan, team.threads);
  const std::int64_t stride = padded(params.geometry.v_head_dim);
  if (!own.parts.empty()) {
    // Every thread finds the same parts, and with them the same barrier.
    const auto floats =
        static_cast<std::size_t>(state_floats(attention::split_states(plan, own.parts), stride));
    if (team.thread == 0 && workspace.states().size() < floats) workspace.states().resize(floats);
    team.barrier();
  }
  const Call call{.team = team,
                  .params = params,
                  .unit = unit_of(isa),
                  .plan = plan,
                  .parts = own.parts,
                  .states = workspace.states().data(),
                  .stride = stride};
  TileRunner runner(params, call.unit, own.bytes);
  find_shares(call, own.shares);
  run_shares(call, runner, own.shares);
  team.barrier();
  if (own.parts.empty()) return;
  merge_share(call);
  team.barrier();
}

}  // namespace kernelpath::kernels::cpu
