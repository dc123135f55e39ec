#include "features/yaml.h"

#include "json/writer.h"

#include <gmock/gmock.h>

namespace kernelpath::features {
namespace {

using testing::HasSubstr;

std::string read(const std::string& text) {
  const auto document = parse_yaml(text, "options.yaml");
  return document ? json::to_text(document->root) : document.error().text();
}

#define SKIP_WITHOUT_YAML() \
  if (!yaml_available()) GTEST_SKIP() << "built without libyaml"

TEST(ResolvePlainScalar, Words_AreReadAsPythonsReaderDoes) {
  const auto text = [](std::string_view scalar) {
    return json::to_text(resolve_plain_scalar(scalar));
  };
  EXPECT_EQ(text("yes"), "true");
  EXPECT_EQ(text("Off"), "false");
  EXPECT_EQ(text("y"), "\"y\"");
  EXPECT_EQ(text("~"), "null");
  EXPECT_EQ(text("010"), "8");
  EXPECT_EQ(text("0x1F"), "31");
  EXPECT_EQ(text("1_000"), "1000");
  EXPECT_EQ(text("1:30"), "90");
  EXPECT_EQ(text("-5"), "-5");
  EXPECT_EQ(text("1e-3"), "\"1e-3\"");
  EXPECT_EQ(text("1.0e-3"), "0.001");
  EXPECT_EQ(text("0.9"), "0.9");
  EXPECT_EQ(text("fp8"), "\"fp8\"");
  EXPECT_EQ(text("1.2.3"), "\"1.2.3\"");
}

TEST(ParseYaml, OptionsFile_BecomesATree) {
  SKIP_WITHOUT_YAML();
  EXPECT_EQ(read("kv_cache_config:\n  dtype: fp8\n  max_attention_window: [4096, 512]\n"
                 "attn_backend: 'TRTLLM'\nspeculative_config: {draft_len_schedule: {4: 3}}\n"),
            R"({"kv_cache_config":{"dtype":"fp8","max_attention_window":[4096,512]},)"
            R"("attn_backend":"TRTLLM","speculative_config":{"draft_len_schedule":{"4":3}}})");
}

TEST(ParseYaml, EmptyFile_IsAnEmptyObject) {
  SKIP_WITHOUT_YAML();
  EXPECT_EQ(read(""), "{}");
  EXPECT_EQ(read("# nothing\n"), "{}");
}

TEST(ParseYaml, Places_AreLineAndColumn) {
  SKIP_WITHOUT_YAML();
  const auto document = parse_yaml("a: 1\nb:\n  c: true\n", "options.yaml");
  const auto place = document->position("/b/c");
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->line, 3U);
  EXPECT_EQ(place->column, 6U);
  EXPECT_FALSE(document->position("/b/d").has_value());
}

TEST(ParseYaml, AnchorsAndMergeKeys_AreFollowed) {
  SKIP_WITHOUT_YAML();
  EXPECT_EQ(read("base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}\n"),
            R"({"base":{"x":1,"y":2},"more":{"x":1,"y":3}})");
}

TEST(ParseYaml, RepeatedKey_LastCountsWithAWarning) {
  SKIP_WITHOUT_YAML();
  const auto document = parse_yaml("a: 1\na: 2\n", "options.yaml");
  EXPECT_EQ(json::to_text(document->root), R"({"a":2})");
  EXPECT_EQ(document->warnings.size(), 1U);
}

TEST(ParseYaml, BadFiles_NameThePlace) {
  SKIP_WITHOUT_YAML();
  EXPECT_THAT(read("a: [1\nb: 2"), HasSubstr("options.yaml: 2:"));
  EXPECT_THAT(read("- a\n"), HasSubstr("must be a mapping"));
  EXPECT_THAT(read("a: !!python/object:os.system x\n"), HasSubstr("is not accepted"));
  EXPECT_THAT(read("a: 1\n---\nb: 2\n"), HasSubstr("a second document"));
  EXPECT_THAT(read("? [a]\n: 1\n"), HasSubstr("single value"));
  EXPECT_THAT(read(std::string("a: \xff\xfe\n")), HasSubstr("not YAML"));
}

TEST(ParseYaml, AliasesThatExplode_AreStopped) {
  SKIP_WITHOUT_YAML();
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int n = 0; n < 9; ++n) text += last + ", ";
    text += last + "]\n";
  }
  EXPECT_THAT(read(text), HasSubstr("too many values"));
}

}  // namespace
}  // namespace kernelpath::features
