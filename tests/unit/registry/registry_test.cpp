#include "registry/registry.h"

#include "registry/function_loader.h"
#include "registry/rule_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::registry {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kLlamaModule = "zoo.models.llama";
constexpr const char* kVlModule = "zoo.models.vl";
constexpr const char* kSpecModule = "zoo.models.spec";

// A small package with three built-in modules and three external ones.
class RegistryTest : public ::testing::Test {
 protected:
  RegistryTest() {
    index_.package = "zoo.models";
    index_.architectures.add("Llama", "llama");
    index_.architectures.add("Llama4", "llama");
    index_.architectures.add("VL", "vl");
    index_.architectures.add("Stale", "removed");
    index_.classes.add("LlamaModel", "llama");
    index_.classes.add("RemovedModel", "removed");
    index_.spec_modes.add("MTP", "spec");
    index_.spec_modes.add("GONE", "removed");
    add(kLlamaModule, [](Registrar& to) {
      to.model_class("Llama4", "Llama4Model");
      to.model_class("Llama", "LlamaModel");
    });
    add(kVlModule, [](Registrar& to) {
      to.model_class("VL", "VLModel");
      to.vision_encoder("VLModel", "VisionModel", "VisionBase");
    });
    add(kSpecModule, [](Registrar& to) { to.draft_builder("MTP", "build_mtp"); });
    add("acme.models", [](Registrar& to) { to.model_class("Llama", "AcmeLlama"); });
    add("other.models", [](Registrar& to) { to.model_class("Llama", "OtherLlama"); });
    add("acme.vl", [](Registrar& to) { to.model_class("VL", "AcmeVL"); });
  }

  void add(const std::string& module, const std::function<void(Registrar&)>& start) {
    loader_.add(module, [start](Registrar& to) -> std::optional<Failure> {
      start(to);
      return std::nullopt;
    });
  }

  void add_failing(const std::string& module, const Failure& failure) {
    loader_.add(module, [failure](Registrar& to) -> std::optional<Failure> {
      to.model_class("Llama", "Half");
      return failure;
    });
  }

  std::string class_of(std::string_view architecture) {
    const Found found = registry_.model_class(architecture);
    return found.provider ? found.provider->qualified_name() : "";
  }

  std::vector<std::string> rules() {
    std::vector<std::string> ids;
    for (const Event& event : registry_.take_events()) ids.emplace_back(event.rule);
    return ids;
  }

  StaticIndex index_;
  FunctionLoader loader_;
  Registry registry_{index_, loader_};
};

TEST_F(RegistryTest, LookUp_LoadsTheProviderOfTheIndexFirst) {
  EXPECT_EQ(class_of("Llama"), "zoo.models.llama.LlamaModel");
  EXPECT_THAT(rules(), ElementsAre("INDEX-HIT", "IMPORT", "REG-SET", "REG-SET"));
  EXPECT_EQ(class_of("Llama4"), "zoo.models.llama.Llama4Model");
  EXPECT_THAT(rules(), ElementsAre("REGISTRY-HIT"));
}

TEST_F(RegistryTest, UnknownName_IsNoProviderAndNoFailure) {
  const Found found = registry_.model_class("Lama");
  EXPECT_FALSE(found.provider);
  EXPECT_FALSE(found.failure);
  EXPECT_THAT(rules(), ElementsAre("INDEX-MISS"));
  EXPECT_THAT(registry_.near_architectures("Lama"), ::testing::Contains("Llama"));
}

TEST_F(RegistryTest, BuiltInAfterExternal_KeepsTheExternal) {
  EXPECT_FALSE(registry_.import("acme.models"));
  EXPECT_FALSE(registry_.import(kLlamaModule));
  EXPECT_THAT(rules(), ElementsAre("IMPORT", "REG-SET", "IMPORT", "REG-SET", "REG-KEEP"));
  EXPECT_EQ(class_of("Llama"), "acme.models.AcmeLlama");
}

TEST_F(RegistryTest, ExternalAfterBuiltIn_Overwrites) {
  EXPECT_FALSE(registry_.import(kLlamaModule));
  EXPECT_FALSE(registry_.import("acme.models"));
  EXPECT_EQ(rules().back(), "REG-OVERWRITE");
  EXPECT_EQ(class_of("Llama"), "acme.models.AcmeLlama");
}

TEST_F(RegistryTest, TwoExternals_TheLaterOneWins) {
  EXPECT_FALSE(registry_.import("other.models"));
  EXPECT_FALSE(registry_.import("acme.models"));
  EXPECT_EQ(class_of("Llama"), "acme.models.AcmeLlama");
}

TEST_F(RegistryTest, ModuleBesideThePackage_IsExternal) {
  add("zoo.models_custom", [](Registrar& to) { to.model_class("Llama", "CustomLlama"); });
  EXPECT_FALSE(registry_.import(kLlamaModule));
  EXPECT_FALSE(registry_.import("zoo.models_custom"));
  EXPECT_EQ(class_of("Llama"), "zoo.models_custom.CustomLlama");
}

TEST_F(RegistryTest, UsersModuleInsideThePackage_CountsAsBuiltIn) {
  add("zoo.models.extra", [](Registrar& to) { to.model_class("Llama", "ExtraLlama"); });
  EXPECT_FALSE(registry_.import(kLlamaModule));
  EXPECT_FALSE(registry_.import("zoo.models.extra"));
  EXPECT_EQ(rules().back(), "REG-KEEP");
  EXPECT_EQ(class_of("Llama"), "zoo.models.llama.LlamaModel");
}

TEST_F(RegistryTest, SecondImport_RegistersNothing) {
  EXPECT_FALSE(registry_.import(kLlamaModule));
  (void)registry_.take_events();
  EXPECT_FALSE(registry_.import(kLlamaModule));
  EXPECT_THAT(rules(), ElementsAre("IMPORT-CACHED"));
  EXPECT_EQ(registry_.log()[0].entries.size(), 2U);
}

TEST_F(RegistryTest, ModuleOfTheIndexThatIsNotThere_IsNoProvider) {
  const Found found = registry_.model_class("Stale");
  EXPECT_FALSE(found.provider);
  EXPECT_FALSE(found.failure);
  EXPECT_THAT(rules(), ElementsAre("INDEX-HIT", "IMPORT-MISSING-WARN"));
}

TEST_F(RegistryTest, MissingDependencyInsideTheModule_IsThatFailureAndRegistersNothing) {
  add_failing(kLlamaModule, {.kind = FailureKind::kModuleNotFound, .name = "flashinfer"});
  const Found found = registry_.model_class("Llama");
  EXPECT_FALSE(found.provider);
  ASSERT_TRUE(found.failure);
  EXPECT_EQ(found.failure->kind, FailureKind::kModuleNotFound);
  EXPECT_EQ(found.failure->name, "flashinfer");
  EXPECT_THAT(rules(), ElementsAre("INDEX-HIT"));
  EXPECT_THAT(registry_.log(), IsEmpty());
  // It is asked again: a failed module does not count as loaded.
  EXPECT_TRUE(registry_.model_class("Llama").failure);
}

TEST_F(RegistryTest, FailingStart_IsThatFailure) {
  add_failing(kLlamaModule, {.kind = FailureKind::kStartFailed, .message = "no licence"});
  const Found found = registry_.model_class("Llama");
  ASSERT_TRUE(found.failure);
  EXPECT_EQ(found.failure->message, "no licence");
}

TEST_F(RegistryTest, ExternalOwnerOfTheSlot_HidesABrokenBuiltIn) {
  add_failing(kLlamaModule, {.kind = FailureKind::kModuleNotFound, .name = "flashinfer"});
  EXPECT_FALSE(registry_.import("acme.models"));
  EXPECT_EQ(class_of("Llama"), "acme.models.AcmeLlama");
}

TEST_F(RegistryTest, VisionLookUp_LoadsTheBuiltInThoughAnExternalOwnsTheClass) {
  EXPECT_FALSE(registry_.import("acme.vl"));
  const Found encoder = registry_.vision_encoder("VL");
  ASSERT_TRUE(encoder.provider);
  EXPECT_EQ(encoder.provider->qualified_name(), "zoo.models.vl.VisionModel");
  EXPECT_EQ(encoder.provider->base_class, "VisionBase");
  EXPECT_EQ(class_of("VL"), "acme.vl.AcmeVL");
}

TEST_F(RegistryTest, VisionEncoder_CoversEveryArchitectureOfItsClass) {
  add("acme.two", [](Registrar& to) {
    to.model_class("A", "Two");
    to.model_class("B", "Two");
    to.vision_encoder("Two", "TwoVision");
    to.model_class("C", "Two");
  });
  EXPECT_FALSE(registry_.import("acme.two"));
  EXPECT_TRUE(registry_.vision_encoder("A").provider);
  EXPECT_TRUE(registry_.vision_encoder("B").provider);
  EXPECT_FALSE(registry_.vision_encoder("C").provider);
}

TEST_F(RegistryTest, VisionEncoderBeforeItsClass_FailsAndNothingOfTheModuleCounts) {
  add("acme.order", [](Registrar& to) {
    to.model_class("A", "Other");
    to.vision_encoder("Two", "TwoVision");
    to.model_class("B", "Two");
  });
  const auto failure = registry_.import("acme.order");
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, FailureKind::kRegistration);
  EXPECT_EQ(failure->name, "Two");
  EXPECT_FALSE(registry_.model_class("A").provider);
}

TEST_F(RegistryTest, ClassRemembersItsArchitectures_AlsoWhereItLost) {
  EXPECT_FALSE(registry_.import("acme.models"));
  EXPECT_FALSE(registry_.import(kLlamaModule));
  EXPECT_THAT(registry_.architectures_of({.module = kLlamaModule, .name = "LlamaModel"}),
              ElementsAre("Llama"));
  EXPECT_THAT(registry_.architectures_of({.module = "acme.models", .name = "LlamaModel"}),
              IsEmpty());
}

TEST_F(RegistryTest, DraftBuilder_FollowsTheSameRules) {
  add("acme.draft", [](Registrar& to) { to.draft_builder("MTP", "acme_mtp"); });
  EXPECT_FALSE(registry_.import("acme.draft"));
  EXPECT_FALSE(registry_.import(kSpecModule));
  EXPECT_THAT(rules(), ElementsAre("IMPORT", "SPEC-SET", "IMPORT", "SPEC-KEEP"));
  EXPECT_EQ(registry_.draft_builder("MTP").provider->qualified_name(), "acme.draft.acme_mtp");
  const Provider built_in = {.module = kSpecModule, .name = "build_mtp"};
  EXPECT_THAT(registry_.modes_of(built_in), ElementsAre("MTP"));
  EXPECT_FALSE(registry_.holds_a_mode(built_in));
}

TEST_F(RegistryTest, DraftBuilder_LooksInTheIndexAndKnowsAbsenceFromFailure) {
  EXPECT_EQ(registry_.draft_builder("MTP").provider->name, "build_mtp");
  EXPECT_FALSE(registry_.draft_builder("NGRAM").provider);
  EXPECT_EQ(rules().back(), "SPEC-INDEX-MISS");
  const Found gone = registry_.draft_builder("GONE");
  EXPECT_FALSE(gone.provider);
  EXPECT_FALSE(gone.failure);
  EXPECT_EQ(rules().back(), "IMPORT-MISSING-WARN");
}

TEST_F(RegistryTest, Declare_LeavesTheSlotEmptyUntilALookUp) {
  EXPECT_FALSE(registry_.import(kLlamaModule));
  registry_.declare({{"Llama", "acme.models"}});
  (void)registry_.take_events();
  EXPECT_EQ(class_of("Llama"), "acme.models.AcmeLlama");
  EXPECT_THAT(rules(), ElementsAre("EXTERNAL-DECLARED", "IMPORT", "REG-SET"));
  EXPECT_EQ(class_of("Llama4"), "zoo.models.llama.Llama4Model");
}

TEST_F(RegistryTest, DeclareTheSame_ChangesNothing) {
  EXPECT_FALSE(registry_.import("acme.models"));
  registry_.declare({});
  EXPECT_EQ(rules().back(), "DECLARE-NOOP");
  EXPECT_EQ(class_of("Llama"), "acme.models.AcmeLlama");
  registry_.declare({{"A", "a"}, {"B", "b"}});
  registry_.declare({{"B", "b"}, {"A", "a"}});
  EXPECT_EQ(rules().back(), "DECLARE-NOOP");
}

TEST_F(RegistryTest, Release_LetsTheLoserCountAgain) {
  EXPECT_FALSE(registry_.import("acme.models"));
  EXPECT_FALSE(registry_.import(kLlamaModule));  // loses the slot
  registry_.declare({{"X", "nobody"}});
  EXPECT_EQ(class_of("Llama"), "zoo.models.llama.LlamaModel");
}

TEST_F(RegistryTest, DeclaredAgain_IsRestoredFromTheLogWithoutLoading) {
  registry_.declare({{"Llama", "acme.models"}});
  EXPECT_EQ(class_of("Llama"), "acme.models.AcmeLlama");
  registry_.declare({{"Llama", "other.models"}});
  EXPECT_EQ(class_of("Llama"), "other.models.OtherLlama");
  (void)registry_.take_events();
  registry_.declare({{"Llama", "acme.models"}});
  EXPECT_THAT(rules(), ElementsAre("DECLARE", "REBUILD-CLEAR", "REPLAY", "REG-SET"));
  EXPECT_EQ(class_of("Llama"), "acme.models.AcmeLlama");
}

TEST_F(RegistryTest, OwnerOfAnArchitecture_OwnsItsVisionSlotToo) {
  EXPECT_FALSE(registry_.import(kVlModule));
  EXPECT_FALSE(registry_.import("acme.vl"));
  registry_.declare({{"VL", "acme.vl"}});
  EXPECT_FALSE(registry_.vision_encoder("VL").provider);
  EXPECT_EQ(class_of("VL"), "acme.vl.AcmeVL");
}

TEST_F(RegistryTest, DeclaredModuleThatIsNotThere_IsNoProvider) {
  registry_.declare({{"Llama", "acme.ghost"}});
  const Found found = registry_.model_class("Llama");
  EXPECT_FALSE(found.provider);
  EXPECT_FALSE(found.failure);
  EXPECT_EQ(rules().back(), "IMPORT-MISSING-WARN");
}

TEST_F(RegistryTest, Export_HasExternalClassesAndDeclaredRows) {
  EXPECT_FALSE(registry_.import(kLlamaModule));
  EXPECT_THAT(registry_.export_external(), IsEmpty());
  registry_.declare({{"Llama", "acme.models"}, {"New", "acme.new"}});
  EXPECT_THAT(registry_.export_external(),
              ::testing::UnorderedElementsAre(std::pair("Llama", "acme.models"),
                                              std::pair("New", "acme.new")));
}

TEST_F(RegistryTest, Attribute_OfTheClassIndexIsCached) {
  const Attribute found = registry_.attribute("LlamaModel");
  EXPECT_EQ(found.class_name, "LlamaModel");
  EXPECT_EQ(found.module, kLlamaModule);
  EXPECT_EQ(rules().back(), "P2-CACHE-GLOBAL");
  EXPECT_EQ(registry_.attribute("LlamaModel").module, kLlamaModule);
  EXPECT_THAT(rules(), ElementsAre("P0-CACHED"));
}

TEST_F(RegistryTest, Attribute_IsTheBuiltInClassThoughAnExternalOwnsTheSlot) {
  EXPECT_FALSE(registry_.import("acme.models"));
  EXPECT_EQ(registry_.attribute("LlamaModel").module, kLlamaModule);
}

TEST_F(RegistryTest, Attribute_ArchitectureNamesAreNoClassNames) {
  const Attribute found = registry_.attribute("Llama");
  ASSERT_TRUE(found.failure);
  EXPECT_EQ(found.failure->kind, FailureKind::kNoAttribute);
}

TEST_F(RegistryTest, Attribute_OtherwiseASubmodule) {
  const Attribute found = registry_.attribute("llama");
  EXPECT_FALSE(found.class_name);
  EXPECT_EQ(found.module, kLlamaModule);
  EXPECT_EQ(rules().back(), "P4-SUBMODULE");
}

TEST_F(RegistryTest, Attribute_ModuleOfTheClassIndexThatIsNotThere_IsThatFailure) {
  const Attribute found = registry_.attribute("RemovedModel");
  ASSERT_TRUE(found.failure);
  EXPECT_EQ(found.failure->kind, FailureKind::kModuleNotFound);
  EXPECT_EQ(found.failure->name, "zoo.models.removed");
}

TEST_F(RegistryTest, Attribute_ErrorInsideTheModule_IsNotMistakenForAbsence) {
  add_failing(kLlamaModule, {.kind = FailureKind::kAttributeError, .name = "x"});
  EXPECT_EQ(registry_.attribute("LlamaModel").failure->kind, FailureKind::kImportError);
  EXPECT_EQ(registry_.attribute("llama").failure->kind, FailureKind::kAttributeError);
  add_failing(kLlamaModule, {.kind = FailureKind::kModuleNotFound, .name = "flashinfer"});
  EXPECT_EQ(registry_.attribute("llama").failure->name, "flashinfer");
}

TEST_F(RegistryTest, EqualRegistration_IsSetAgain) {
  add("acme.repeats", [](Registrar& to) {
    to.model_class("A", "Same");
    to.model_class("A", "Same");
  });
  EXPECT_FALSE(registry_.import("acme.repeats"));
  EXPECT_THAT(rules(), ElementsAre("IMPORT", "REG-SET", "REG-SET"));
}

}  // namespace
}  // namespace kernelpath::registry
