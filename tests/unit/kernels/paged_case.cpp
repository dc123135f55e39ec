#include "paged_case.h"

#include "kernels/cpu/append.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/team.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace kernelpath::testing {

namespace cpu = kernels::cpu;

attention::Geometry heads(std::int64_t num_heads, std::int64_t num_kv_heads, std::int64_t head_dim,
                          std::optional<std::int64_t> v_head_dim) {
  return {.num_heads = num_heads,
          .num_kv_heads = num_kv_heads,
          .head_dim = head_dim,
          .v_head_dim = v_head_dim.value_or(head_dim),
          .softmax_scale = 1.0F / std::sqrt(static_cast<float>(head_dim))};
}

PagedCase::PagedCase(const attention::Geometry& given, std::vector<Lengths> lengths,
                     const Storage& stored, unsigned seed)
    : geometry(given), storage(stored) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const auto values = [&](std::int64_t count) {
    std::vector<float> out(static_cast<std::size_t>(count));
    for (float& value : out) value = normal(random);
    return out;
  };
  for (const Lengths& request : lengths) {
    const std::int64_t rows = request.seq_len * geometry.num_kv_heads;
    add_request(request, {.q = values(request.queries * geometry.num_heads * geometry.head_dim),
                          .k = values(rows * geometry.head_dim),
                          .v = values(rows * geometry.v_head_dim)});
  }
  make_block_table(seed);
  fill();
}

PagedCase::PagedCase(const attention::Geometry& given, const Lengths& lengths,
                     const Storage& stored, Values values)
    : geometry(given), storage(stored) {
  add_request(lengths, std::move(values));
  make_block_table(1);
  fill();
}

void PagedCase::add_request(const Lengths& lengths, Values values) {
  query_start.push_back(query_start.back() + static_cast<std::int32_t>(lengths.queries));
  seq_lens.push_back(static_cast<std::int32_t>(lengths.seq_len));
  q.insert(q.end(), values.q.begin(), values.q.end());
  k.push_back(std::move(values.k));
  v.push_back(std::move(values.v));
}

void PagedCase::make_block_table(unsigned seed) {
  std::int64_t longest = 1;
  for (const std::int32_t length : seq_lens) longest = std::max<std::int64_t>(longest, length);
  block_table_stride = (longest + storage.page_size - 1) / storage.page_size;
  block_table.resize(seq_lens.size() * static_cast<std::size_t>(block_table_stride));
  std::iota(block_table.begin(), block_table.end(), 0);
  std::mt19937 random(seed + 1);
  std::shuffle(block_table.begin(), block_table.end(), random);
}

void PagedCase::fill() {
  const std::int64_t pages = *std::max_element(block_table.begin(), block_table.end()) + 1;
  const auto make = [&](std::int64_t dim, float scale, auto& bytes, auto& scales) {
    const kv::PageLayout layout{.order = storage.layout,
                                .type = storage.type,
                                .page_size = storage.page_size,
                                .num_heads = geometry.num_kv_heads,
                                .head_dim = dim};
    bytes.assign(static_cast<std::size_t>(pages * layout.page_data_bytes()), std::byte{0xFF});
    scales.assign(static_cast<std::size_t>(pages * layout.page_scale_bytes()), std::byte{0xFF});
    return kv::paged_rows(layout, bytes.data(), scales.data(), scale);
  };
  k_rows_ = make(geometry.head_dim, storage.k_scale, k_bytes_, k_scales_);
  v_rows_ = make(geometry.v_head_dim, storage.v_scale, v_bytes_, v_scales_);
  for (std::size_t r = 0; r < seq_lens.size(); ++r) {
    const std::int32_t* table =
        block_table.data() + static_cast<std::int64_t>(r) * block_table_stride;
    std::vector<std::int64_t> slots(static_cast<std::size_t>(seq_lens[r]), -1);
    for (std::int64_t position = 0; position < seq_lens[r]; ++position) {
      if (!shard.holds(position)) continue;
      slots[static_cast<std::size_t>(position)] =
          kv::slot_of(table, shard.slots_before(position), storage.page_size);
    }
    cpu::paged_append(cpu::Team{}, {.num_tokens = seq_lens[r],
                                    .num_kv_heads = geometry.num_kv_heads,
                                    .head_dim = geometry.head_dim,
                                    .v_head_dim = geometry.v_head_dim,
                                    .k = k[r].data(),
                                    .v = v[r].data(),
                                    .slot_mapping = slots.data(),
                                    .page_size = storage.page_size,
                                    .k_rows = k_rows_,
                                    .v_rows = v_rows_});
  }
}

attention::AttentionParams PagedCase::params(Output& output) const {
  const auto rows = static_cast<std::size_t>(query_start.back() * geometry.num_heads);
  // NaN, so that rows that nobody writes are found.
  output.o.assign(rows * static_cast<std::size_t>(geometry.v_head_dim),
                  std::numeric_limits<float>::quiet_NaN());
  output.lse.assign(rows, std::numeric_limits<float>::quiet_NaN());
  attention::AttentionParams params;
  params.geometry = geometry;
  params.batch = {.num_requests = static_cast<std::int64_t>(seq_lens.size()),
                  .query_start = query_start.data(),
                  .seq_lens = seq_lens.data(),
                  .block_table = block_table.data(),
                  .block_table_stride = block_table_stride,
                  .page_size = storage.page_size};
  params.shard = shard;
  params.k = k_rows_;
  params.v = v_rows_;
  params.q = q.data();
  params.o = output.o.data();
  params.lse.data = output.lse.data();
  params.sinks = sinks.empty() ? nullptr : sinks.data();
  params.selected = selected.empty() ? nullptr : selected.data();
  params.selected_stride = selected_stride;
  return params;
}

Output PagedCase::run(cpu::Isa isa, int threads) {
  Output output;
  const attention::AttentionParams call = params(output);
  cpu::TeamPool pool(threads);
  cpu::AttentionWorkspace workspace(threads);
  pool.run([&](const cpu::Team& team) { cpu::paged_attention(team, isa, call, workspace); });
  return output;
}

namespace {

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;  // infinities too
    const double apart = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    largest =
        std::max(largest, std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart);
  }
  return largest;
}

}  // namespace

Difference difference(const Output& a, const Output& b) {
  return {.o = largest_difference(a.o, b.o), .lse = largest_difference(a.lse, b.lse)};
}

std::vector<cpu::Isa> isas() {
  std::vector<cpu::Isa> out;
  for (const cpu::Isa isa : cpu::kIsas) {
    if (cpu::has_isa(isa)) out.push_back(isa);
  }
  return out;
}

}  // namespace kernelpath::testing
