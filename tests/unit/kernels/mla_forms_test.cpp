// Latent attention has two forms: absorbed queries over the latent rows, and ordinary attention
// over keys and values that are expanded from them. Both are the same function.
#include "attention/backend_table.h"
#include "attention/layers.h"
#include "one_thread.h"
#include "paged_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

namespace kernelpath::testing {
namespace {

namespace cpu = kernels::cpu;
using attention::MlaAttention;

constexpr std::int64_t kHeads = 3;
constexpr attention::MlaDims kDims = {.q_lora_rank = 0,
                                      .kv_lora_rank = 48,
                                      .qk_nope_head_dim = 32,
                                      .qk_rope_head_dim = 16,
                                      .v_head_dim = 24};
constexpr std::int64_t kRow = 48 + 16;
constexpr std::int64_t kQ = 32 + 16;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

std::vector<float> random(std::int64_t count, std::mt19937& generator) {
  std::normal_distribution<float> normal(0.0F, 0.3F);
  std::vector<float> out(at(count));
  for (float& value : out) value = normal(generator);
  return out;
}

// kv_b_proj by head: w_uk [heads, nope, latent] and w_uv [heads, v, latent].
struct Expansion {
  std::vector<float> w_uk;
  std::vector<float> w_uv;

  // sum over the latent of w[head, row, :] * latent
  static float dot(const std::vector<float>& w, std::int64_t rows, std::int64_t head,
                   std::int64_t row, const float* latent) {
    double out = 0;
    const float* const weights = w.data() + (head * rows + row) * kDims.kv_lora_rank;
    for (std::int64_t i = 0; i < kDims.kv_lora_rank; ++i) {
      out += static_cast<double>(weights[i]) * static_cast<double>(latent[i]);
    }
    return static_cast<float>(out);
  }
};

// [W_UK^T q_nope ; q_rope] of every token and head.
std::vector<float> absorbed(const std::vector<float>& q, std::int64_t tokens,
                            const Expansion& expansion) {
  std::vector<float> out(at(tokens * kHeads * kRow));
  for (std::int64_t i = 0; i < tokens * kHeads; ++i) {
    const std::int64_t head = i % kHeads;
    for (std::int64_t c = 0; c < kDims.kv_lora_rank; ++c) {
      double sum = 0;
      for (std::int64_t d = 0; d < kDims.qk_nope_head_dim; ++d) {
        const std::int64_t w = (head * kDims.qk_nope_head_dim + d) * kDims.kv_lora_rank + c;
        sum += static_cast<double>(expansion.w_uk[at(w)]) * static_cast<double>(q[at(i * kQ + d)]);
      }
      out[at(i * kRow + c)] = static_cast<float>(sum);
    }
    for (std::int64_t d = 0; d < kDims.qk_rope_head_dim; ++d) {
      out[at(i * kRow + kDims.kv_lora_rank + d)] = q[at(i * kQ + kDims.qk_nope_head_dim + d)];
    }
  }
  return out;
}

// Keys and values of all heads from the latent rows of one request.
void expand(const std::vector<float>& rows, const Expansion& expansion, std::vector<float>& k,
            std::vector<float>& v) {
  for (std::int64_t t = 0; t < static_cast<std::int64_t>(rows.size()) / kRow; ++t) {
    const float* const row = rows.data() + t * kRow;
    for (std::int64_t head = 0; head < kHeads; ++head) {
      for (std::int64_t d = 0; d < kDims.qk_nope_head_dim; ++d) {
        k.push_back(Expansion::dot(expansion.w_uk, kDims.qk_nope_head_dim, head, d, row));
      }
      k.insert(k.end(), row + kDims.kv_lora_rank, row + kRow);
      for (std::int64_t d = 0; d < kDims.v_head_dim; ++d) {
        v.push_back(Expansion::dot(expansion.w_uv, kDims.v_head_dim, head, d, row));
      }
    }
  }
}

TEST(MlaForms, AbsorbedAndExpanded_GiveTheSame) {
  const attention::LayerRequest request{
      .geometry = {.num_heads = kHeads, .num_kv_heads = kHeads, .softmax_scale = 0.2F},
      .mla = kDims};
  std::mt19937 generator(7);
  const Expansion expansion{random(kHeads * 32 * 48, generator),
                            random(kHeads * 24 * 48, generator)};
  for (const cpu::Isa isa : isas()) {
    const auto layer =
        MlaAttention::make(attention::backend_row(attention::BackendId::kFused), request);
    ASSERT_TRUE(layer) << layer.error().message;
    // A whole prompt, a chunk of one, and a token behind one.
    PagedCase paged(mqa_geometry(request.geometry, kDims), {{300, 300}, {7, 40}, {1, 270}}, {});
    const std::int64_t tokens = paged.query_start.back();
    const std::vector<float> q = random(tokens * kHeads * kQ, generator);
    const std::vector<float> q_absorbed = absorbed(q, tokens, expansion);
    std::vector<float> k;
    std::vector<float> v;
    std::vector<std::int32_t> first;
    for (const std::vector<float>& rows : paged.k) {
      first.push_back(static_cast<std::int32_t>(v.size() / at(kHeads * kDims.v_head_dim)));
      expand(rows, expansion, k, v);
    }
    attention::MetadataBuilder builder = layer->metadata_builder();
    const auto metadata = builder.build(0, {.query_start = paged.query_start,
                                            .seq_lens = paged.seq_lens,
                                            .block_table = paged.block_table,
                                            .block_table_stride = paged.block_table_stride,
                                            .page_size = paged.storage.page_size});
    ASSERT_TRUE(metadata);
    OneThread kernels(isa);
    Output rows_of_cache;
    const attention::PagedRows rows = paged.params(rows_of_cache).k;
    std::vector<float> latent(at(tokens * kHeads * kDims.kv_lora_rank));
    layer->forward_mqa(kernels, *metadata,
                       {.q = q_absorbed.data(), .o = latent.data(), .rows = rows});
    std::vector<float> expanded(at(tokens * kHeads * kDims.v_head_dim));
    layer->forward_mha(
        kernels, *metadata,
        {.q = q.data(), .o = expanded.data(), .k = k.data(), .v = v.data(), .first = first.data()});
    float largest = 0.0F;
    for (std::int64_t i = 0; i < tokens * kHeads; ++i) {
      const float* const own = latent.data() + i * kDims.kv_lora_rank;
      for (std::int64_t d = 0; d < kDims.v_head_dim; ++d) {
        const float absorbed_value =
            Expansion::dot(expansion.w_uv, kDims.v_head_dim, i % kHeads, d, own);
        const float value = expanded[at(i * kDims.v_head_dim + d)];
        ASSERT_NEAR(absorbed_value, value, 3e-5F) << cpu::isa_name(isa) << " row " << i;
        largest = std::max(largest, std::abs(value));
      }
    }
    EXPECT_GT(largest, 0.1F);
  }
}

}  // namespace
}  // namespace kernelpath::testing
