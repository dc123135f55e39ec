#include "cli/output.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
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
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  fs::path folder_;
};

TEST_F(OutputTest, Committed_StandsUnderItsNameAlone) {
  Result<std::unique_ptr<Output>> output = Output::file(path("report.json"));
  ASSERT_TRUE(output);
  ASSERT_TRUE((*output)->write("hello"));
  EXPECT_FALSE(fs::exists(path("report.json")));
  ASSERT_TRUE((*output)->commit());
  EXPECT_EQ(content(path("report.json")), "hello");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputTest, NotCommitted_LeavesTheOldFileAndNothingElse) {
  std::ofstream(path("report.json")) << "old";
  {
    Result<std::unique_ptr<Output>> output = Output::file(path("report.json"));
    ASSERT_TRUE(output);
    ASSERT_TRUE((*output)->write("new"));
    ASSERT_TRUE((*output)->flush());
  }
  EXPECT_EQ(content(path("report.json")), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputTest, NewFile_HasThePermissionsOfTheUmask) {
  const mode_t before = umask(027);
  Result<std::unique_ptr<Output>> output = Output::file(path("report"));
  ASSERT_TRUE(output);
  ASSERT_TRUE((*output)->commit());
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat(path("report").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST_F(OutputTest, Device_IsWrittenAndNotReplaced) {
  Result<std::unique_ptr<Output>> output = Output::file("/dev/null");
  ASSERT_TRUE(output);
  EXPECT_TRUE((*output)->write("x"));
  EXPECT_TRUE((*output)->commit());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(OutputTest, MissingFolder_IsARuntimeError) {
  const Result<std::unique_ptr<Output>> output = Output::file(path("no/such/folder"));
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code, ErrorCode::kRuntime);
}

TEST_F(OutputTest, FullDevice_IsARuntimeError) {
  Result<std::unique_ptr<Output>> output = Output::file("/dev/full");
  ASSERT_TRUE(output);
  ASSERT_TRUE((*output)->write("x"));
  const Result<void> committed = (*output)->commit();
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, ErrorCode::kRuntime);
}

}  // namespace
}  // namespace kernelpath::cli
