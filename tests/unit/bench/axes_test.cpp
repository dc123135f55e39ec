#include "bench/axes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

AxisValues stated(std::string_view name, std::vector<std::string> values) {
  return {.axis = find_axis(name), .values = std::move(values), .where = "--" + std::string(name)};
}

std::vector<Shape> shapes(CaseKind kind, const std::vector<AxisValues>& all) {
  const Result<std::vector<Shape>> out = expand(kind, "", all, {});
  EXPECT_TRUE(out) << out.error().text();
  return out ? *out : std::vector<Shape>();
}

Error refused(CaseKind kind, const std::vector<AxisValues>& all) {
  const Result<std::vector<Shape>> out = expand(kind, "", all, {});
  EXPECT_FALSE(out);
  return out ? Error() : out.error();
}

TEST(FindAxis, DashesAndUnderscores_AreTheSame) {
  EXPECT_EQ(find_axis("kv-cache-dtype"), find_axis("kv_cache_dtype"));
  EXPECT_NE(find_axis("heads"), nullptr);
  EXPECT_EQ(find_axis("head"), nullptr);
}

TEST(Expand, Ranges_GiveEveryCombinationTheLastAxisFastest) {
  const auto all = shapes(CaseKind::kGqaDecode, {stated("context", {"1024..16384*4"}),
                                                 stated("batch_size", {"1", "16"})});
  std::vector<std::string> texts;
  for (const Shape& shape : all) texts.push_back(variant(shape));
  EXPECT_THAT(texts, ElementsAre("batch 1 context 1024", "batch 1 context 4096",
                                 "batch 1 context 16384", "batch 16 context 1024",
                                 "batch 16 context 4096", "batch 16 context 16384"));
}

TEST(Expand, Heads_AreQueryAndKv) {
  const auto all = shapes(CaseKind::kGqaDecode, {stated("heads", {"64:8", "16"})});
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].geometry.num_heads, 64);
  EXPECT_EQ(all[0].geometry.num_kv_heads, 8);
  EXPECT_EQ(all[1].geometry.num_kv_heads, 16);
}

TEST(Expand, KvCache_IsOfTheActivationsTypeUnlessTold) {
  const auto all = shapes(CaseKind::kGqaDecode, {stated("dtype", {"f16", "bf16"})});
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].kv_type, attention::DataType::kF16);
  EXPECT_EQ(all[1].kv_type, attention::DataType::kBf16);
  const auto told = shapes(CaseKind::kGqaDecode, {stated("kv_cache_dtype", {"fp8"})});
  EXPECT_EQ(told.front().kv_type, attention::DataType::kFp8E4m3);
  EXPECT_EQ(told.front().dtype, attention::DataType::kF32);
}

TEST(Expand, VHeadDim_FollowsHeadDim) {
  const auto all = shapes(CaseKind::kGqaDecode, {stated("head_dim", {"64"})});
  EXPECT_EQ(all.front().geometry.v_head_dim, 64);
  EXPECT_FLOAT_EQ(all.front().geometry.softmax_scale, 0.125F);
}

TEST(Expand, Contexts_AreOneRaggedBatch) {
  const auto all = shapes(CaseKind::kGqaDecode, {stated("contexts", {"100", "7", "64"})});
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all.front().batch, 3);
  EXPECT_THAT(all.front().contexts, ElementsAre(100, 7, 64));
  EXPECT_TRUE(all.front().is_ragged());
  EXPECT_EQ(variant(all.front()), "batch 3 context 7 to 100");
}

TEST(Expand, ContextsBesideContext_Conflict) {
  const Error error = refused(CaseKind::kGqaDecode,
                              {stated("contexts", {"100", "7"}), stated("context", {"4096"})});
  EXPECT_EQ(error.code, ErrorCode::kUsageConflict);
}

TEST(Expand, Prefill_HasAsManyQueriesAsTokens) {
  const auto all = shapes(CaseKind::kPrefill, {stated("context", {"300"})});
  EXPECT_EQ(all.front().query_tokens, 300);
}

TEST(Expand, Gemv_HasEveryWeightTypeUnlessTold) {
  EXPECT_THAT(shapes(CaseKind::kGemv, {}), SizeIs(weight_types().size()));
  EXPECT_THAT(shapes(CaseKind::kGemv, {stated("weight_dtype", {"q8_0"})}), SizeIs(1));
}

TEST(Expand, ReadCeiling_IsLinearAndThroughAPageTable) {
  const auto all = shapes(CaseKind::kReadCeiling, {stated("size", {"1MiB"})});
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].run_bytes, 0);
  EXPECT_EQ(all[1].order, ReadOrder::kGather);
  EXPECT_EQ(all[1].run_bytes, 4096);
}

struct Refusal {
  CaseKind kind;
  std::string axis;
  std::string value;
  std::string message;
};
class Refused : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refused, NamesTheOptionAndWhatIsAllowed) {
  const Error error = refused(GetParam().kind, {stated(GetParam().axis, {GetParam().value})});
  EXPECT_EQ(error.code, ErrorCode::kUsage);
  EXPECT_THAT(error.text(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Expand, Refused,
    ::testing::Values(Refusal{CaseKind::kGqaDecode, "heads", "0", "QUERY:KV"},
                      Refusal{CaseKind::kGqaDecode, "heads", "8:", "QUERY:KV"},
                      Refusal{CaseKind::kGqaDecode, "head_dim", "0", "at least 1"},
                      Refusal{CaseKind::kGqaDecode, "kv_cache_dtype", "int4",
                              "f32, bf16, f16, fp8"},
                      Refusal{CaseKind::kGqaDecode, "dtype", "int4", "f32, bf16, f16"},
                      Refusal{CaseKind::kGqaDecode, "layout", "HDN", "HND or NHD"},
                      Refusal{CaseKind::kGqaDecode, "softcap", "-1", "above 0"},
                      Refusal{CaseKind::kGqaDecode, "softcap", "nan", "above 0"},
                      Refusal{CaseKind::kGqaDecode, "sinks", "yes", "true or false"},
                      Refusal{CaseKind::kGqaDecode, "batch_size", "2097152", "more than 1048576"},
                      Refusal{CaseKind::kGemv, "weight_dtype", "q3_k", "not a weight type"},
                      Refusal{CaseKind::kReadCeiling, "size", "100", "multiple of 64"},
                      Refusal{CaseKind::kReadCeiling, "size", "1G", "G"}));

// Shapes that nothing can compute: each alone, so that others of the same run are measured.
struct Impossible {
  CaseKind kind;
  std::vector<AxisValues> stated;
  std::string message;
};
class ImpossibleShapes : public ::testing::TestWithParam<Impossible> {};

TEST_P(ImpossibleShapes, AreUnavailableWithWhatIsSupported) {
  for (const Shape& shape : shapes(GetParam().kind, GetParam().stated)) {
    if (shape.kind == CaseKind::kReadCeiling && shape.order == ReadOrder::kLinear) continue;
    const Result<void> checked = check_shape(shape);
    ASSERT_FALSE(checked) << variant(shape);
    EXPECT_EQ(checked.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(checked.error().message,
                ::testing::AllOf(HasSubstr(GetParam().message), HasSubstr("support")));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Expand, ImpossibleShapes,
    ::testing::Values(
        Impossible{CaseKind::kGqaDecode, {stated("heads", {"32:7"})}, "32 query heads for 7"},
        Impossible{CaseKind::kGqaDecode,
                   {stated("head_dim", {"72"}), stated("kv_cache_dtype", {"nvfp4"})},
                   "blocks of 16"},
        Impossible{
            CaseKind::kGqaDecode, {stated("context", {"1152921504606846976"})}, "beyond 2^50"},
        Impossible{
            CaseKind::kGqaDecode, {stated("query_tokens", {"5000"})}, "cannot hold 5000 new ones"},
        Impossible{CaseKind::kGemv,
                   {stated("cols", {"1000"}), stated("weight_dtype", {"q8_0"})},
                   "do not fill blocks of 32"},
        Impossible{CaseKind::kGemv, {stated("rows", {"9007199254740993"})}, "more than 2^50"},
        Impossible{CaseKind::kReadCeiling, {stated("run_bytes", {"192"})}, "no multiple of runs"}));

TEST(AxisOptions, Case_NamesTheOptionsThatItUses) {
  EXPECT_EQ(axis_options(CaseKind::kGemv), "batch-size, weight-dtype, rows, cols");
  EXPECT_EQ(axis_options(CaseKind::kReadCeiling), "size");
}

TEST(Expand, GemvOnCuda_HasTheFormatsAndActivationsOfItsKernel) {
  const Result<std::vector<Shape>> all = expand(CaseKind::kGemv, "", {}, {.cuda = true});
  ASSERT_TRUE(all);
  std::vector<std::string> texts;
  for (const Shape& shape : *all) {
    texts.push_back(std::string(shape.weight->name) + " by " +
                    std::string(short_type_name(shape.dtype)));
  }
  EXPECT_THAT(texts, ElementsAre("bf16 by bf16", "f16 by f16", "fp8 by bf16", "nvfp4 by bf16"));
}

TEST(Expand, TooManyCombinations_AreRefused) {
  const Error error = refused(
      CaseKind::kGqaDecode, {stated("batch_size", {"1..100+1"}), stated("context", {"1..100+1"})});
  EXPECT_THAT(error.message, HasSubstr("4096"));
}

TEST(UsesAxis, EveryAxis_IsOneOfSomeCase) {
  for (const AxisInfo& axis : axis_table()) {
    bool used = false;
    for (const CaseInfo& info : case_table()) used = used || uses_axis(info.kind, axis);
    EXPECT_TRUE(used) << axis.name;
  }
}

}  // namespace
}  // namespace kernelpath::bench
