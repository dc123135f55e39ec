#include "engines/vllm/profile.h"

#include "engines/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace kernelpath::engines::vllm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string table(const std::string& version, const std::string& name) {
  for (const EmbeddedFile& file : embedded_tables()) {
    if (file.path == "vllm-" + version + "/" + name + ".json") return std::string(file.content);
  }
  ADD_FAILURE() << "no such table: " << name;
  return {};
}

ProfileTexts texts(const std::string& version) {
  return {.backends = table(version, "backends"),
          .priorities = table(version, "priorities"),
          .mla_prefill = table(version, "mla_prefill")};
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(VllmProfile, BuiltInVersions_AreOldestFirst) {
  EXPECT_THAT(built_in_versions(), ElementsAre("0.25.1", "0.33.0"));
}

TEST(VllmProfile, EmbeddedTables_AreThoseOfTheEngine) {
  EXPECT_EQ(built_in_profile("0.25.1").members.size(), 39U);
  EXPECT_EQ(built_in_profile("0.25.1").kv_dtypes.size(), 16U);
  EXPECT_TRUE(built_in_profile("0.25.1").layouts.empty());
  const Profile& later = built_in_profile("0.33.0");
  EXPECT_EQ(later.members.size(), 56U);
  EXPECT_EQ(later.kv_dtypes.size(), 22U);
  EXPECT_EQ(later.layout_preference.front(), "LBNHC");
  EXPECT_TRUE(later.at_least(0, 33));
  EXPECT_FALSE(built_in_profile("0.25.1").at_least(0, 33));
}

TEST(VllmProfile, QuantizedCaches_AreWhatTheVersionCallsThat) {
  EXPECT_FALSE(built_in_profile("0.25.1").is_quantized("turboquant_k8v4"));
  EXPECT_TRUE(built_in_profile("0.33.0").is_quantized("turboquant_k8v4"));
  EXPECT_TRUE(built_in_profile("0.25.1").is_quantized("fp8_inc"));
  EXPECT_FALSE(built_in_profile("0.33.0").is_quantized("auto"));
}

// Every order names members, and every composite knows its children.
TEST(VllmProfile, References_LeadSomewhere) {
  for (const std::string& version : built_in_versions()) {
    const Profile& profile = built_in_profile(version);
    std::set<std::string> names;
    const auto collect = [&](const std::vector<PriorityEntry>& entries) {
      for (const PriorityEntry& entry : entries) {
        for (const PriorityRow& row : entry.rows) names.insert(row.order.begin(), row.order.end());
      }
    };
    collect(profile.priorities.plain);
    collect(profile.priorities.mla);
    collect(profile.priorities.vision);
    for (const PriorityRow& row : profile.priorities.rocm) {
      names.insert(row.order.begin(), row.order.end());
    }
    EXPECT_FALSE(names.empty());
    EXPECT_FALSE(profile.classes.empty());
    for (const std::string& name : names) EXPECT_NE(profile.find_member(name), nullptr) << name;
    for (const BackendClass& backend : profile.classes) {
      EXPECT_EQ(backend.general == nullptr, backend.causal == nullptr) << backend.path;
    }
  }
}

TEST(VllmProfile, RuleThatTheBuildLacks_IsNamed) {
  ProfileTexts changed = texts("0.25.1");
  changed.backends = replaced(changed.backends, "FlashAttentionBackend.supports_sink",
                              "FlashAttentionBackend.supports_magic");
  const auto profile = parse_profile(std::move(changed), "next");
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().code, ErrorCode::kInputSchema);
  EXPECT_THAT(profile.error().text(), HasSubstr("FlashAttentionBackend.supports_magic"));
  EXPECT_EQ(profile.error().file, "next/backends.json");
}

TEST(VllmProfile, NewerSchema_IsRefused) {
  ProfileTexts changed = texts("0.25.1");
  changed.priorities = replaced(changed.priorities, "\"1.0.0\"", "\"2.0.0\"");
  const auto profile = parse_profile(std::move(changed), "next");
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().where, "/schema_version");
  EXPECT_EQ(profile.error().file, "next/priorities.json");
}

TEST(VllmProfile, TablesOfTwoVersions_AreRefused) {
  ProfileTexts mixed = texts("0.25.1");
  mixed.mla_prefill = table("0.33.0", "mla_prefill");
  const auto profile = parse_profile(std::move(mixed), "mixed");
  ASSERT_FALSE(profile);
  EXPECT_THAT(profile.error().text(), HasSubstr("0.25.1"));
}

TEST(VllmProfile, TableOfAnotherKind_IsRefused) {
  ProfileTexts swapped = texts("0.25.1");
  swapped.priorities = swapped.mla_prefill;
  const auto profile = parse_profile(std::move(swapped), "swapped");
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().where, "/table");
}

TEST(VllmProfile, BlockSizeOfZero_IsRefused) {
  ProfileTexts changed = texts("0.25.1");
  changed.backends = replaced(changed.backends, "{\"multiple_of\": 16}", "{\"multiple_of\": 0}");
  const auto profile = parse_profile(std::move(changed), "zero");
  ASSERT_FALSE(profile);
  EXPECT_THAT(profile.error().where, HasSubstr("block_sizes"));
}

TEST(ParseRelease, ThreeNumbers_AreRead) {
  EXPECT_EQ(parse_release("0.25.1"), (Release{.major = 0, .minor = 25, .patch = 1}));
  EXPECT_LT(*parse_release("0.9.2"), *parse_release("0.25.1"));
}

TEST(ParseRelease, AnythingElse_IsNothing) {
  for (const char* text : {"", "0", "0.25", "0.25.1rc1", "0.25.x", "v0.25.1", "0.25.1."}) {
    EXPECT_FALSE(parse_release(text)) << text;
  }
}

}  // namespace
}  // namespace kernelpath::engines::vllm
