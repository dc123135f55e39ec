// Stand-in until the paged kernels are there.
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/index.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace kernelpath::kernels::cpu {

void CpuOps::append(const attention::AppendParams& p) {
  const auto [begin, end] = team_.share(p.num_tokens);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t slot = p.slot_mapping[i];
    if (slot < 0) continue;
    const auto put = [&](const attention::PagedRows& rows, const float* from, std::int64_t stride,
                         std::int64_t dim) {
      if (stride == 0) stride = p.num_kv_heads * dim;
      for (std::int64_t h = 0; h < p.num_kv_heads; ++h) {
        const std::int64_t at = slot / p.page_size * rows.page_stride +
                                slot % p.page_size * rows.token_stride + h * rows.head_stride;
        std::memcpy(rows.data + at * 4, from + i * stride + h * dim,
                    static_cast<std::size_t>(dim) * 4);
      }
    };
    put(p.k_rows, p.k, p.k_stride, p.head_dim);
    if (p.v_head_dim > 0) put(p.v_rows, p.v, p.v_stride, p.v_head_dim);
  }
  team_.barrier();
}

void CpuOps::attention(const attention::AttentionParams& p) {
  const attention::Geometry& g = p.geometry;
  const std::int64_t tokens = p.batch.query_start[p.batch.num_requests];
  const auto [begin, end] = team_.share(tokens * g.num_heads);
  for (std::int64_t item = begin; item < end; ++item) {
    const std::int64_t token = item / g.num_heads;
    const std::int64_t head = item % g.num_heads;
    const std::int64_t kv_head = head / (g.num_heads / g.num_kv_heads);
    IndexParams ip;
    ip.batch = p.batch;
    const IndexQuery query = index_query(ip, token);
    const std::int64_t pos = query.keys - 1;
    const std::int32_t* const table =
        p.batch.block_table + query.request * p.batch.block_table_stride;
    const auto row = [&](const attention::PagedRows& rows, std::int64_t t) {
      return reinterpret_cast<const float*>(rows.data) +
             table[t / p.batch.page_size] * rows.page_stride +
             t % p.batch.page_size * rows.token_stride + kv_head * rows.head_stride;
    };
    std::vector<std::int64_t> keys;
    const auto visible = [&](std::int64_t t) {
      if (t > pos) return false;
      if (g.window > 0 && t <= pos - g.window) return false;
      return g.chunk <= 0 || t / g.chunk == pos / g.chunk;
    };
    if (p.selected != nullptr) {
      for (std::int64_t j = 0; j < p.selected_stride; ++j) {
        const std::int32_t t = p.selected[token * p.selected_stride + j];
        if (t >= 0 && visible(t)) keys.push_back(t);
      }
    } else {
      for (std::int64_t t = 0; t <= pos; ++t) {
        if (visible(t)) keys.push_back(t);
      }
    }
    const float* const q =
        p.q + token * (p.q_stride == 0 ? g.num_heads * g.head_dim : p.q_stride) + head * g.head_dim;
    std::vector<double> s;
    double m = p.sinks == nullptr ? -std::numeric_limits<double>::infinity()
                                  : static_cast<double>(p.sinks[head]);
    for (const std::int64_t t : keys) {
      const float* const k = row(p.k, t);
      double sum = 0;
      for (std::int64_t i = 0; i < g.head_dim; ++i) {
        sum += static_cast<double>(q[i]) * static_cast<double>(k[i]);
      }
      sum *= static_cast<double>(g.softmax_scale);
      if (g.softcap > 0) {
        const auto c = static_cast<double>(g.softcap);
        sum = c * std::tanh(sum / c);
      }
      s.push_back(sum);
      m = std::max(m, sum);
    }
    double total = p.sinks == nullptr ? 0 : std::exp(static_cast<double>(p.sinks[head]) - m);
    std::vector<double> o(static_cast<std::size_t>(g.v_head_dim));
    for (std::size_t j = 0; j < keys.size(); ++j) {
      const double w = std::exp(s[j] - m);
      total += w;
      const float* const v = row(p.v, keys[j]);
      for (std::size_t i = 0; i < o.size(); ++i) o[i] += w * static_cast<double>(v[i]);
    }
    float* const out = p.o + token * (p.o_stride == 0 ? g.num_heads * g.v_head_dim : p.o_stride) +
                       head * g.v_head_dim;
    for (std::size_t i = 0; i < o.size(); ++i) out[i] = static_cast<float>(o[i] / total);
  }
  team_.barrier();
}

}  // namespace kernelpath::kernels::cpu
