#include "bench/shape.h"

#include "bench/axes.h"
#include "bench/matrix_data.h"
#include "bench/paged_data.h"
#include "bench/peers.h"
#include "bench/random_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kernelpath::bench {
namespace {

Shape decode(const std::vector<std::pair<std::string, std::string>>& values) {
  std::vector<AxisValues> stated;
  for (const auto& [name, value] : values) {
    stated.push_back({.axis = find_axis(name), .values = {value}, .where = name});
  }
  return expand(CaseKind::kGqaDecode, "", stated, {}).value().front();
}

TEST(WorkOf, Decode_ReadsEveryKeyAndValueOnce) {
  const Shape shape = decode({{"dtype", "bf16"}, {"kv_cache_dtype", "bf16"}, {"batch_size", "64"}});
  const Work work = work_of(shape);
  // 64 requests of 4096 tokens, 8 heads of 128, K and V, 2 bytes; q and o of 32 heads.
  EXPECT_DOUBLE_EQ(work.bytes, 64.0 * 4096 * 8 * 256 * 2 + 64.0 * 32 * 256 * 2);
  EXPECT_DOUBLE_EQ(work.flops, 2.0 * 64 * 4096 * 32 * 256);
}

TEST(WorkOf, Nvfp4_CountsItsScales) {
  const Shape shape = decode({{"kv_cache_dtype", "nvfp4"}, {"context", "16"}, {"heads", "1"}});
  // 16 rows of 128 in K and V: 64 bytes and 8 scales each; q and o in f32.
  EXPECT_DOUBLE_EQ(work_of(shape).bytes, 16.0 * 2 * (64 + 8) + 2 * 128 * 4);
}

TEST(WorkOf, Window_CountsWhatIsSeen) {
  const Shape shape = decode({{"window", "128"}, {"heads", "1"}});
  EXPECT_DOUBLE_EQ(work_of(shape).flops, 2.0 * 128 * 256);
  EXPECT_DOUBLE_EQ(work_of(shape).bytes, (128.0 * 256 + 256) * 4);
}

TEST(WorkOf, Prefill_CountsTheTriangle) {
  const std::vector<AxisValues> stated = {
      {.axis = find_axis("context"), .values = {"100"}, .where = ""},
      {.axis = find_axis("heads"), .values = {"1"}, .where = ""}};
  const Shape shape = expand(CaseKind::kPrefill, "", stated, {}).value().front();
  EXPECT_DOUBLE_EQ(work_of(shape).flops, 2.0 * (100 * 101 / 2) * 256);
}

TEST(WorkOf, Gemv_CountsWeightsAndScales) {
  const std::vector<AxisValues> stated = {
      {.axis = find_axis("weight_dtype"), .values = {"q8_0"}, .where = ""},
      {.axis = find_axis("rows"), .values = {"64"}, .where = ""},
      {.axis = find_axis("cols"), .values = {"256"}, .where = ""}};
  const Shape shape = expand(CaseKind::kGemv, "", stated, {}).value().front();
  EXPECT_DOUBLE_EQ(work_of(shape).bytes, 64.0 * 256 + 64 * 8 * 2 + (64 + 256) * 4);
}

TEST(KeyOf, EveryDifference_IsInIt) {
  const std::vector<std::string> keys = {
      key_of(decode({})),
      key_of(decode({{"heads", "32"}})),
      key_of(decode({{"head_dim", "64"}})),
      key_of(decode({{"v_head_dim", "64"}})),
      key_of(decode({{"page_size", "32"}})),
      key_of(decode({{"layout", "NHD"}})),
      key_of(decode({{"kv_cache_dtype", "fp8"}})),
      key_of(decode({{"window", "8"}})),
      key_of(decode({{"chunk", "8"}})),
      key_of(decode({{"softcap", "8"}})),
      key_of(decode({{"sinks", "true"}})),
      key_of(decode({{"batch_size", "2"}})),
      key_of(decode({{"context", "2"}})),
      key_of(decode({{"query_tokens", "2"}})),
  };
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(keys[i], keys[j]);
  }
}

TEST(PlanPages, EveryPage_IsUsedOnce) {
  Shape shape = decode({{"page_size", "16"}});
  shape.batch = 3;
  shape.contexts = {33, 1, 160};
  const PagePlan plan = plan_pages(shape, 2);
  EXPECT_EQ(plan.pages, 2 * (3 + 1 + 10));
  EXPECT_EQ(plan.stride, 10);
  std::vector<std::int32_t> all;
  for (std::int64_t copy = 0; copy < 2; ++copy) {
    const std::vector<std::int32_t> order = page_order(shape, plan, copy);
    all.insert(all.end(), order.begin(), order.end());
  }
  std::ranges::sort(all);
  std::vector<std::int32_t> expected(28);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
  EXPECT_THAT(plan.query_start, ::testing::ElementsAre(0, 1, 2, 3));
}

TEST(RandomOrder, SameSeed_GivesTheSameUnsortedPermutation) {
  const std::vector<std::int32_t> order = random_order(1000, 1);
  EXPECT_FALSE(std::ranges::is_sorted(order));
  EXPECT_EQ(order, random_order(1000, 1));
  EXPECT_NE(order, random_order(1000, 2));
}

TEST(FillRandom, F32_IsFiniteAndNeverZero) {
  std::vector<float> values(10000);
  fill_random({}, std::as_writable_bytes(std::span(values)), pattern_of(attention::DataType::kF32),
              1);
  EXPECT_TRUE(std::ranges::all_of(
      values, [](float value) { return std::abs(value) >= 0.5F && std::abs(value) < 2.0F; }));
  EXPECT_TRUE(std::ranges::any_of(values, [](float value) { return value < 0; }));
}

TEST(CheckPoints, LongestAndLastRow_AreAmongThem) {
  Shape shape = decode({});
  shape.batch = 4;
  shape.contexts = {64, 4096, 64, 128};
  const std::vector<CheckPoint> points = check_points(shape);
  ASSERT_GE(points.size(), 2U);
  EXPECT_EQ(points[0].request, 3);
  EXPECT_EQ(points[0].position, 127);
  EXPECT_EQ(points[1].request, 1);
  EXPECT_EQ(points[1].position, 4095);
}

TEST(CheckPoints, HugeShapes_StayCheap) {
  const Shape shape = decode({{"context", "131072"}, {"batch_size", "64"}});
  EXPECT_EQ(check_points(shape).size(), 1U);
}

TEST(Difference, Nan_IsNeverWithinABound) {
  Difference difference;
  difference.add(1, 1);
  EXPECT_DOUBLE_EQ(difference.relative(), 0);
  difference.add(std::numeric_limits<double>::quiet_NaN(), 1);
  EXPECT_FALSE(difference.relative() <= 1.0);
}

TEST(CheckPeerOutput, FartherThanAllowedOrNan_IsRefusedWithBoth) {
  EXPECT_TRUE(check_peer_output(1e-2, 1e-2));
  EXPECT_FALSE(check_peer_output(std::numeric_limits<double>::quiet_NaN(), 1e-2));
  const auto refused = check_peer_output(0.25, 1e-2);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), ::testing::HasSubstr("by 0.25, 0.01 is allowed"));
}

Shape peer_shape() {
  Shape out;
  out.dtype = attention::DataType::kBf16;
  out.kv_type = attention::DataType::kBf16;
  out.geometry = {.num_heads = 8, .num_kv_heads = 2, .head_dim = 64, .v_head_dim = 64};
  return out;
}

TEST(PeerRefusals, DecodeOfOneType_HasBothPeers) {
  EXPECT_EQ(flashinfer_refusal(peer_shape()), "");
  EXPECT_EQ(cudnn_refusal(peer_shape()), "");
}

TEST(PeerRefusals, WhatNoPeerIsComparedWith_IsNamed) {
  const auto refused = [](const auto& change, const std::string& word) {
    Shape shape = peer_shape();
    change(shape);
    EXPECT_THAT(flashinfer_refusal(shape), ::testing::HasSubstr(word));
    EXPECT_EQ(cudnn_refusal(shape), flashinfer_refusal(shape));
  };
  refused([](Shape& shape) { shape.query_tokens = 2; }, "query tokens");
  refused([](Shape& shape) { shape.geometry.window = 128; }, "windows");
  refused([](Shape& shape) { shape.geometry.chunk = 128; }, "chunks");
  refused([](Shape& shape) { shape.geometry.softcap = 30; }, "soft caps");
  refused([](Shape& shape) { shape.sinks = true; }, "sinks");
  refused([](Shape& shape) { shape.geometry.v_head_dim = 32; }, "V rows");
}

TEST(PeerRefusals, Types_AreThoseOfTheLibrary) {
  Shape shape = peer_shape();
  shape.kv_type = attention::DataType::kFp8E4m3;
  EXPECT_EQ(flashinfer_refusal(shape), "");
  EXPECT_THAT(cudnn_refusal(shape), ::testing::HasSubstr("alike"));
  shape.kv_type = shape.dtype = attention::DataType::kF16;
  EXPECT_THAT(flashinfer_refusal(shape), ::testing::HasSubstr("bf16"));
  EXPECT_EQ(cudnn_refusal(shape), "");
  shape.kv_type = shape.dtype = attention::DataType::kF32;
  EXPECT_NE(cudnn_refusal(shape), "");
}

TEST(PeerRefusals, NhdPages_AreNotFlashInfers) {
  Shape shape = peer_shape();
  shape.layout = attention::KvLayout::kNhd;
  EXPECT_THAT(flashinfer_refusal(shape), ::testing::HasSubstr("HND"));
}

TEST(PeerKinds, EachLibrary_IsThereOnce) {
  std::vector<std::string> names;
  for (const PeerKind& kind : peer_kinds()) {
    names.push_back(kind.name);
    EXPECT_TRUE(names_peer("all", kind.name));
    EXPECT_TRUE(names_peer("torch," + kind.name, kind.name));
    EXPECT_NE(kind.here, "");
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf({"cublas", "cudnn", "flashinfer"}));
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(Worst, LargestError_StaysAndNanIsNeverLost) {
  Worst worst;
  EXPECT_EQ(worst.value(), 0.0);
  for (const double error : {0.25, 0.5, 0.125}) worst.add(error);
  EXPECT_EQ(worst.value(), 0.5);
  worst.add(std::numeric_limits<double>::quiet_NaN());
  worst.add(2.0);
  EXPECT_TRUE(std::isnan(worst.value()));
}

}  // namespace
}  // namespace kernelpath::bench
