#include "features/matrix.h"

#include "json/document.h"

#include <gmock/gmock.h>

namespace kernelpath::features {
namespace {

using testing::ElementsAre;

const RuleTable& trtllm() { return *find_rule_table("trtllm"); }

MatrixAxis axis(std::string_view name) {
  auto found = find_axis(trtllm(), name);
  EXPECT_TRUE(found.has_value()) << name;
  return found ? *found : MatrixAxis{};
}

std::vector<std::string> displayed(const MatrixAxis& axis) {
  std::vector<std::string> out;
  for (const Value& value : axis.values) out.push_back(to_display(value));
  return out;
}

TEST(FindAxis, OptionsAndFields_AreFound) {
  EXPECT_EQ(trtllm().schema.field(axis("kv").field).name, "kv_cache_config.dtype");
  EXPECT_EQ(trtllm().schema.field(axis("--backend").field).name, "attn_backend");
  EXPECT_EQ(trtllm().schema.field(axis("spec").field).name, "speculative_config.decoding_type");
  EXPECT_THAT(displayed(axis("backend")), ElementsAre("TRTLLM", "FLASHINFER", "VANILLA"));
  EXPECT_THAT(displayed(axis("enable_lora")), ElementsAre("false", "true"));
}

TEST(FindAxis, UnknownName_OffersNearOnes) {
  const auto found = find_axis(trtllm(), "backnd");
  ASSERT_FALSE(found.has_value());
  EXPECT_THAT(found.error().near_matches, testing::Contains("backend"));
}

TEST(MakeAxis, GivenValues_AreReadAsTheFieldsType) {
  Context context(trtllm());
  const auto made = make_axis(context, "batch-size", {"1", "64", "default"});
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->values[1].as_integer(), 64);
  EXPECT_TRUE(made->values[2].is_null());
  EXPECT_FALSE(make_axis(context, "batch-size", {"many"}).has_value());
}

// The quick matrix must say what judging each combination by itself says.
TEST(JudgeMatrix, EveryCell_IsTheVerdictOfThatCombination) {
  Context context(trtllm());
  context.state(json::parse_object(R"({"_sm": 90, "enable_early_first_token_response": true,
    "model": {"architecture": "Llama4ForConditionalGeneration", "attention_chunk_size": 8192}})",
                                   "test")
                    ->root);
  const auto matrix = judge_matrix(
      context,
      {axis("backend"), axis("kv"), axis("speculative"), axis("enable_mla_skip_correction"),
       axis("kv_cache_config.use_kv_cache_manager_v2"), axis("prefill_cuda_graph_backend")});
  ASSERT_TRUE(matrix.has_value());
  std::size_t cell = 0;
  std::vector<std::size_t> choice(matrix->axes.size(), 0);
  for (const Judgement& found : matrix->cells) {
    Context one = context;
    for (std::size_t a = 0, rest = cell; a < choice.size(); ++a) {
      std::size_t stride = 1;
      for (std::size_t b = a + 1; b < choice.size(); ++b) stride *= matrix->axes[b].values.size();
      const Value& value = matrix->axes[a].values[rest / stride];
      rest %= stride;
      if (value.is_null()) continue;
      one.state(matrix->axes[a].field, value);
      const auto object = trtllm().schema.find("speculative_config");
      if (matrix->axes[a].name == "speculative") one.state(*object, Value::object(1));
    }
    const Judgement expected = judge(one);
    ASSERT_EQ(found.worst, expected.worst) << cell;
    ASSERT_EQ(found.deciding, expected.deciding)
        << cell << " " << (found.deciding != nullptr ? found.deciding->id : "-") << " "
        << (expected.deciding != nullptr ? expected.deciding->id : "-");
    ++cell;
  }
  EXPECT_GT(cell, 1000U);
}

TEST(JudgeMatrix, TooManyCombinations_AreRefused) {
  const Context context(trtllm());
  EXPECT_FALSE(judge_matrix(context, {axis("backend"), axis("kv")}, {.limit = 10}).has_value());
}

// The weights of one rank as a table of the ranks; every other axis leaves them alone.
std::vector<MatrixFact> weights_by_ranks(const RuleTable& table) {
  return {{.field = *table.schema.find("memory.weight_bytes"),
           .axes = {1},
           .values = {Value::integer(100), Value::integer(50), Value()}}};
}

Context with_memory(const RuleTable& table) {
  Context context(table);
  context.state(*table.schema.find("device.memory_bytes"), Value::integer(80));
  return context;
}

TEST(AddRules, Facts_ChangeWithTheirAxesOnly) {
  Context context(trtllm());
  auto matrix =
      judge_matrix(context, {axis("backend"), *make_axis(context, "tp", {"1", "2", "4"})});
  ASSERT_TRUE(matrix.has_value());
  const RuleTable& shared = *find_rule_table("all");
  add_rules(*matrix, with_memory(shared), weights_by_ranks(shared), {});
  ASSERT_EQ(matrix->cells.size(), 9U);
  for (std::size_t i = 0; i < matrix->cells.size(); ++i) {
    const bool too_heavy = i % 3 == 0;
    EXPECT_EQ(matrix->cells[i].worst == Level::kError, too_heavy) << i;
    if (too_heavy) {
      EXPECT_EQ(matrix->cells[i].deciding->id, "MEM-WEIGHTS");
    }
  }
}

TEST(AddRules, WorseVerdictOfTheEngine_Stays) {
  Context context(trtllm());
  context.state(json::parse_object(R"({"load_format": true})", "test")->root);
  auto matrix =
      judge_matrix(context, {axis("backend"), *make_axis(context, "tp", {"1", "2", "4"})});
  ASSERT_TRUE(matrix.has_value());
  const RuleTable& shared = *find_rule_table("all");
  add_rules(*matrix, with_memory(shared), weights_by_ranks(shared), {});
  for (const Judgement& cell : matrix->cells) EXPECT_EQ(cell.deciding->id, "LOAD-FORMAT-BOOL");
}

TEST(JudgeMatrix, Facts_AreReadByTheEnginesOwnRules) {
  Context context(trtllm());
  const auto field = *trtllm().schema.find("model.num_attention_heads");
  const MatrixOptions options{
      .facts = {{.field = field, .axes = {0}, .values = {Value::integer(32), Value::integer(33)}}}};
  const auto matrix =
      judge_matrix(context, {axis("enable_lora"), *make_axis(context, "tp", {"1", "2"})}, options);
  ASSERT_TRUE(matrix.has_value());
  EXPECT_EQ(matrix->cells[1].worst, Level::kDerive);
  ASSERT_EQ(matrix->cells[3].worst, Level::kError);
  EXPECT_EQ(matrix->cells[3].deciding->id, "HEADS-NOT-DIVISIBLE");
}

TEST(Regions, EqualRows_ShareALine) {
  Context context(trtllm());
  context.state(json::parse_object(R"({"enable_mla_skip_correction": true})", "test")->root);
  const auto matrix = judge_matrix(context, {axis("backend"), axis("enable_lora")});
  ASSERT_TRUE(matrix.has_value());
  const auto found = regions(*matrix);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_THAT(found[0].values, ElementsAre(ElementsAre("TRTLLM"), ElementsAre("*")));
  EXPECT_EQ(found[0].worst, Level::kDerive);
  EXPECT_THAT(found[1].values, ElementsAre(ElementsAre("FLASHINFER", "VANILLA"), ElementsAre("*")));
  EXPECT_EQ(found[1].deciding->id, "SKIPCORR-BACKEND");
  EXPECT_EQ(found[1].num_combinations, 4U);
}

}  // namespace
}  // namespace kernelpath::features
