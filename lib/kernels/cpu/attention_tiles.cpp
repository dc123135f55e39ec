#include "kernels/cpu/attention_tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace kernelpath::kernels::cpu {

using attention::AttentionParams;
using attention::PagedRows;
using attention::WorkItem;

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

TileRows tile_rows(const PagedRows& rows, std::int64_t dim, const std::byte* const* data,
                   const std::byte* const* scales) {
  return {.data = data,
          .scales = rows.type == attention::DataType::kNvfp4 ? scales : nullptr,
          .type = rows.type,
          .dim = dim,
          .row_bytes = attention::data_bytes(rows.type, dim),
          .stride = padded(dim)};
}

}  // namespace

RowStates states_at(float* data, std::int64_t rows, std::int64_t stride) {
  return {.maximum = data + rows * stride,
          .sum = data + rows * (stride + 1),
          .acc = data,
          .stride = stride};
}

void clear_states(std::int64_t rows, const RowStates& states) {
  std::fill_n(states.maximum, rows, kMinusInfinity);
  std::fill_n(states.sum, rows, 0.0F);
  std::fill_n(states.acc, rows * states.stride, 0.0F);
}

void fold_states(const AttentionUnit& unit, std::int64_t rows, const RowStates& later,
                 const RowStates& total) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float before = total.maximum[row];
    const float after = later.maximum[row];
    // No keys in the tile: also what keeps -inf - -inf out.
    if (after == kMinusInfinity && later.sum[row] == 0.0F) continue;
    const float maximum = std::max(before, after);
    const float scale = std::exp(before - maximum);
    const float add_scale = std::exp(after - maximum);
    total.maximum[row] = maximum;
    total.sum[row] = total.sum[row] * scale + later.sum[row] * add_scale;
    unit.rescale_add(total.acc + row * total.stride, scale, later.acc + row * later.stride,
                     add_scale, total.stride);
  }
}

void finish_row(const AttentionParams& params, const WorkItem& item, std::int64_t row,
                const RowStates& total) {
  const attention::Geometry& geometry = params.geometry;
  const std::int64_t group = geometry.num_heads / geometry.num_kv_heads;
  const std::int64_t flat = item.first_row + row;
  const std::int64_t token = params.batch.query_start[item.request] + flat / group;
  const std::int64_t head = item.kv_head * group + flat % group;
  float maximum = total.maximum[row];
  float sum = total.sum[row];
  float scale = 1.0F;
  if (params.sinks != nullptr) {
    const float sink = params.sinks[head];
    const float highest = std::max(maximum, sink);
    scale = std::exp(maximum - highest);
    sum = sum * scale + std::exp(sink - highest);
    maximum = highest;
  }
  const std::int64_t o_stride =
      params.o_stride != 0 ? params.o_stride : geometry.num_heads * geometry.v_head_dim;
  float* o = params.o + token * o_stride + head * geometry.v_head_dim;
  // A row without keys: 0, whatever the caches hold, and the lse of its sink alone, or -inf.
  const bool none = total.sum[row] == 0.0F && total.maximum[row] == kMinusInfinity;
  const float factor = none ? 0.0F : params.v.scale * scale / sum;
  const float* acc = total.acc + row * total.stride;
  for (std::int64_t d = 0; d < geometry.v_head_dim; ++d) o[d] = none ? 0.0F : acc[d] * factor;
  if (params.lse.data == nullptr) return;
  params.lse.data[token * geometry.num_heads + head] =
      sum == 0.0F ? kMinusInfinity : maximum + std::log(sum);
}

TileRunner::TileRunner(const AttentionParams& params, const AttentionUnit& unit,
                       std::vector<std::byte>& bytes)
    : params_(params), unit_(unit) {
  const std::int64_t k_stride = padded(params.geometry.head_dim);
  const std::int64_t v_stride = padded(params.geometry.v_head_dim);
  const std::int64_t q_floats = kBlockRows * k_stride;
  const std::int64_t score_floats = kBlockRows * kScoreStride;
  const std::int64_t wide_floats = kWideTokens * std::max(k_stride, v_stride);
  const std::int64_t states = state_floats(kBlockRows, v_stride);
  const std::int64_t floats =
      static_cast<std::int64_t>(kSlots) * (q_floats + states) + score_floats + wide_floats + states;
  constexpr std::size_t kAlignment = 64;
  const std::size_t needed = static_cast<std::size_t>(floats) * sizeof(float);
  if (bytes.size() < needed + kAlignment) bytes.resize(needed + kAlignment);
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::size_t skipped = (kAlignment - address % kAlignment) % kAlignment;
  auto* place = reinterpret_cast<float*>(bytes.data() + skipped);
  const auto take = [&](std::int64_t count) { return std::exchange(place, place + count); };
  scores_ = take(score_floats);
  wide_ = take(wide_floats);
  one_ = states_at(take(states), kBlockRows, v_stride);
  for (Slot& slot : slots_) {
    slot.q = take(q_floats);
    slot.total = states_at(take(states), kBlockRows, v_stride);
  }
}

std::int64_t TileRunner::group() const {
  return params_.geometry.num_heads / params_.geometry.num_kv_heads;
}

TileRunner::Query TileRunner::query_of(const WorkItem& item, std::int64_t row) const {
  const attention::BatchView& batch = params_.batch;
  const std::int64_t query = row / group();
  const std::int64_t first = batch.query_start[item.request];
  const std::int64_t queries = batch.query_start[item.request + 1] - first;
  const std::int64_t seq_len = batch.seq_lens[item.request];
  const std::int64_t position = seq_len - queries + query;
  return {.token = first + query,
          .position = position,
          .slots = attention::visible_slots(params_.geometry, params_.shard, position, seq_len)};
}

void TileRunner::begin(std::size_t slot, const WorkItem& item) {
  slots_[slot].item = &item;
  const attention::Geometry& geometry = params_.geometry;
  const std::int64_t stride = padded(geometry.head_dim);
  const std::int64_t q_stride =
      params_.q_stride != 0 ? params_.q_stride : geometry.num_heads * geometry.head_dim;
  const std::int64_t first_token = params_.batch.query_start[item.request];
  for (std::int64_t row = 0; row < item.rows(); ++row) {
    const std::int64_t flat = item.first_row + row;
    const std::int64_t head = item.kv_head * group() + flat % group();
    const float* q =
        params_.q + (first_token + flat / group()) * q_stride + head * geometry.head_dim;
    float* copy = slots_[slot].q + row * stride;
    std::copy_n(q, geometry.head_dim, copy);
    std::fill(copy + geometry.head_dim, copy + stride, 0.0F);
  }
}

// Tokens [token, token + count) lie in the slots from `slot` on, all in one page.
void TileRunner::place_run(std::int64_t token, std::int64_t slot, std::int64_t count,
                           Places& places) const {
  const attention::BatchView& batch = params_.batch;
  const WorkItem& item = *places.of.item;
  const std::int64_t entry = slot / batch.page_size;
  const std::int64_t in_page = slot - entry * batch.page_size;
  const std::int64_t page = batch.block_table[item.request * batch.block_table_stride + entry];
  const auto place = [&](const PagedRows& rows, auto& data, auto& scales) {
    const std::int64_t element =
        page * rows.page_stride + in_page * rows.token_stride + item.kv_head * rows.head_stride;
    const std::byte* at = rows.data + attention::data_bytes(rows.type, element);
    const std::int64_t step = attention::data_bytes(rows.type, rows.token_stride);
    for (std::int64_t i = token; i < token + count; ++i, at += step) {
      data[static_cast<std::size_t>(i)] = at;
    }
    if (rows.type != attention::DataType::kNvfp4) return;
    const std::byte* scale = rows.block_scales + element / attention::kNvfp4Block;
    for (std::int64_t i = token; i < token + count; ++i) {
      scales[static_cast<std::size_t>(i)] = scale;
      scale += rows.token_stride / attention::kNvfp4Block;
    }
  };
  place(params_.k, places.k, places.k_scales);
  place(params_.v, places.v, places.v_scales);
}

// The slots of a tile that some row sees. Both ends of a query's range grow with its position, and
// the ranges of queries that follow each other leave nothing between them.
attention::SlotRange TileRunner::seen_slots(const ItemTile& of) const {
  const WorkItem& item = *of.item;
  const std::int64_t begin = of.tile * kTileTokens;
  const std::int64_t end = begin + kTileTokens;
  return {.first = std::clamp(query_of(item, item.first_row).slots.first, begin, end),
          .last = std::clamp(query_of(item, item.last_row - 1).slots.last, begin, end)};
}

void TileRunner::place_tile(const ItemTile& of, Places& places) const {
  places.of = of;
  places.slots = seen_slots(of);
  for (std::int64_t slot = places.slots.first; slot < places.slots.last;) {
    const std::int64_t page_end = (slot / params_.batch.page_size + 1) * params_.batch.page_size;
    const std::int64_t count = std::min(page_end, places.slots.last) - slot;
    place_run(slot - places.slots.first, slot, count, places);
    slot += count;
  }
}

void TileRunner::gather_run(const ItemTile& of, const ItemTile& next, TileJob& job) {
  const std::int64_t begin = of.tile * kTileTokens;
  const std::int64_t end = begin + kTileTokens;
  if (places_[1 - current_].of == of) current_ = 1 - current_;
  Places& here = places_[current_];
  if (here.of != of) place_tile(of, here);
  job.tokens = std::max<std::int64_t>(here.slots.last - here.slots.first, 0);
  const std::int64_t first = job.tokens > 0 ? here.slots.first : begin;
  job.first_column = first - begin;
  for (std::int64_t row = 0; row < job.rows; ++row) {
    const attention::SlotRange slots = query_of(*of.item, of.item->first_row + row).slots;
    ranges_[static_cast<std::size_t>(row)] = {
        .first = static_cast<std::int32_t>(std::clamp(slots.first, begin, end) - first),
        .last = static_cast<std::int32_t>(std::clamp(slots.last, begin, end) - first)};
  }
  if (next.item == nullptr) return;
  Places& coming = places_[1 - current_];
  place_tile(next, coming);
  job.next_k = coming.k.data();
  job.next_v = coming.v.data();
  job.next_tokens = std::max<std::int64_t>(coming.slots.last - coming.slots.first, 0);
}

// The tokens of a tile are entries of the query's list; those that it may not see are left out.
void TileRunner::gather_selected(const ItemTile& of, TileJob& job) {
  Places& here = places_[current_];
  here.of = of;
  const Query query = query_of(*of.item, of.item->first_row);
  const std::int64_t begin = of.tile * kTileTokens;
  const std::int64_t end = std::min(begin + kTileTokens, params_.selected_stride);
  const std::int32_t* list = params_.selected + query.token * params_.selected_stride;
  for (std::int64_t entry = begin; entry < end; ++entry) {
    const std::int64_t position = list[entry];
    if (position < 0 || !params_.shard.holds(position)) continue;
    const std::int64_t slot = params_.shard.slots_before(position);
    if (slot < query.slots.first || slot >= query.slots.last) continue;
    place_run(job.tokens++, slot, 1, here);
  }
  const TokenRange all{.first = 0, .last = static_cast<std::int32_t>(job.tokens)};
  std::fill_n(ranges_.begin(), job.rows, all);
}

void TileRunner::run(std::size_t slot, std::int64_t tile, const RowStates& out,
                     const ItemTile& next) {
  const attention::Geometry& geometry = params_.geometry;
  const ItemTile of{.item = slots_[slot].item, .tile = tile};
  TileJob job{
      .rows = of.item->rows(),
      .scale = geometry.softmax_scale * params_.k.scale,
      .softcap = geometry.softcap,
      .ranges = ranges_.data(),
      .q = slots_[slot].q,
      .maximum = out.maximum,
      .sum = out.sum,
      .acc = out.acc,
      .scores = scores_,
      .wide = wide_,
  };
  if (params_.selected != nullptr) {
    gather_selected(of, job);
  } else {
    gather_run(of, next, job);
  }
  const Places& here = places_[current_];
  job.k = tile_rows(params_.k, geometry.head_dim, here.k.data(), here.k_scales.data());
  job.v = tile_rows(params_.v, geometry.v_head_dim, here.v.data(), here.v_scales.data());
  unit_.tile(job);
}

void TileRunner::fold(std::size_t slot, std::int64_t tile, const RowStates& total,
                      const ItemTile& next) {
  run(slot, tile, one_, next);
  fold_states(unit_, slots_[slot].item->rows(), one_, total);
}

}  // namespace kernelpath::kernels::cpu
