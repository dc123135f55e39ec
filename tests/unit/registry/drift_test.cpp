#include "registry/drift.h"

#include <gtest/gtest.h>

namespace kernelpath::registry {
namespace {

StaticIndex index() {
  StaticIndex index;
  index.package = "engine.models";
  index.architectures.add("LlamaForCausalLM", "llama");
  index.classes.add("Llama", "llama");
  index.spec_modes.add("MTP", "speculative");
  return index;
}

BuiltInModules modules() {
  return {{"llama", {{.kind = Kind::kModelClass, .key = "LlamaForCausalLM", .name = "Llama"}}},
          {"speculative", {{.kind = Kind::kDraftBuilder, .key = "MTP", .name = "build_mtp"}}}};
}

TEST(FindDrift, IndexAndModulesAgree_NothingIsReported) {
  EXPECT_TRUE(find_drift(index(), modules()).empty());
}

TEST(FindDrift, RegisteredWithoutARow_IsMissing) {
  BuiltInModules more = modules();
  more[0].second.push_back({.kind = Kind::kModelClass, .key = "New", .name = "NewModel"});
  more[1].second.push_back({.kind = Kind::kDraftBuilder, .key = "PARD", .name = "build_pard"});
  const std::vector<Drift> drift = find_drift(index(), more);
  ASSERT_EQ(drift.size(), 2U);
  EXPECT_EQ(drift[0].kind, DriftKind::kMissing);
  EXPECT_EQ(drift[0].key, "New");
  EXPECT_EQ(drift[0].modules, std::vector<std::string>{"llama"});
  EXPECT_EQ(drift[1].key, "PARD");
  EXPECT_EQ(drift[1].table, "spec modes");
}

TEST(FindDrift, RowWithoutARegistration_IsStale) {
  StaticIndex more = index();
  more.architectures.add("Gone", "llama");
  more.classes.add("GoneModel", "llama");
  const std::vector<Drift> drift = find_drift(more, modules());
  ASSERT_EQ(drift.size(), 2U);
  EXPECT_EQ(drift[0].kind, DriftKind::kStale);
  EXPECT_EQ(drift[0].table, "architectures");
  EXPECT_EQ(drift[1].table, "classes");
  EXPECT_EQ(drift[1].key, "GoneModel");
}

TEST(FindDrift, RowWithAnotherModule_IsWrong) {
  BuiltInModules moved = modules();
  moved[0].first = "llama4";
  const std::vector<Drift> drift = find_drift(index(), moved);
  ASSERT_EQ(drift.size(), 2U);
  EXPECT_EQ(drift[0].kind, DriftKind::kWrong);
  EXPECT_EQ(drift[0].indexed, "llama");
  EXPECT_EQ(drift[0].modules, std::vector<std::string>{"llama4"});
  EXPECT_EQ(drift_name(drift[0].kind), "wrong module");
}

TEST(FindDrift, ClassWithoutAnEstablishedName_ExcusesTheRowsOfItsModule) {
  StaticIndex more = index();
  more.architectures.add("Secret", "secret");
  more.classes.add("SecretModel", "secret");
  BuiltInModules all = modules();
  all.push_back(
      {"secret",
       {{.kind = Kind::kModelClass, .key = "Secret", .name = std::string(kUnestablished)}}});
  EXPECT_TRUE(find_drift(more, all).empty());
}

}  // namespace
}  // namespace kernelpath::registry
