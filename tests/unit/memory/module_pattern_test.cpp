#include "memory/module_pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace kernelpath::memory {
namespace {

bool matches(std::string_view pattern, std::string_view path) {
  const auto compiled = ModulePattern::compile(pattern);
  EXPECT_TRUE(compiled.has_value()) << pattern;
  return compiled && compiled->matches(path);
}

constexpr std::string_view kGate = "model.layers.0.mlp.gate";

TEST(ModulePattern, PlainPath_MatchesItselfAndWhatIsBelow) {
  EXPECT_TRUE(matches("model.layers.0.mlp.gate", kGate));
  EXPECT_TRUE(matches("model.layers.0.mlp", kGate));
  EXPECT_FALSE(matches("model.layers.0.mlp.gate_proj", kGate));
  EXPECT_FALSE(matches("model.layers.0.mlp.gate", "model.layers.0.mlp.gate_proj"));
}

TEST(ModulePattern, PartOfAPath_MatchesWholeWordsOnly) {
  EXPECT_TRUE(matches("gate", kGate));
  EXPECT_TRUE(matches("mlp.gate", kGate));
  EXPECT_FALSE(matches("ate", kGate));
  EXPECT_FALSE(matches("lm_head", kGate));
}

TEST(ModulePattern, Wildcards_MatchAnything) {
  EXPECT_TRUE(matches("*.mlp.*", kGate));
  EXPECT_TRUE(matches("*gate", kGate));
  EXPECT_TRUE(matches("model.layers.*.mlp", kGate));
  EXPECT_TRUE(matches("model.layers.?.mlp.gate", kGate));
  EXPECT_TRUE(matches("model*", kGate));
  EXPECT_FALSE(matches("mlp*", kGate));
  EXPECT_FALSE(matches("*.self_attn.*", kGate));
}

TEST(ModulePattern, RegularExpression_IsAnchoredAtTheStartOnly) {
  EXPECT_TRUE(matches("re:.*mlp", kGate));
  EXPECT_TRUE(matches("re:model\\.layers\\.\\d+\\.mlp\\.gate$", kGate));
  EXPECT_TRUE(matches("re:^model", kGate));
  EXPECT_FALSE(matches("re:mlp", kGate));
  EXPECT_FALSE(matches("re:.*mlp$", kGate));
  EXPECT_FALSE(matches("re:.*\\.gate_proj", kGate));
}

TEST(ModulePattern, Alternatives_AreMultipliedOut) {
  constexpr std::string_view kPattern = "re:.*mlp\\.(gate|up|gate_up|down)_proj.*";
  EXPECT_TRUE(matches(kPattern, "model.layers.3.mlp.up_proj"));
  EXPECT_TRUE(matches(kPattern, "model.layers.3.mlp.gate_up_proj"));
  EXPECT_FALSE(matches(kPattern, "model.layers.3.mlp.experts.up_proj"));
  EXPECT_TRUE(matches("re:(a|b)(c|)d", "ad"));
}

TEST(ModulePattern, ClassesAndQuantifiers_AreUnderstood) {
  EXPECT_TRUE(matches("re:layers\\.[0-3]\\.", "layers.2.mlp"));
  EXPECT_FALSE(matches("re:layers\\.[^0-3]\\.", "layers.2.mlp"));
  EXPECT_TRUE(matches("re:a+b?c*d$", "aad"));
  EXPECT_FALSE(matches("re:a+b?c*d$", "bd"));
}

TEST(ModulePattern, WhatIsNotUnderstood_IsRefused) {
  for (const char* text : {"", "re:(a(b|c))", "re:(a)*", "re:a|b", "re:(?=a)", "re:a{2}", "re:[a",
                           "re:(a", "re:a)", "re:\\w+", "re:*a", "re:a\\"}) {
    EXPECT_FALSE(ModulePattern::compile(text).has_value()) << text;
  }
  EXPECT_FALSE(ModulePattern::compile(std::string(1000, 'a')).has_value());
}

TEST(ModulePattern, ManyStars_StayFast) {
  std::string pattern = "re:";
  for (int i = 0; i < 100; ++i) pattern += "a*.*";
  EXPECT_TRUE(matches(pattern, std::string(2000, 'a')));
  EXPECT_FALSE(matches(pattern + "b$", std::string(2000, 'a')));
}

}  // namespace
}  // namespace kernelpath::memory
