#include "cli/output.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace kernelpath::cli {
namespace {

namespace fs = std::filesystem;

class OutputTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("kernelpath-output-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(std::string_view name) const { return folder_ / name; }
  static std::string content(const std::string& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  fs::path folder_;
};

TEST_F(OutputTest, File_AppearsWhenItIsComplete) {
  Output output = Output::file(path("report.json"));
  ASSERT_TRUE(output.write("hello "));
  ASSERT_TRUE(output.write(std::string(200'000, 'x')));
  ASSERT_TRUE(output.flush());
  EXPECT_FALSE(fs::exists(path("report.json")));
  ASSERT_TRUE(output.commit());
  EXPECT_EQ(content(path("report.json")), "hello " + std::string(200'000, 'x'));
}

TEST_F(OutputTest, NotCommitted_LeavesTheOldFile) {
  std::ofstream(path("report.json")) << "old";
  {
    Output output = Output::file(path("report.json"));
    ASSERT_TRUE(output.write("new"));
  }
  EXPECT_EQ(content(path("report.json")), "old");
}

TEST_F(OutputTest, MissingFolder_IsARuntimeError) {
  const Result<void> committed = Output::file(path("no/such/folder")).commit();
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, ErrorCode::kRuntime);
}

TEST_F(OutputTest, FullDevice_IsARuntimeError) {
  Output output = Output::file("/dev/full");
  ASSERT_TRUE(output.write("x"));
  const Result<void> committed = output.commit();
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, ErrorCode::kRuntime);
}

}  // namespace
}  // namespace kernelpath::cli
