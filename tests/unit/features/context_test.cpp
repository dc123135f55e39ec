#include "features/context.h"

#include "json/document.h"

#include <gmock/gmock.h>

namespace kernelpath::features {
namespace {

json::Value object(const std::string& text) { return json::parse_object(text, "test")->root; }

class Contexts : public testing::Test {
 protected:
  const RuleTable& table_ = *find_rule_table("trtllm");
  Context context_{table_};

  const Value& value(std::string_view name) const {
    return context_.value(*table_.schema.find(name));
  }
  bool stated(std::string_view name) const { return context_.is_stated(*table_.schema.find(name)); }
};

TEST_F(Contexts, NothingStated_HoldsTheEnginesDefaults) {
  EXPECT_EQ(to_display(value("attn_backend")), "TRTLLM");
  EXPECT_EQ(value("max_batch_size").as_integer(), 2048);
  EXPECT_FALSE(stated("attn_backend"));
}

TEST_F(Contexts, NestedMembers_AreReadByPath) {
  context_.state(object(R"({"kv_cache_config": {"mamba_state_config":
      {"periodic_snapshot_interval": 128}}})"));
  EXPECT_EQ(value("kv_cache_config.mamba_state_config.periodic_snapshot_interval").as_integer(),
            128);
}

TEST_F(Contexts, Aliases_StateTheirField) {
  context_.state(object(R"({"_sm": 90, "kv_cache_config": {"_disk_path_exists": false}})"));
  EXPECT_EQ(value("device.sm").as_integer(), 90);
  EXPECT_FALSE(value("files.disk_cache_path_exists").as_bool());
  EXPECT_TRUE(stated("files.disk_cache_path_exists"));
}

TEST_F(Contexts, SpelledValues_AreConvertedAsTheEngineDoes) {
  EXPECT_TRUE(context_
                  .state(object(R"({"max_batch_size": "16", "enable_lora": "yes",
      "max_num_tokens": 64.0})"))
                  .empty());
  EXPECT_EQ(value("max_batch_size").as_integer(), 16);
  EXPECT_TRUE(value("enable_lora").is_true());
  EXPECT_EQ(value("max_num_tokens").as_integer(), 64);
}

TEST_F(Contexts, ValuesOfAnotherType_AreReturnedAndStayUnstated) {
  const auto wrong = context_.state(object(R"({"max_batch_size": "many", "attn_backend": 1,
      "max_num_tokens": 0.5})"));
  ASSERT_EQ(wrong.size(), 3U);
  EXPECT_EQ(table_.schema.field(wrong[0].field).name, "attn_backend");
  EXPECT_EQ(value("max_batch_size").as_integer(), 2048);
}

TEST_F(Contexts, Null_IsAStatedValue) {
  context_.state(object(R"({"max_batch_size": null})"));
  EXPECT_TRUE(value("max_batch_size").is_null());
  EXPECT_TRUE(stated("max_batch_size"));
}

TEST_F(Contexts, Copies_DoNotShareValues) {
  Context copy = context_;
  copy.state(*table_.schema.find("max_batch_size"), Value::integer(1));
  EXPECT_EQ(value("max_batch_size").as_integer(), 2048);
  copy.unstate(*table_.schema.find("max_batch_size"));
  EXPECT_EQ(copy.value(*table_.schema.find("max_batch_size")).as_integer(), 2048);
}

}  // namespace
}  // namespace kernelpath::features
