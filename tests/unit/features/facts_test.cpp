#include "features/facts.h"

#include "features/validate.h"

#include <gmock/gmock.h>

namespace kernelpath::features {
namespace {

std::vector<std::string> ids(std::string_view engine, const Facts& facts,
                             const json::Value& arguments = json::Value::object({})) {
  Context context(*find_rule_table(engine));
  context.state(to_tree(facts));
  context.state(arguments);
  std::vector<std::string> out;
  for (const Finding& finding : validate(context).findings) out.push_back(finding.id);
  return out;
}

TEST(Facts, Nothing_FindsNothing) {
  EXPECT_THAT(ids("trtllm", {}), testing::IsEmpty());
  EXPECT_THAT(ids("all", {}), testing::IsEmpty());
}

TEST(Facts, WeightsBeyondTheDevice_AreFound) {
  Facts facts;
  facts.device.memory_bytes = 80;
  facts.resolved.weight_bytes = 81;
  EXPECT_THAT(ids("all", facts), testing::ElementsAre("MEM-WEIGHTS"));
}

TEST(Facts, ModelConfig_GivesTheModelsFacts) {
  config::ModelConfig model;
  model.architectures = {"Llama4ForConditionalGeneration"};
  model.attention_chunk_size.value = 8192;
  model.num_attention_heads.value = 40;
  Facts facts{.model = facts_of(model)};
  EXPECT_FALSE(*facts.model.is_mla);
  EXPECT_FALSE(*facts.model.has_kv_scales);
  const auto arguments =
      json::Value::object({{.key = "attn_backend", .value = json::Value::string("trtllm")}});
  EXPECT_THAT(ids("trtllm", facts, arguments),
              testing::ElementsAre("BACKEND-CASE", "CASE-CHUNK-LOST"));
}

TEST(Facts, PresentKvLoraRank_MakesItMla) {
  config::ModelConfig model;
  model.has_kv_lora_rank = true;
  EXPECT_THAT(ids("trtllm", {.model = facts_of(model)}), testing::ElementsAre("MLA-GEOMETRY-NULL"));
}

TEST(Facts, LackingPackage_IsKnown) {
  Facts facts;
  facts.lacks = {"FlashInfer"};
  const auto arguments =
      json::Value::object({{.key = "attn_backend", .value = json::Value::string("FLASHINFER")}});
  EXPECT_THAT(ids("trtllm", facts, arguments), testing::ElementsAre("BACKEND-FALLBACK"));
}

TEST(Facts, Device_GivesItsCapability) {
  hardware::Device device{.id = "b200", .memory_bytes = 192};
  device.capability = hardware::Capability{.major = 10, .minor = 0};
  EXPECT_EQ(facts_of(device).sm, 100);
}

}  // namespace
}  // namespace kernelpath::features
