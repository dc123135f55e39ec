#include "kernels/cpu/attention.h"

#include "attention_case.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/merge.h"
#include "kernels/cpu/team.h"
#include "kv/layout.h"
#include "paged_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The kernels of every instruction set against attention outputs that were computed in float64
// elsewhere. What "equal" means stands in the index file.
namespace kernelpath::testing {
namespace {

namespace cpu = kernels::cpu;
using attention::LogBase;

// |got - wanted| <= tolerance * (1 + |wanted|) for the output, the absolute part alone for the lse.
void expect_close(const Output& got, const Output& wanted, float tolerance) {
  ASSERT_EQ(got.o.size(), wanted.o.size());
  ASSERT_EQ(got.lse.size(), wanted.lse.size());
  for (std::size_t i = 0; i < got.o.size(); ++i) {
    ASSERT_NEAR(got.o[i], wanted.o[i], tolerance * (1 + std::abs(wanted.o[i]))) << "o " << i;
  }
  for (std::size_t i = 0; i < got.lse.size(); ++i) {
    ASSERT_NEAR(got.lse[i], wanted.lse[i], tolerance) << "lse " << i;
  }
}

float tolerance_of(std::string_view name) {
  const Case tolerances(Case(golden_index().root).member("tolerance"));
  if (name == "large_logits") return 1e-4F;
  return Case(tolerances.member("float32_kernel")).number("o_abs");
}

TEST(GoldenAttention, ContiguousCases_AreEqualInEveryStorage) {
  const std::vector<Case> cases = cases_of("attention");
  EXPECT_GE(cases.size(), 20U);
  for (const Case& recorded : cases) {
    SCOPED_TRACE(recorded.text("name"));
    const Output wanted = recorded.output();
    for (const std::int64_t page_size : {1, 16, 48}) {
      const auto layout = page_size == 16 ? attention::KvLayout::kHnd : attention::KvLayout::kNhd;
      PagedCase paged(
          recorded.geometry(), recorded.lengths(), {.layout = layout, .page_size = page_size},
          {.q = recorded.tensor("q"), .k = recorded.tensor("k"), .v = recorded.tensor("v")});
      if (recorded.flag("has_sinks")) paged.sinks = recorded.tensor("sinks");
      for (const cpu::Isa isa : isas()) {
        SCOPED_TRACE(cpu::isa_name(isa));
        expect_close(paged.run(isa, 2), wanted, tolerance_of(recorded.text("name")));
      }
    }
  }
}

// bf16 and f16 round the inputs: the recorded outputs bound the sum of both errors.
TEST(GoldenAttention, ContiguousCases_AreCloseInHalves) {
  for (const Case& recorded : cases_of("attention")) {
    if (recorded.text("name") == "large_logits") continue;  // rounding moves its peaked weights
    SCOPED_TRACE(recorded.text("name"));
    for (const auto type : {attention::DataType::kBf16, attention::DataType::kF16}) {
      PagedCase paged(
          recorded.geometry(), recorded.lengths(), {.type = type},
          {.q = recorded.tensor("q"), .k = recorded.tensor("k"), .v = recorded.tensor("v")});
      if (recorded.flag("has_sinks")) paged.sinks = recorded.tensor("sinks");
      expect_close(paged.run(isas().back()), recorded.output(), 0.02F);
    }
  }
}

TEST(GoldenAttention, PagedBatch_ReadsThroughItsTables) {
  const std::vector<Case> cases = cases_of("paged_decode");
  EXPECT_GE(cases.size(), 1U);
  for (const Case& recorded : cases) {
    SCOPED_TRACE(recorded.text("name"));
    const std::vector<float> q = recorded.tensor("q");
    std::vector<float> k = recorded.tensor("k_cache");
    std::vector<float> v = recorded.tensor("v_cache");
    std::vector<std::int32_t> seq_lens;
    for (const json::Value& length : recorded.member("seq_lens").items()) {
      seq_lens.push_back(static_cast<std::int32_t>(length.as_integer()));
    }
    const auto tables = recorded.member("block_tables").items();
    std::size_t stride = 0;
    for (const json::Value& table : tables) stride = std::max(stride, table.items().size());
    // What no table names is never read: a page far outside.
    std::vector<std::int32_t> block_table(tables.size() * stride, 1 << 30);
    for (std::size_t r = 0; r < tables.size(); ++r) {
      const auto pages = tables[r].items();
      for (std::size_t i = 0; i < pages.size(); ++i) {
        block_table[r * stride + i] = static_cast<std::int32_t>(pages[i].as_integer());
      }
    }
    std::vector<std::int32_t> query_start;
    for (std::size_t r = 0; r <= tables.size(); ++r) {
      query_start.push_back(static_cast<std::int32_t>(r));
    }
    const std::int64_t head_dim = recorded.integer("head_dim");
    const kv::PageLayout layout{.page_size = recorded.integer("block_size"),
                                .num_heads = recorded.integer("num_kv_heads"),
                                .head_dim = head_dim};
    const Output wanted = recorded.output();
    for (const cpu::Isa isa : isas()) {
      SCOPED_TRACE(cpu::isa_name(isa));
      Output got{.o = std::vector<float>(wanted.o.size()),
                 .lse = std::vector<float>(wanted.lse.size())};
      attention::AttentionParams params;
      params.geometry = {.num_heads = recorded.integer("num_q_heads"),
                         .num_kv_heads = layout.num_heads,
                         .head_dim = head_dim,
                         .v_head_dim = head_dim,
                         .softmax_scale = recorded.number("scale")};
      params.batch = {.num_requests = static_cast<std::int64_t>(seq_lens.size()),
                      .query_start = query_start.data(),
                      .seq_lens = seq_lens.data(),
                      .block_table = block_table.data(),
                      .block_table_stride = static_cast<std::int64_t>(stride),
                      .page_size = layout.page_size};
      params.k = kv::paged_rows(layout, reinterpret_cast<std::byte*>(k.data()));
      params.v = kv::paged_rows(layout, reinterpret_cast<std::byte*>(v.data()));
      params.q = q.data();
      params.o = got.o.data();
      params.lse.data = got.lse.data();
      cpu::AttentionWorkspace workspace(1);
      cpu::paged_attention(cpu::Team{}, isa, params, workspace);
      expect_close(got, wanted, tolerance_of(recorded.text("name")));
    }
  }
}

// y[row, :] = W x[row, :] for the heads of MLA's two projections.
std::vector<float> absorb(const std::vector<float>& w, const std::vector<float>& x,
                          std::int64_t heads, std::int64_t from, std::int64_t to, bool transposed) {
  const auto rows = static_cast<std::int64_t>(x.size()) / (heads * from);
  std::vector<float> y(static_cast<std::size_t>(rows * heads * to));
  for (std::int64_t row = 0; row < rows * heads; ++row) {
    const float* matrix = w.data() + row % heads * from * to;
    for (std::int64_t i = 0; i < to; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < from; ++j) {
        sum += static_cast<double>(matrix[transposed ? j * to + i : i * from + j]) *
               static_cast<double>(x[static_cast<std::size_t>(row * from + j)]);
      }
      y[static_cast<std::size_t>(row * to + i)] = static_cast<float>(sum);
    }
  }
  return y;
}

// [rows, a + b] from [rows, a] and [rows, b].
std::vector<float> join(const std::vector<float>& left, const std::vector<float>& right,
                        std::int64_t a, std::int64_t b) {
  std::vector<float> out;
  for (std::size_t row = 0; row * static_cast<std::size_t>(a) < left.size(); ++row) {
    const auto at = static_cast<std::int64_t>(row);
    out.insert(out.end(), left.begin() + at * a, left.begin() + (at + 1) * a);
    out.insert(out.end(), right.begin() + at * b, right.begin() + (at + 1) * b);
  }
  return out;
}

TEST(GoldenAttention, MlaCases_AreOneHeadOverTheLatent) {
  const std::vector<Case> cases = cases_of("mla");
  EXPECT_GE(cases.size(), 3U);
  for (const Case& recorded : cases) {
    SCOPED_TRACE(recorded.text("name"));
    const std::int64_t heads = recorded.integer("num_heads");
    const std::int64_t nope = recorded.integer("qk_nope_head_dim");
    const std::int64_t rope = recorded.integer("qk_rope_head_dim");
    const std::int64_t latent = recorded.integer("kv_lora_rank");
    const std::vector<float> q =
        join(absorb(recorded.tensor("w_uk"), recorded.tensor("q_nope"), heads, nope, latent, true),
             recorded.tensor("q_rope"), latent, rope);
    const attention::Geometry geometry{.num_heads = heads,
                                       .num_kv_heads = 1,
                                       .head_dim = latent + rope,
                                       .v_head_dim = latent,
                                       .softmax_scale = recorded.number("scale")};
    const std::vector<float> rows =
        join(recorded.tensor("c"), recorded.tensor("k_rope"), latent, rope);
    PagedCase paged(geometry, recorded.lengths(), {},
                    {.q = q, .k = rows, .v = recorded.tensor("c")});
    for (const cpu::Isa isa : isas()) {
      SCOPED_TRACE(cpu::isa_name(isa));
      Output got;
      attention::AttentionParams params = paged.params(got);
      params.v = params.k;  // the values are the first part of the same rows
      cpu::AttentionWorkspace workspace(1);
      cpu::paged_attention(cpu::Team{}, isa, params, workspace);
      expect_close(got, recorded.output("o_latent"), tolerance_of(recorded.text("name")));
      got.o = absorb(recorded.tensor("w_uv"), got.o, heads, latent, recorded.integer("v_head_dim"),
                     false);
      expect_close(got, recorded.output(), 5e-5F);  // the projection adds its own rounding
    }
  }
}

// What the shards of a cache say, from kernels and as recorded, merged in either base.
template <LogBase Base>
Output merge(const Case& recorded, const std::vector<float>& o, const std::vector<float>& lse) {
  const std::int64_t rows = recorded.integer("num_q_heads");
  const std::int64_t dim = recorded.integer("head_dim");
  std::vector<cpu::AttentionPart<Base>> parts;
  for (std::int64_t shard = 0; shard < recorded.integer("shards"); ++shard) {
    parts.push_back({.o = o.data() + shard * rows * dim,
                     .lse = attention::ConstLse<Base>(lse.data() + shard * rows)});
  }
  Output merged{.o = std::vector<float>(static_cast<std::size_t>(rows * dim)),
                .lse = std::vector<float>(static_cast<std::size_t>(rows))};
  cpu::merge_attention<Base>(parts, {.rows = rows, .dim = dim}, nullptr,
                             {.o = merged.o.data(), .lse = {merged.lse.data()}});
  return merged;
}

TEST(GoldenAttention, RecordedShards_MergeInEitherBase) {
  const std::vector<Case> cases = cases_of("dcp_merge");
  EXPECT_GE(cases.size(), 2U);
  for (const Case& recorded : cases) {
    SCOPED_TRACE(recorded.text("name"));
    const std::vector<float> o = recorded.tensor("shard_o");
    const Output wanted = recorded.output();
    expect_close(merge<LogBase::kE>(recorded, o, recorded.tensor("shard_lse")), wanted, 2e-5F);
    Output base2 = merge<LogBase::k2>(recorded, o, recorded.tensor("shard_lse_base2"));
    for (float& lse : base2.lse) lse *= 0.69314718056F;
    expect_close(base2, wanted, 2e-5F);
    // The recorded mistake: the numbers of one base under the name of the other.
    const Output mistaken = merge<LogBase::kE>(recorded, o, recorded.tensor("shard_lse_base2"));
    EXPECT_GT(difference(mistaken, wanted).o, 0.01);
  }
}

TEST(GoldenAttention, ShardedCaches_GiveTheRecordedShards) {
  for (const Case& recorded : cases_of("dcp_merge")) {
    // Contiguous shards are the interleaving that is as long as a shard.
    const std::int64_t interleave =
        recorded.member("interleave").is_null()
            ? static_cast<std::int64_t>(recorded.member("shard_tokens").items()[0].items().size())
            : recorded.integer("interleave");
    SCOPED_TRACE(recorded.text("name"));
    const std::int64_t head_dim = recorded.integer("head_dim");
    const attention::Geometry geometry{.num_heads = recorded.integer("num_q_heads"),
                                       .num_kv_heads = recorded.integer("num_kv_heads"),
                                       .head_dim = head_dim,
                                       .v_head_dim = head_dim,
                                       .softmax_scale = recorded.number("scale")};
    const std::vector<float> shard_o = recorded.tensor("shard_o");
    const std::vector<float> shard_lse = recorded.tensor("shard_lse");
    const std::size_t o_size = shard_o.size() / 4;
    const std::size_t lse_size = shard_lse.size() / 4;
    PagedCase paged(
        geometry, {.queries = 1, .seq_len = recorded.integer("kv_len")}, {},
        {.q = recorded.tensor("q"), .k = recorded.tensor("k"), .v = recorded.tensor("v")});
    for (std::size_t rank = 0; rank < 4; ++rank) {
      paged.shard = {.rank = static_cast<std::int64_t>(rank), .count = 4, .interleave = interleave};
      paged.fill();
      const auto o = shard_o.begin() + static_cast<std::int64_t>(rank * o_size);
      const auto lse = shard_lse.begin() + static_cast<std::int64_t>(rank * lse_size);
      const Output wanted{.o = {o, o + static_cast<std::int64_t>(o_size)},
                          .lse = {lse, lse + static_cast<std::int64_t>(lse_size)}};
      for (const cpu::Isa isa : isas()) {
        SCOPED_TRACE(cpu::isa_name(isa));
        expect_close(paged.run(isa), wanted, 2e-5F);
      }
    }
  }
}

}  // namespace
}  // namespace kernelpath::testing
