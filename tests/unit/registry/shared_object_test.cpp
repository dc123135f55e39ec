#include "registry/shared_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace kernelpath::registry {
namespace {

using ::testing::HasSubstr;

std::string provider_folder(const std::string& name) {
  return std::string(KERNELPATH_BUILD_DIR) + "/tests/providers/" + name;
}

std::string provider_file(const std::string& name) {
  return provider_folder(name) + "/" + name + ".so";
}

std::filesystem::path scratch_folder(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(LoadSharedObject, SampleProvider_GivesItsRegistrationsInOrder) {
  const auto provider = load_shared_object(provider_file("acme"));
  ASSERT_TRUE(provider) << provider.error().text();
  EXPECT_EQ(provider->module, "acme.models");
  ASSERT_EQ(provider->registrations.size(), 4U);
  EXPECT_EQ(provider->registrations[0].kind, Kind::kModelClass);
  EXPECT_EQ(provider->registrations[0].key, "LlamaForCausalLM");
  EXPECT_EQ(provider->registrations[0].name, "AcmeLlama");
  EXPECT_EQ(provider->registrations[2].kind, Kind::kVisionEncoder);
  EXPECT_EQ(provider->registrations[2].model_class, "AcmeVL");
  EXPECT_EQ(provider->registrations[2].base_class, "AcmeVisionBase");
  EXPECT_EQ(provider->registrations[3].kind, Kind::kDraftBuilder);
  EXPECT_EQ(provider->registrations[3].key, "DFLASH");
}

TEST(LoadSharedObject, OtherAbi_IsRefusedByNumberAndNothingElseIsRead) {
  const auto provider = load_shared_object(provider_file("wrong_abi"));
  ASSERT_FALSE(provider);
  EXPECT_EQ(provider.error().code, ErrorCode::kProviderAbi);
  EXPECT_THAT(provider.error().message, HasSubstr("ABI 42"));
  EXPECT_THAT(provider.error().message, HasSubstr("ABI 1"));
  EXPECT_EQ(provider.error().file, provider_file("wrong_abi"));
}

TEST(LoadSharedObject, NoEntryPoint_IsNamed) {
  const auto provider = load_shared_object(provider_file("no_entry"));
  ASSERT_FALSE(provider);
  EXPECT_EQ(provider.error().code, ErrorCode::kProvider);
  EXPECT_THAT(provider.error().message, HasSubstr("kernelpath_provider_entry"));
}

TEST(LoadSharedObject, FailingStart_IsItsErrorWithItsReason) {
  const auto provider = load_shared_object(provider_file("failing_start"));
  ASSERT_FALSE(provider);
  EXPECT_EQ(provider.error().code, ErrorCode::kProvider);
  EXPECT_THAT(provider.error().message, HasSubstr("no licence for AcmeLlama"));
}

TEST(LoadSharedObject, ThrowingStart_IsCaught) {
  const auto provider = load_shared_object(provider_file("throwing_start"));
  ASSERT_FALSE(provider);
  EXPECT_EQ(provider.error().code, ErrorCode::kProvider);
  EXPECT_THAT(provider.error().message, HasSubstr("acme exploded"));
}

TEST(LoadSharedObject, RefusedRegistration_FailsThoughStartReportsSuccess) {
  const auto provider = load_shared_object(provider_file("null_name"));
  ASSERT_FALSE(provider);
  EXPECT_EQ(provider.error().code, ErrorCode::kProvider);
  EXPECT_THAT(provider.error().message, HasSubstr("class name"));
}

TEST(LoadSharedObject, NoModuleName_IsRefused) {
  const auto provider = load_shared_object(provider_file("no_module"));
  ASSERT_FALSE(provider);
  EXPECT_EQ(provider.error().code, ErrorCode::kProvider);
}

TEST(LoadSharedObject, FileThatIsNoSharedObject_CarriesTheLinkersWords) {
  const auto folder = scratch_folder("kernelpath_not_elf");
  const std::string file = (folder / "text.so").string();
  std::ofstream(file) << "not an ELF file";
  const auto provider = load_shared_object(file);
  ASSERT_FALSE(provider);
  EXPECT_EQ(provider.error().code, ErrorCode::kProvider);
  EXPECT_EQ(provider.error().file, file);
  EXPECT_THAT(provider.error().message, HasSubstr("cannot be loaded: "));
}

TEST(LoadProviderFolders, SeveralFolders_KeepTheirOrder) {
  const std::vector<std::string> folders = {provider_folder("inside_package"),
                                            provider_folder("acme")};
  const auto providers = load_provider_folders(folders);
  ASSERT_TRUE(providers) << providers.error().text();
  ASSERT_EQ(providers->size(), 2U);
  EXPECT_EQ((*providers)[0].module, "tensorrt_llm._torch.models.extra_llama");
  EXPECT_EQ((*providers)[1].module, "acme.models");
}

TEST(LoadProviderFolders, FilesOfAFolder_AreSortedByName) {
  const auto folder = scratch_folder("kernelpath_sorted");
  std::filesystem::copy_file(provider_file("acme"), folder / "b.so");
  std::filesystem::copy_file(provider_file("inside_package"), folder / "a.so");
  std::ofstream(folder / "README.txt") << "ignored";
  const auto providers = load_provider_folders(std::vector<std::string>{folder.string()});
  ASSERT_TRUE(providers) << providers.error().text();
  ASSERT_EQ(providers->size(), 2U);
  EXPECT_EQ((*providers)[0].file, (folder / "a.so").string());
  EXPECT_EQ((*providers)[1].module, "acme.models");
}

TEST(LoadProviderFolders, ModuleGivenTwice_IsAnErrorThatNamesBoth) {
  const auto folder = scratch_folder("kernelpath_twice");
  std::filesystem::copy_file(provider_file("acme"), folder / "a.so");
  std::filesystem::copy_file(provider_file("acme"), folder / "b.so");
  const auto providers = load_provider_folders(std::vector<std::string>{folder.string()});
  ASSERT_FALSE(providers);
  EXPECT_EQ(providers.error().code, ErrorCode::kProvider);
  EXPECT_THAT(providers.error().message, HasSubstr("a.so"));
  EXPECT_EQ(providers.error().file, (folder / "b.so").string());
}

TEST(LoadProviderFolders, WrongFolders_AreToldApart) {
  const auto empty = scratch_folder("kernelpath_no_providers");
  const auto code = [](const std::string& folder) {
    const auto providers = load_provider_folders(std::vector<std::string>{folder});
    return providers ? ErrorCode::kInternal : providers.error().code;
  };
  EXPECT_EQ(code((empty / "missing").string()), ErrorCode::kInputMissing);
  EXPECT_EQ(code(provider_file("acme")), ErrorCode::kInputKind);
  EXPECT_EQ(code(empty.string()), ErrorCode::kProvider);
}

}  // namespace
}  // namespace kernelpath::registry
