#include "config/show.h"

#include "config/warnings.h"
#include "testing.h"

namespace kernelpath::config {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Field;

TEST(ShowValues, EveryValue_HasItsOrigin) {
  const auto model = loaded(llama({{"num_key_value_heads", ""}}));
  const auto all = show_values(model, "all");
  for (const ShownValue& shown : all) {
    EXPECT_FALSE(shown.value.empty()) << shown.name;
    EXPECT_FALSE(shown.origin.empty()) << shown.name;
  }
  EXPECT_THAT(
      all, Contains(AllOf(
               Field(&ShownValue::name, "num_key_value_heads"), Field(&ShownValue::value, "32"),
               Field(&ShownValue::origin, "default (multi-head attention: num_attention_heads)"))));
  EXPECT_THAT(all, Contains(AllOf(Field(&ShownValue::name, "hidden_size"),
                                  Field(&ShownValue::origin, "/hidden_size"))));
}

TEST(ShowValues, OneGroup_AloneOrNone) {
  const auto model = loaded(llama());
  const std::vector<ShownValue> rope = show_values(model, "rope");
  EXPECT_FALSE(rope.empty());
  for (const ShownValue& shown : rope) EXPECT_EQ(shown.group, "rope");
  EXPECT_TRUE(show_values(model, "moe").empty());
  EXPECT_TRUE(show_values(model, "no such group").empty());
  EXPECT_THAT(show_groups(), Contains("quant"));
}

TEST(ShowValues, HostileNames_AreEscaped) {
  const auto model = loaded(llama({{"architectures", R"(["Ll\u001b[31mama"])"}}));
  EXPECT_EQ(show_values(model, "class").front().value, "Ll\\x1b[31mama");
}

TEST(ShowValues, EmptyName_IsShownAsOne) {
  EXPECT_THAT(
      show_values(loaded(llama({{"model_type", R"("")"}})), "class"),
      Contains(AllOf(Field(&ShownValue::name, "model_type"), Field(&ShownValue::value, R"("")"))));
}

TEST(OriginText, EveryKind_HasItsWords) {
  EXPECT_EQ(origin_text({}), "absent");
  EXPECT_EQ(origin_text({OriginKind::kField, "/a", ""}), "/a");
  EXPECT_EQ(origin_text({OriginKind::kSibling, "f.json:/a", ""}), "f.json:/a");
  EXPECT_EQ(origin_text({OriginKind::kDefault, "", "family default: llama"}),
            "default (family default: llama)");
  EXPECT_EQ(origin_text({OriginKind::kDerived, "", "a * b"}), "derived (a * b)");
}

TEST(AttentionSummary, EveryForm_HasItsWords) {
  const auto summary = [](Fields fields) { return attention_summary(loaded(llama(fields))); };
  EXPECT_EQ(summary({}), "GQA 32:8");
  EXPECT_EQ(summary({{"num_key_value_heads", "32"}}), "MHA 32");
  EXPECT_EQ(summary({{"num_key_value_heads", "1"}}), "MQA 32:1");
  EXPECT_EQ(summary({{"num_attention_heads", "1"}, {"num_key_value_heads", "1"}}), "MHA 1");
}

TEST(Warnings, Table_IsSortedAndFindable) {
  const auto table = warning_table();
  for (std::size_t index = 1; index < table.size(); ++index) {
    EXPECT_LT(table[index - 1].code, table[index].code);
  }
  ASSERT_NE(find_warning_info("config-arch-missing"), nullptr);
  EXPECT_EQ(find_warning_info("CONFIG-NOTHING"), nullptr);
}

}  // namespace
}  // namespace kernelpath::config
