#include "kernels/cpu/attention.h"

#include "base/float_types.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/team.h"
#include "kv/layout.h"
#include "paged_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace kernelpath::testing {
namespace {

namespace cpu = kernels::cpu;
using attention::DataType;
using attention::Geometry;
using attention::KvLayout;
using cpu::Isa;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The units that are compared with the reference.
std::vector<Isa> units() {
  std::vector<Isa> out = isas();
  std::erase(out, Isa::kReference);
  return out;
}

void expect_reference(PagedCase& paged, int threads = 1) {
  const Output wanted = paged.run(Isa::kReference);
  for (const Isa isa : units()) {
    SCOPED_TRACE(cpu::isa_name(isa));
    const Difference apart = difference(paged.run(isa, threads), wanted);
    EXPECT_LT(apart.o, 2e-5);
    EXPECT_LT(apart.lse, 2e-5);
  }
}

// The same bits; with AMX, where a tile of few rows or with a value that is no number has another
// order of its sums, nearly so.
void expect_same_rows(Isa isa, const std::vector<float>& got, const std::vector<float>& wanted) {
  if (isa == Isa::kAmx) {
    EXPECT_LT(difference({.o = got, .lse = {}}, {.o = wanted, .lse = {}}).o, 2e-5);
  } else {
    EXPECT_EQ(got, wanted) << cpu::isa_name(isa);
  }
}

TEST(PagedAttention, EveryTypeAndLayout_AgreesWithTheReference) {
  for (const DataType type : attention::kDataTypes) {
    for (const KvLayout layout : {KvLayout::kNhd, KvLayout::kHnd}) {
      SCOPED_TRACE(attention::data_type_name(type));
      PagedCase paged(heads(8, 2, 64), {{1, 300}, {3, 77}, {1, 1}},
                      {.type = type, .layout = layout, .k_scale = 0.75F, .v_scale = 1.5F});
      expect_reference(paged, 2);
    }
  }
}

// 80, 96, 40 and 20 leave a rest in registers of 16 or 8 lanes; V may be narrower than K.
TEST(PagedAttention, EveryHeadSize_AgreesWithTheReference) {
  for (const std::int64_t head_dim : {16, 20, 40, 64, 80, 96, 128, 192, 256}) {
    for (const DataType type : {DataType::kF32, DataType::kBf16, DataType::kFp8E4m3}) {
      SCOPED_TRACE(head_dim);
      Geometry geometry = heads(4, 2, head_dim);
      geometry.v_head_dim = std::max<std::int64_t>(head_dim - 12, 4);
      PagedCase paged(geometry, {{2, 70}}, {.type = type});
      expect_reference(paged);
    }
  }
}

// Prompts: more rows than a block holds, and than the tiles of AMX are for.
TEST(PagedAttention, ManyQueries_AgreeWithTheReference) {
  for (const std::int64_t head_dim : {20, 64, 80, 96, 256}) {
    for (const DataType type : {DataType::kF32, DataType::kBf16, DataType::kF16}) {
      SCOPED_TRACE(head_dim);
      Geometry geometry = heads(6, 2, head_dim);
      geometry.v_head_dim = head_dim - 4;
      geometry.window = head_dim == 96 ? 50 : 0;
      geometry.softcap = head_dim == 80 ? 2.0F : 0.0F;
      PagedCase paged(geometry, {{45, 333}, {17, 17}, {3, 40}, {4, 300}},
                      {.type = type, .page_size = 8, .k_scale = 1.25F, .v_scale = 0.5F});
      expect_reference(paged, 3);
    }
  }
}

// In an AMX tile a value that no number is would reach rows that do not see it.
TEST(PagedAttention, LaterValuesOfAPromptThatAreNoNumbers_StayThere) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    PagedCase clean(heads(4, 2, 64), {{40, 40}}, {});
    PagedCase broken = clean;
    std::fill_n(broken.v[0].end() - std::int64_t{2} * 64, 2 * 64, bad);
    std::fill_n(broken.k[0].end() - std::int64_t{2} * 64, 2 * 64, bad);
    broken.fill();
    for (const Isa isa : isas()) {
      const Output wanted = clean.run(isa);
      const Output got = broken.run(isa);
      const std::int64_t before = 39 * 4 * 64;
      expect_same_rows(isa, {got.o.begin(), got.o.begin() + before},
                       {wanted.o.begin(), wanted.o.begin() + before});
    }
  }
}

TEST(PagedAttention, EveryGroup_AgreesWithTheReference) {
  for (const std::int64_t group : {1, 3, 8, 40, 128}) {
    SCOPED_TRACE(group);
    PagedCase paged(heads(group * 2, 2, 64), {{5, 290}, {1, 20}}, {.type = DataType::kBf16});
    expect_reference(paged, 3);
  }
}

TEST(PagedAttention, Nvfp4_ReadsItsBlockScales) {
  PagedCase paged(heads(4, 2, 96), {{2, 50}}, {.type = DataType::kNvfp4, .k_scale = 0.01F});
  expect_reference(paged);
}

TEST(PagedAttention, WindowAndChunk_BeginInsidePagesAndTiles) {
  for (const std::int64_t size : {1, 7, 100, 255, 256, 257, 300}) {
    SCOPED_TRACE(size);
    Geometry geometry = heads(4, 2, 64);
    geometry.window = size;
    PagedCase windowed(geometry, {{1, 700}, {40, 613}}, {});
    expect_reference(windowed, 2);
    geometry.window = 0;
    geometry.chunk = size;
    PagedCase chunked(geometry, {{1, 700}, {40, 613}}, {});
    expect_reference(chunked, 2);
  }
}

TEST(PagedAttention, Softcap_FollowsTheScaleOfK) {
  Geometry geometry = heads(4, 2, 64);
  geometry.softcap = 2.0F;
  geometry.softmax_scale = 1.0F;
  PagedCase paged(geometry, {{3, 90}}, {.type = DataType::kFp8E5m2, .k_scale = 3.0F});
  expect_reference(paged);
  // The scale inside the cap is another function than the scale outside of it.
  const Output inside = paged.run(Isa::kReference);
  paged.geometry.softcap = 6.0F;
  EXPECT_GT(difference(paged.run(Isa::kReference), inside).o, 1e-3);
}

TEST(PagedAttention, Sinks_JoinOnceForAnyNumberOfThreads) {
  PagedCase paged(heads(8, 1, 64), {{1, 1500}, {2, 40}}, {});
  paged.sinks = {-1.0F, 0.0F, 1.0F, 5.0F, 7.0F, 9.0F, -30.0F, 30.0F};
  for (const int threads : {1, 2, 5}) expect_reference(paged, threads);
  const Output with = paged.run(Isa::kReference);
  paged.sinks.clear();
  EXPECT_GT(difference(paged.run(Isa::kReference), with).o, 1e-3);
}

TEST(PagedAttention, SelectedPositions_AreAllThatIsSeen) {
  PagedCase paged(heads(8, 1, 64), {{4, 900}, {1, 30}}, {});
  paged.selected_stride = 600;
  std::mt19937 random(3);
  for (std::size_t token = 0; token < 5; ++token) {
    const int seq_len = token < 4 ? 900 : 30;
    std::vector<std::int32_t> all(static_cast<std::size_t>(seq_len));
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), random);
    all.resize(600, -1);
    // Any order; positions after the query's own stay masked.
    paged.selected.insert(paged.selected.end(), all.begin(), all.end());
  }
  expect_reference(paged, 3);
}

TEST(PagedAttention, AllPositionsSelected_IsDenseAttentionToTheBit) {
  PagedCase paged(heads(8, 2, 64), {{1, 700}}, {.type = DataType::kBf16});
  for (const Isa isa : isas()) {
    paged.selected.clear();
    const Output dense = paged.run(isa);
    paged.selected_stride = 800;
    paged.selected.assign(800, -1);
    std::iota(paged.selected.begin(), paged.selected.begin() + 700, 0);
    const Output sparse = paged.run(isa, 2);
    EXPECT_EQ(dense.o, sparse.o);
    EXPECT_EQ(dense.lse, sparse.lse);
  }
}

TEST(PagedAttention, RowsWithoutKeys_AreZeroWithInfiniteLse) {
  for (const Isa isa : isas()) {
    SCOPED_TRACE(cpu::isa_name(isa));
    // The second request is a padded row of a graph: a query, no tokens.
    PagedCase paged(heads(4, 2, 64), {{1, 20}, {1, 0}}, {});
    const Output got = paged.run(isa, 2);
    for (std::size_t i = 4 * 64; i < got.o.size(); ++i) ASSERT_EQ(got.o[i], 0.0F);
    for (std::size_t i = 4; i < 8; ++i) ASSERT_EQ(got.lse[i], -kInfinity);
    EXPECT_TRUE(std::isfinite(got.lse[0]));
    paged.sinks = {1.0F, 2.0F, 3.0F, 4.0F};
    const Output with_sinks = paged.run(isa);
    for (std::size_t i = 4 * 64; i < got.o.size(); ++i) ASSERT_EQ(with_sinks.o[i], 0.0F);
    EXPECT_FLOAT_EQ(with_sinks.lse[6], 3.0F);
  }
}

// Page tails are NaN in every case here (PagedCase); also the tokens that a query must not see.
TEST(PagedAttention, NanInLaterTokens_StaysThere) {
  for (const DataType type : {DataType::kF32, DataType::kBf16, DataType::kFp8E4m3}) {
    PagedCase clean(heads(6, 2, 64), {{9, 270}}, {.type = type});
    PagedCase broken = clean;
    for (std::size_t i = 0; i < 2 * 64; ++i) {
      broken.k[0][broken.k[0].size() - 1 - i] = kNan;
      broken.v[0][broken.v[0].size() - 1 - i] = kNan;
    }
    broken.fill();
    for (const Isa isa : isas()) {
      SCOPED_TRACE(cpu::isa_name(isa));
      const Output wanted = clean.run(isa);
      const Output got = broken.run(isa);
      const auto before = static_cast<std::int64_t>(8 * 6 * 64);
      expect_same_rows(isa, {got.o.begin(), got.o.begin() + before},
                       {wanted.o.begin(), wanted.o.begin() + before});
      EXPECT_TRUE(std::isnan(got.o.back())) << "the last query does see it";
    }
  }
}

TEST(PagedAttention, NanBeforeAWindow_StaysThere) {
  Geometry geometry = heads(4, 2, 64);
  geometry.window = 40;
  PagedCase clean(geometry, {{2, 300}}, {});
  PagedCase broken = clean;
  std::fill_n(broken.k[0].begin(), 259 * 2 * 64, kNan);
  std::fill_n(broken.v[0].begin(), 259 * 2 * 64, kNan);
  broken.fill();
  for (const Isa isa : isas()) {
    EXPECT_EQ(clean.run(isa).o, broken.run(isa).o) << cpu::isa_name(isa);
  }
}

TEST(PagedAttention, PagesBeforeAWindow_AreNeverRead) {
  Geometry geometry = heads(4, 2, 64);
  geometry.window = 40;
  PagedCase paged(geometry, {{1, 300}}, {});
  const Output wanted = paged.run(Isa::kReference);
  // 300 - 40 = 260 is in page 16; those before were given back.
  std::fill_n(paged.block_table.begin(), 16, std::numeric_limits<std::int32_t>::max());
  for (const Isa isa : isas()) {
    EXPECT_LT(difference(paged.run(isa, 2), wanted).o, 2e-5) << cpu::isa_name(isa);
  }
}

// Same bits for a row whatever surrounds it.
TEST(PagedAttention, Threads_DoNotChangeABit) {
  PagedCase paged(heads(8, 2, 80), {{1, 3000}, {30, 700}, {1, 5}}, {.type = DataType::kBf16});
  paged.sinks.assign(8, 0.5F);
  for (const Isa isa : isas()) {
    const Output one = paged.run(isa, 1);
    for (const int threads : {2, 3, 7}) {
      const Output many = paged.run(isa, threads);
      EXPECT_EQ(one.o, many.o) << cpu::isa_name(isa) << ' ' << threads;
      EXPECT_EQ(one.lse, many.lse);
    }
  }
}

TEST(PagedAttention, BatchAndChunking_DoNotChangeABit) {
  const Geometry geometry = heads(6, 2, 64);
  PagedCase whole(geometry, {{600, 600}}, {});
  for (const Isa isa : isas()) {
    SCOPED_TRACE(cpu::isa_name(isa));
    const Output all = whole.run(isa, 2);
    // The last queries alone, beside another request.
    for (const std::int64_t queries : {1, 13, 64}) {
      PagedCase part(geometry, {{5, 90}, {queries, 600}}, {.layout = KvLayout::kHnd});
      part.k[1] = whole.k[0];
      part.v[1] = whole.v[0];
      part.fill();
      const std::int64_t row = 6 * 64;
      std::copy(whole.q.end() - queries * row, whole.q.end(), part.q.end() - queries * row);
      const Output got = part.run(isa, 3);
      expect_same_rows(isa, {got.o.end() - queries * row, got.o.end()},
                       {all.o.end() - queries * row, all.o.end()});
    }
  }
}

TEST(PagedAttention, StridedRows_AreReadAndWrittenInPlace) {
  PagedCase paged(heads(4, 2, 64), {{3, 40}}, {});
  const Output wanted = paged.run(Isa::kReference);
  // Q as the first part of fused rows, the output into wider rows.
  std::vector<float> q(3 * 600, kNan);
  for (std::int64_t token = 0; token < 3; ++token) {
    std::copy_n(paged.q.begin() + token * 256, 256, q.begin() + token * 600);
  }
  for (const Isa isa : isas()) {
    Output got;
    attention::AttentionParams params = paged.params(got);
    std::vector<float> o(3 * 300, -7.0F);
    params.q = q.data();
    params.q_stride = 600;
    params.o = o.data();
    params.o_stride = 300;
    params.lse.data = nullptr;
    cpu::AttentionWorkspace workspace(1);
    cpu::paged_attention(cpu::Team{}, isa, params, workspace);
    for (std::size_t token = 0; token < 3; ++token) {
      for (std::size_t i = 0; i < 256; ++i) {
        ASSERT_NEAR(o[token * 300 + i], wanted.o[token * 256 + i], 2e-5);
      }
      ASSERT_EQ(o[token * 300 + 256], -7.0F);
    }
  }
}

// The two codes that are no numbers must not be read as ±480.
TEST(PagedAttention, Fp8Nan_IsNoNumber) {
  PagedCase paged(heads(2, 1, 32), {{1, 3}}, {.type = DataType::kFp8E4m3});
  paged.v[0][40] = kNan;
  paged.fill();
  for (const Isa isa : isas()) {
    const Output got = paged.run(isa);
    EXPECT_TRUE(std::isnan(got.o[8])) << cpu::isa_name(isa);
    EXPECT_FALSE(std::isnan(got.o[9]));
  }
}

TEST(PagedAttention, EveryFp8Code_ReadsAsItsValue) {
  for (const DataType type : {DataType::kFp8E4m3, DataType::kFp8E5m2}) {
    // 16 tokens whose values are all codes, one after the other: attention to one token alone
    // gives that token's values.
    Geometry geometry = heads(1, 1, 16);
    geometry.window = 1;
    PagedCase paged(geometry, {{16, 16}}, {.type = type, .page_size = 16});
    std::vector<float> wanted(256);
    for (std::size_t code = 0; code < 256; ++code) {
      const auto byte = static_cast<std::uint8_t>(code);
      const float value = type == DataType::kFp8E4m3 ? e4m3_to_f32(byte) : e5m2_to_f32(byte);
      wanted[code] = std::isfinite(value) ? value : 0.0F;
    }
    paged.v[0] = wanted;
    paged.fill();
    for (const Isa isa : isas()) EXPECT_EQ(paged.run(isa).o, wanted) << cpu::isa_name(isa);
  }
}

// A cache of 8 GiB, of which the system keeps only what is touched: pages of 64 KiB beyond number
// 32,768 lie where 32-bit offsets do not reach.
TEST(PagedAttention, PagesBeyondFourGigabytes_AreReached) {
  const Geometry geometry = heads(4, 4, 64);
  const kv::PageLayout layout{.page_size = 64, .num_heads = 4, .head_dim = 64};
  ASSERT_EQ(layout.page_data_bytes(), 65536);
  constexpr std::int64_t kPages = 131072;
  const auto bytes = static_cast<std::size_t>(kPages * layout.page_data_bytes());
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no address space for a sparse mapping of 8 GiB";
  PagedCase paged(geometry, {{1, 100}}, {.page_size = 64});
  const Output wanted = paged.run(Isa::kReference);
  const std::vector<std::int32_t> far{131071, 40000};
  auto* data = static_cast<std::byte*>(memory);
  for (const Isa isa : isas()) {
    Output got;
    attention::AttentionParams params = paged.params(got);
    for (std::size_t page = 0; page < far.size(); ++page) {
      const auto from = paged.block_table[page] * layout.page_data_bytes();
      // K in the even pages' place, V one page before.
      std::memcpy(data + far[page] * layout.page_data_bytes(), params.k.data + from, 65536);
      std::memcpy(data + (far[page] - 1) * layout.page_data_bytes(), params.v.data + from, 65536);
    }
    params.k.data = data;
    params.v.data = data - layout.page_data_bytes();
    params.batch.block_table = far.data();
    cpu::AttentionWorkspace workspace(1);
    cpu::paged_attention(cpu::Team{}, isa, params, workspace);
    EXPECT_LT(difference(got, wanted).o, 2e-5) << cpu::isa_name(isa);
  }
  munmap(memory, bytes);
}

TEST(PagedAttention, ContiguousRows_NeedNoPages) {
  PagedCase paged(heads(4, 2, 64), {{3, 3}, {5, 5}}, {});
  const Output wanted = paged.run(Isa::kReference);
  std::vector<float> k = paged.k[0];
  std::vector<float> v = paged.v[0];
  k.insert(k.end(), paged.k[1].begin(), paged.k[1].end());
  v.insert(v.end(), paged.v[1].begin(), paged.v[1].end());
  const std::vector<std::int32_t> first{0, 3};
  for (const Isa isa : isas()) {
    Output got;
    attention::AttentionParams params = paged.params(got);
    const auto rows = [](std::vector<float>& values) {
      return attention::PagedRows{.data = reinterpret_cast<std::byte*>(values.data()),
                                  .page_stride = 128,
                                  .token_stride = 128,
                                  .head_stride = 64};
    };
    params.k = rows(k);
    params.v = rows(v);
    params.batch.block_table = first.data();
    params.batch.block_table_stride = 1;
    params.batch.page_size = 5;
    cpu::AttentionWorkspace workspace(1);
    cpu::paged_attention(cpu::Team{}, isa, params, workspace);
    EXPECT_LT(difference(got, wanted).o, 2e-5) << cpu::isa_name(isa);
  }
}

}  // namespace
}  // namespace kernelpath::testing
