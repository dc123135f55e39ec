#include "kernels/cpu/index.h"

#include "kernels/cpu/stored_value.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace kernelpath::kernels::cpu {
namespace {

void read_key(const IndexParams& p, std::int64_t request, std::int64_t position, float* out) {
  const std::int64_t first = row_element(p.k, p.batch, request, position, 0);
  if (p.k.type == attention::DataType::kF32 && p.k.scale == 1.0F) {
    std::memcpy(out, p.k.data + first * 4, static_cast<std::size_t>(p.head_dim) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < p.head_dim; ++i) {
    out[i] = stored_element(p.k, first + i) * p.k.scale;
  }
}

float dot(const float* a, const float* b, std::int64_t count) {
  float sum = 0.0F;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

IndexQuery index_query(const IndexParams& p, std::int64_t token) {
  const std::int32_t* const starts = p.batch.query_start;
  const auto* const behind =
      std::upper_bound(starts, starts + p.batch.num_requests + 1, static_cast<std::int32_t>(token));
  const std::int64_t request = behind - starts - 1;
  const std::int64_t left = starts[request + 1] - token;
  return {.token = token, .request = request, .keys = p.batch.seq_lens[request] - left + 1};
}

void score_index_keys(const IndexParams& p, const IndexQuery& query, std::int64_t begin,
                      std::int64_t end, float* scores) {
  std::vector<float> key(static_cast<std::size_t>(p.head_dim));
  const float* const weights = p.weights + query.token * p.heads;
  const float* const q = p.q + query.token * p.heads * p.head_dim;
  for (std::int64_t t = begin; t < end; ++t) {
    read_key(p, query.request, t, key.data());
    float score = 0.0F;
    for (std::int64_t j = 0; j < p.heads; ++j) {
      const float similarity = dot(q + j * p.head_dim, key.data(), p.head_dim) * p.scale;
      score += weights[j] * std::max(similarity, 0.0F);
    }
    scores[t] = score;
  }
}

void select_index_keys(const IndexParams& p, const IndexQuery& query, const float* scores) {
  std::int32_t* const out = p.selected + query.token * p.top_k;
  const std::int64_t count = std::min(p.top_k, query.keys);
  std::fill(out + count, out + p.top_k, -1);
  if (count == query.keys) {
    std::iota(out, out + count, 0);
    return;
  }
  std::vector<std::int32_t> order(static_cast<std::size_t>(query.keys));
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](std::int32_t a, std::int32_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(order.begin(), middle, order.end(), before);
  std::sort(order.begin(), middle);
  std::copy(order.begin(), middle, out);
}

}  // namespace kernelpath::kernels::cpu
