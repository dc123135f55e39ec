#include "kernels/cpu/index.h"

#include "base/float_types.h"
#include "kv/layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace kernelpath::kernels::cpu {
namespace {

template <class T>
T load(const std::byte* data, std::int64_t index) {
  T out;
  std::memcpy(&out, data + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return out;
}

float stored_value(const attention::PagedRows& rows, std::int64_t element) {
  switch (rows.type) {
    case attention::DataType::kF32:
      return load<float>(rows.data, element);
    case attention::DataType::kBf16:
      return bf16_to_f32(load<std::uint16_t>(rows.data, element));
    case attention::DataType::kF16:
      return f16_to_f32(load<std::uint16_t>(rows.data, element));
    case attention::DataType::kFp8E4m3:
      return e4m3_to_f32(load<std::uint8_t>(rows.data, element));
    case attention::DataType::kFp8E5m2:
      return e5m2_to_f32(load<std::uint8_t>(rows.data, element));
    case attention::DataType::kNvfp4: {
      const std::uint8_t pair = load<std::uint8_t>(rows.data, element / 2);
      const float scale =
          e4m3_to_f32(load<std::uint8_t>(rows.block_scales, element / attention::kNvfp4Block));
      return scale * e2m1_to_f32(static_cast<std::uint8_t>(element % 2 == 0 ? pair : pair >> 4U));
    }
  }
  return 0.0F;
}

void read_key(const IndexParams& p, const std::int32_t* block_table, std::int64_t position,
              float* out) {
  const std::int64_t page = block_table[position / p.batch.page_size];
  const std::int64_t first =
      page * p.k.page_stride + position % p.batch.page_size * p.k.token_stride;
  if (p.k.type == attention::DataType::kF32) {
    std::memcpy(out, p.k.data + first * 4, static_cast<std::size_t>(p.head_dim) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < p.head_dim; ++i) out[i] = stored_value(p.k, first + i) * p.k.scale;
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
  const std::int32_t* const table =
      p.batch.block_table + query.request * p.batch.block_table_stride;
  const float* const weights = p.weights + query.token * p.heads;
  const float* const q = p.q + query.token * p.heads * p.head_dim;
  for (std::int64_t t = begin; t < end; ++t) {
    read_key(p, table, t, key.data());
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
