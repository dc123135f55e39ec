#include "engines/trtllm/profile.h"

#include "engines/tables.h"
#include "registry/config_types.h"
#include "registry/drift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace kernelpath::engines::trtllm {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string embedded_text() {
  for (const EmbeddedFile& file : embedded_tables()) {
    if (file.path == "trtllm-2026-11/registry.json") return std::string(file.content);
  }
  return {};
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::filesystem::path scratch_folder(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(Profile, Embedded_HasTheTablesOfTheEngine) {
  const Profile& profile = built_in_profile();
  EXPECT_EQ(profile.version, "2026-11");
  EXPECT_EQ(profile.index.package, "tensorrt_llm._torch.models");
  EXPECT_EQ(profile.architectures.size(), 84U);
  EXPECT_EQ(profile.index.classes.rows().size(), 68U);
  EXPECT_EQ(profile.index.spec_modes.rows().size(), 8U);
  EXPECT_EQ(profile.config_types.size(), 15U);
  ASSERT_NE(profile.find_architecture("LlamaForCausalLM"), nullptr);
  EXPECT_EQ(profile.find_architecture("LlamaForCausalLM")->module, "modeling_llama");
  EXPECT_EQ(profile.find_architecture("llamaforcausallm"), nullptr);
  EXPECT_NE(profile.find_outside("DeepseekV41ForCausalLM"), nullptr);
  EXPECT_THAT(profile.not_generative, Contains("BertForSequenceClassification"));
}

TEST(Profile, StaticIndexAndRegistrations_DoNotDrift) {
  const Profile& profile = built_in_profile();
  for (const registry::Drift& drift :
       registry::find_drift(profile.index, built_in_modules(profile))) {
    ADD_FAILURE() << drift.table << ": " << drift.key << " is " << registry::drift_name(drift.kind);
  }
}

TEST(Profile, RowWithoutARegistration_IsFoundAsDrift) {
  Profile profile = built_in_profile();
  profile.index.architectures.add("GoneForCausalLM", "modeling_llama");
  EXPECT_EQ(registry::find_drift(profile.index, built_in_modules(profile)).size(), 1U);
}

TEST(Profile, ConfigTypes_NeverReplaceWhatTransformersKnows) {
  registry::ConfigTypes types;
  types.add_if_absent("kimi_k2", "transformers' own");
  for (const ConfigTypeRow& row : built_in_profile().config_types) {
    types.add_if_absent(row.model_type, row.config_class);
  }
  EXPECT_EQ(*types.find("kimi_k2"), "transformers' own");
  EXPECT_EQ(*types.find("deepseek_v32"), "DeepseekV3Config");
}

TEST(Profile, ModelingV2Target_IsExternalToThePackage) {
  const Profile& profile = built_in_profile();
  ASSERT_EQ(profile.modeling_v2.targets.size(), 1U);
  EXPECT_FALSE(profile.index.is_built_in(profile.modeling_v2.targets[0].module));
  EXPECT_EQ(profile.modeling_v2.targets[0].capability, (hardware::Capability{10, 3}));
}

TEST(ParseProfile, NewerSchema_IsRefusedWithThePlaceAndTheFile) {
  const auto profile = parse_profile(
      replaced(embedded_text(), R"("schema_version": "1.)", R"("schema_version": "2.)"), "r.json");
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().code, ErrorCode::kInputSchema);
  EXPECT_EQ(profile.error().where, "/schema_version");
  EXPECT_EQ(profile.error().file, "r.json");
}

TEST(ParseProfile, BrokenTables_NameTheMember) {
  const struct {
    std::string_view from;
    std::string_view to;
    std::string_view where;
  } breaks[] = {
      {R"("engine": "trtllm")", R"("engine": "vllm")", "/engine"},
      {R"("module": "modeling_afmoe")", R"("module": 7)", "/architectures/0/module"},
      {R"("class_to_module")", R"("class_to_modul")", "/class_to_module"},
      {R"("capability": [)", R"("capability": [1,)", "/modeling_v2/targets/0/capability"},
      {R"("module_prefix": "tensorrt_llm._torch.models.")", R"("module_prefix": "x")",
       "/module_prefix"},
  };
  for (const auto& broken : breaks) {
    const auto profile =
        parse_profile(replaced(embedded_text(), broken.from, broken.to), "registry.json");
    ASSERT_FALSE(profile) << broken.to;
    EXPECT_EQ(profile.error().code, ErrorCode::kInputSchema) << broken.to;
    EXPECT_EQ(profile.error().where, broken.where);
  }
  EXPECT_FALSE(parse_profile("{", "registry.json"));
  EXPECT_FALSE(parse_profile("[]", "registry.json"));
}

TEST(LoadProfile, Folder_OverridesTheTables) {
  const auto folder = scratch_folder("kernelpath_profile");
  std::ofstream(folder / "registry.json")
      << replaced(embedded_text(), R"("module": "modeling_afmoe")", R"("module": "modeling_x")");
  const auto profile = load_profile(folder.string());
  ASSERT_TRUE(profile) << profile.error().text();
  EXPECT_EQ(profile->find_architecture("AfmoeForCausalLM")->module, "modeling_x");
}

TEST(LoadProfile, FolderWithoutTables_SaysWhatItLookedFor) {
  const auto folder = scratch_folder("kernelpath_no_profile");
  const auto profile = load_profile(folder.string());
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().code, ErrorCode::kInputMissing);
  EXPECT_THAT(profile.error().message, HasSubstr("registry.json"));
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
