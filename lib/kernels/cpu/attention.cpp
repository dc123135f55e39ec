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

const AttentionUnit& unit_of(Isa isa) {
#if defined(__x86_64__)
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

// This thread's tiles of an item.
void run_share(const Call& call, TileRunner& runner, std::size_t index) {
  const WorkItem& item = call.plan.items[index];
  const std::int64_t first = call.plan.tile_begin(item, call.team.thread, call.team.threads);
  const std::int64_t last = call.plan.tile_begin(item, call.team.thread + 1, call.team.threads);
  const bool empty_item = item.tiles() == 0;
  const bool mine = static_cast<std::int64_t>(index) % call.team.threads == call.team.thread;
  if (empty_item ? !mine : first >= last) return;
  runner.begin(item, last);
  if (first == item.first_tile && last == item.last_tile) {
    const RowStates total = runner.total();
    runner.fold(first, last, total);
    for (std::int64_t row = 0; row < item.rows(); ++row) {
      finish_row(call.params, item, row, total);
    }
    return;
  }
  const SplitPart* part = part_of(call, index, first);
  KERNELPATH_ASSERT(part != nullptr);
  if (first == item.first_tile) {
    runner.fold(first, last, call.states_of(*part, 0));
    return;
  }
  for (std::int64_t tile = first; tile < last; ++tile) {
    runner.run(tile, call.states_of(*part, tile - first));
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
  for (std::size_t item = 0; item < plan.items.size(); ++item) run_share(call, runner, item);
  team.barrier();
  if (own.parts.empty()) return;
  merge_share(call);
  team.barrier();
}

}  // namespace kernelpath::kernels::cpu
