#include "cli/settings.h"

#include "cli/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace kernelpath::cli {
namespace {

using testing::ElementsAre;

Result<Settings> settings_from(const std::vector<std::string>& arguments,
                               const ProcessEnvironment& environment = {}) {
  const Result<Arguments> parsed = parse_arguments(arguments);
  if (!parsed) return fail(parsed.error());
  return make_settings(*parsed, environment, inspect_program());
}

// A config file that is removed with the test.
class ConfigFile {
 public:
  explicit ConfigFile(std::string_view text)
      : path_(std::filesystem::temp_directory_path() /
              ("kernelpath-settings-" + std::to_string(getpid()) + ".toml")) {
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(Settings, NothingGiven_HoldsTheDefaults) {
  const Result<Settings> settings = settings_from({"m"});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->text(Option::kDevice), "h100-sxm");
  EXPECT_FALSE(settings->is_set(Option::kDevice));
  EXPECT_EQ(settings->integer(Option::kTp), 1);
  EXPECT_EQ(settings->integer(Option::kPageSize), std::nullopt);
  EXPECT_FALSE(settings->flag(Option::kWhy));
}

TEST(Settings, Precedence_IsFlagThenEnvironmentThenFileThenDefault) {
  const ConfigFile file("kv = \"file\"\ndtype = \"file\"\nquantization = \"file\"\n");
  const ProcessEnvironment environment{
      {{"KERNELPATH_KV_CACHE_DTYPE", "environment"}, {"KERNELPATH_DTYPE", "environment"}}};
  const Result<Settings> settings =
      settings_from({"m", "--config-file", file.path(), "--kv", "flag"}, environment);
  ASSERT_TRUE(settings) << settings.error().text();
  EXPECT_EQ(settings->text(Option::kKv), "flag");
  EXPECT_EQ(settings->text(Option::kDtype), "environment");
  EXPECT_EQ(settings->of(Option::kDtype).where, "KERNELPATH_DTYPE");
  EXPECT_EQ(settings->text(Option::kQuantization), "file");
  EXPECT_EQ(settings->of(Option::kQuantization).where, file.path() + ":3");
  EXPECT_EQ(settings->text(Option::kPhase), "both");
}

TEST(Settings, SectionOfTheProgram_WinsOverTheTop) {
  const ConfigFile file("[llm-inspect]\ndtype = \"mine\"\n[llm-run]\nkv = \"other\"\n");
  const Result<Settings> settings = settings_from({"m", "--config-file", file.path()});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->text(Option::kDtype), "mine");
  EXPECT_FALSE(settings->is_set(Option::kKv));
}

TEST(Settings, Lists_SplitAtCommasAndAddUp) {
  const Result<Settings> settings = settings_from({"--lacks", "a, b", "--lacks", "c", "m"});
  ASSERT_TRUE(settings);
  EXPECT_THAT(settings->list(Option::kLacks), ElementsAre("a", "b", "c"));
}

TEST(Settings, RepeatedValues_KeepTheirCommas) {
  const Result<Settings> settings = settings_from({"--env", "A=1,2", "--env", "B=3", "m"});
  ASSERT_TRUE(settings);
  EXPECT_THAT(settings->list(Option::kEnv), ElementsAre("A=1,2", "B=3"));
}

TEST(Settings, TwoDifferentValues_Conflict) {
  const Result<Settings> settings = settings_from({"--kv", "fp8", "--kv", "bf16", "m"});
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().code, ErrorCode::kUsageConflict);
  EXPECT_TRUE(settings_from({"--kv", "fp8", "--kv", "fp8", "m"}));
}

TEST(Settings, JsonBesideAnotherFormat_Conflicts) {
  EXPECT_FALSE(settings_from({"--json", "--format", "md", "m"}));
  const Result<Settings> settings = settings_from({"--json", "m"}, {{{"KERNELPATH_FORMAT", "md"}}});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->text(Option::kFormat), "json");
}

TEST(Settings, BadValues_AreRefusedWithTheirPlace) {
  const auto error_of = [](const std::vector<std::string>& arguments) {
    const Result<Settings> settings = settings_from(arguments);
    return settings ? "accepted" : settings.error().text();
  };
  EXPECT_EQ(error_of({"--tp", "0", "m"}), "--tp: must be at least 1 (0)");
  EXPECT_EQ(error_of({"--page-size", "1048576", "m"}), "accepted");
  EXPECT_EQ(error_of({"--page-size", "1048577", "m"}),
            "--page-size: must be at most 1048576 (1048577)");
  EXPECT_EQ(error_of({"--tp", "two", "m"}), "--tp: not a whole number that fits 64 bits (two)");
  EXPECT_EQ(error_of({"--phase", "both of them", "m"}),
            "--phase: not one of prefill, decode or both (both of them)");
  EXPECT_EQ(error_of({"--memory", "0", "m"}), "--memory: must be more than 0 (0)");
  EXPECT_THAT(error_of({"--memory", "80K", "m"}), testing::HasSubstr("bare unit letter"));
  EXPECT_EQ(error_of({"--lacks", "a,,b", "m"}), "--lacks: the value is empty");
  EXPECT_EQ(error_of({"--why=maybe", "m"}), "--why: not true or false (maybe)");
}

TEST(Settings, ConfigFileErrors_NameLineAndNearestOption) {
  const ConfigFile file("# comment\n\ndevcie = \"h200\"\n");
  const Result<Settings> settings = settings_from({"m", "--config-file", file.path()});
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().where, "3");
  EXPECT_THAT(settings.error().near_matches, testing::Contains("--device"));
}

TEST(Settings, NamedConfigFileThatIsMissing_IsAnError) {
  EXPECT_FALSE(settings_from({"m", "--config-file", "/no/such/file.toml"}));
  EXPECT_TRUE(settings_from({"m"}, {{{"XDG_CONFIG_HOME", "/no/such/folder"}}}));
}

TEST(Settings, OptionOfTheCommandLineOnly_IsRefusedInAFile) {
  const ConfigFile file("batch = \"x\"\n");
  const Result<Settings> settings = settings_from({"m", "--config-file", file.path()});
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace kernelpath::cli
