#include "cli/output.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/resource.h>
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

// A disk without room, for as long as it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_ = {};
};

TEST_F(OutputTest, NoRoom_KeepsTheOldFileAndWhatWasWritten) {
  std::ofstream(path("out.jsonl")) << "old";
  Output output = Output::file(path("out.jsonl"));
  output.keep_part();
  const FileSizeLimit limit(100'000);
  ASSERT_TRUE(output.write(std::string(90'000, 'a')));
  const Result<void> full = output.write(std::string(90'000, 'b'));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().hint, "what was written until then is in " + path("out.jsonl.partial"));
  // Nothing behind it is written, also where there is room again.
  EXPECT_FALSE(output.write("c"));
  EXPECT_FALSE(output.commit());
  EXPECT_EQ(content(path("out.jsonl")), "old");
  EXPECT_EQ(content(path("out.jsonl.partial")),
            std::string(90'000, 'a') + std::string(10'000, 'b'));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

TEST_F(OutputTest, NoRoomForWhatIsMadeAtOnce_LeavesNothingBehind) {
  Output output = Output::file(path("report.json"));
  const FileSizeLimit limit(10);
  ASSERT_TRUE(output.write("longer than ten bytes"));
  EXPECT_FALSE(output.commit());
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace kernelpath::cli
