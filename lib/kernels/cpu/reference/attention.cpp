#include "kernels/cpu/reference/attention.h"

#include "attention/plan.h"
#include "kernels/cpu/stored_value.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace kernelpath::kernels::cpu {
namespace {

using attention::AttentionParams;

// One query token of one request.
struct Query {
  std::int64_t request = 0;
  std::int64_t token = 0;  // row of q
  std::int64_t position = 0;
  std::int64_t seq_len = 0;
};

// The slots that the query sees, in the order in which they are summed.
void find_slots(const AttentionParams& params, const Query& query,
                std::vector<std::int64_t>& slots) {
  const attention::SlotRange range =
      attention::visible_slots(params.geometry, params.shard, query.position, query.seq_len);
  slots.clear();
  if (params.selected == nullptr) {
    for (std::int64_t slot = range.first; slot < range.last; ++slot) slots.push_back(slot);
    return;
  }
  const std::int32_t* list = params.selected + query.token * params.selected_stride;
  for (std::int64_t i = 0; i < params.selected_stride; ++i) {
    if (list[i] < 0 || !params.shard.holds(list[i])) continue;
    const std::int64_t slot = params.shard.slots_before(list[i]);
    if (slot >= range.first && slot < range.last) slots.push_back(slot);
  }
}

double score(const AttentionParams& params, const Query& query, std::int64_t head,
             std::int64_t slot) {
  const attention::Geometry& geometry = params.geometry;
  const std::int64_t q_stride =
      params.q_stride != 0 ? params.q_stride : geometry.num_heads * geometry.head_dim;
  const float* q = params.q + query.token * q_stride + head * geometry.head_dim;
  const std::int64_t kv_head = head / (geometry.num_heads / geometry.num_kv_heads);
  const std::int64_t row = row_element(params.k, params.batch, query.request, slot, kv_head);
  double dot = 0;
  for (std::int64_t d = 0; d < geometry.head_dim; ++d) {
    dot += static_cast<double>(q[d]) * static_cast<double>(stored_element(params.k, row + d));
  }
  const double scaled =
      dot * static_cast<double>(params.k.scale) * static_cast<double>(geometry.softmax_scale);
  if (geometry.softcap <= 0.0F) return scaled;
  const auto cap = static_cast<double>(geometry.softcap);
  return cap * std::tanh(scaled / cap);
}

// Softmax over `scores` (changed to weights) and the sink; returns the lse.
double soften(const AttentionParams& params, std::int64_t head, std::vector<double>& scores) {
  double maximum = -std::numeric_limits<double>::infinity();
  for (const double s : scores) maximum = std::max(maximum, s);
  if (params.sinks != nullptr) {
    maximum = std::max(maximum, static_cast<double>(params.sinks[head]));
  }
  double sum = 0;
  for (double& s : scores) {
    s = std::exp(s - maximum);
    sum += s;
  }
  if (params.sinks != nullptr) {
    sum += std::exp(static_cast<double>(params.sinks[head]) - maximum);
  }
  for (double& s : scores) s /= sum;
  return sum == 0 ? -std::numeric_limits<double>::infinity() : maximum + std::log(sum);
}

struct Scratch {
  std::vector<std::int64_t> slots;
  std::vector<double> weights;
  std::vector<double> sums;
};

void attend(const AttentionParams& params, const Query& query, std::int64_t head,
            Scratch& scratch) {
  const attention::Geometry& geometry = params.geometry;
  const std::int64_t kv_head = head / (geometry.num_heads / geometry.num_kv_heads);
  scratch.weights.clear();
  for (const std::int64_t slot : scratch.slots) {
    scratch.weights.push_back(score(params, query, head, slot));
  }
  const double lse = soften(params, head, scratch.weights);
  scratch.sums.assign(static_cast<std::size_t>(geometry.v_head_dim), 0.0);
  for (std::size_t i = 0; i < scratch.slots.size(); ++i) {
    const std::int64_t row =
        row_element(params.v, params.batch, query.request, scratch.slots[i], kv_head);
    for (std::int64_t d = 0; d < geometry.v_head_dim; ++d) {
      scratch.sums[static_cast<std::size_t>(d)] +=
          scratch.weights[i] * static_cast<double>(stored_element(params.v, row + d));
    }
  }
  const std::int64_t o_stride =
      params.o_stride != 0 ? params.o_stride : geometry.num_heads * geometry.v_head_dim;
  float* o = params.o + query.token * o_stride + head * geometry.v_head_dim;
  for (std::int64_t d = 0; d < geometry.v_head_dim; ++d) {
    o[d] = static_cast<float>(scratch.sums[static_cast<std::size_t>(d)] *
                              static_cast<double>(params.v.scale));
  }
  if (params.lse.data != nullptr) {
    params.lse.data[query.token * geometry.num_heads + head] = static_cast<float>(lse);
  }
}

}  // namespace

void reference_attention(const Team& team, const AttentionParams& params) {
  Scratch scratch;
  const std::int64_t heads = params.geometry.num_heads;
  for (std::int64_t request = 0; request < params.batch.num_requests; ++request) {
    const std::int64_t begin = params.batch.query_start[request];
    const std::int64_t end = params.batch.query_start[request + 1];
    for (std::int64_t token = begin; token < end; ++token) {
      const std::int64_t seq_len = params.batch.seq_lens[request];
      const Query query{.request = request,
                        .token = token,
                        .position = seq_len - (end - token),
                        .seq_len = seq_len};
      find_slots(params, query, scratch.slots);
      for (std::int64_t head = 0; head < heads; ++head) {
        if ((token * heads + head) % team.threads != team.thread) continue;
        attend(params, query, head, scratch);
      }
    }
  }
  team.barrier();
}

}  // namespace kernelpath::kernels::cpu
