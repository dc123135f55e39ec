#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace kernelpath {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A folder of its own for each test.
class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string pattern = fs::temp_directory_path() / "kernelpath-file-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~FileTest() override { fs::remove_all(root_); }

  [[nodiscard]] std::string path(const std::string& name) const { return root_ / name; }

  std::string write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

  static std::string content(const std::string& name) {
    std::ifstream stream(name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  static void expect_error(const Result<FileContents>& result, ErrorCode code,
                           const std::string& part) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, code);
    EXPECT_THAT(result.error().message, HasSubstr(part));
    EXPECT_FALSE(result.error().file.empty());
  }

  fs::path root_;
};

TEST_F(FileTest, ReadFile_OrdinaryFile_GivesAllBytes) {
  const std::string text("a\0b\n", 4);
  const auto contents = read_file(write("x", text), 100);
  ASSERT_TRUE(contents);
  EXPECT_EQ(contents->text, text);
  EXPECT_GE(contents->text.capacity(), text.size() + kReadPadding);
  EXPECT_EQ(contents->outside_target, "");
  EXPECT_EQ(read_file(write("empty", ""), 100)->text, "");
  const std::string large(300'000, 'x');
  EXPECT_EQ(read_file(write("large", large), large.size())->text, large);
}

TEST_F(FileTest, ReadFile_Missing_IsSaid) {
  expect_error(read_file(path("x"), 10), ErrorCode::kInputMissing, "no such file");
  write("file", "");
  expect_error(read_file(path("file/x"), 10), ErrorCode::kInputMissing, "no such file");
  expect_error(read_file(std::string(5000, 'x'), 10), ErrorCode::kInputMissing, "too long");
  EXPECT_EQ(read_file(path("file") + std::string("\0x", 2), 10).error().code,
            ErrorCode::kInputMissing);
}

TEST_F(FileTest, ReadFile_SpecialFiles_AreRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  expect_error(read_file(path("fifo"), 10), ErrorCode::kInputKind, "not a regular file but a FIFO");
  expect_error(read_file(root_, 10), ErrorCode::kInputKind, "a folder");
  expect_error(read_file("/dev/zero", 10), ErrorCode::kInputKind, "a character device");

  const int number = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(number, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  expect_error(read_file(path("socket"), 10), ErrorCode::kInputKind, "a socket");
  ::close(number);
}

TEST_F(FileTest, ReadFile_LinkLoop_IsRefused) {
  fs::create_symlink("b", path("a"));
  fs::create_symlink("a", path("b"));
  expect_error(read_file(path("a"), 10), ErrorCode::kInputKind, "too many links");
  EXPECT_EQ(path_kind(path("a")).error().code, ErrorCode::kInputKind);
}

TEST_F(FileTest, ReadFile_NoPermission_GivesTheSystemsReason) {
  const std::string file = write("x", "secret");
  ASSERT_EQ(::chmod(file.c_str(), 0), 0);
  ASSERT_EQ(::chmod(root_.c_str(), 0755), 0);
  // Root may read everything, so a child process gives that up.
  const auto read_as_nobody = [&] {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::seteuid(kNobody) != 0) std::_Exit(3);
    const auto contents = read_file(file, 10);
    if (contents) std::_Exit(1);
    std::fputs(contents.error().message.c_str(), stderr);
    std::_Exit(contents.error().code == ErrorCode::kInputPermission ? 0 : 2);
  };
  EXPECT_EXIT(read_as_nobody(), testing::ExitedWithCode(0), "Permission denied");
}

TEST_F(FileTest, ReadFile_LongFile_IsRefusedBeforeReading) {
  expect_error(read_file(write("x", "12345"), 4), ErrorCode::kInputLimit,
               "5 bytes long, the limit is 4");
  EXPECT_TRUE(read_file(path("x"), 5));
  write("huge", "");
  fs::resize_file(path("huge"), std::uintmax_t{1} << 40);  // sparse: nothing could hold it
  expect_error(read_file(path("huge"), 1000), ErrorCode::kInputLimit, "the limit is 1000");
}

TEST_F(FileTest, ReadFile_ChangeWhileReading_IsRefused) {
  const auto read_while = [&](auto change) {
    write("x", "0123456789");
    return detail::read_file(path("x"), 100, change);
  };
  expect_error(read_while([&] { fs::resize_file(path("x"), 3); }), ErrorCode::kInputChanged,
               "file changed");
  expect_error(read_while([&] { fs::resize_file(path("x"), 30); }), ErrorCode::kInputChanged,
               "file changed");
  expect_error(read_while([&] { fs::remove(path("x")); }), ErrorCode::kInputChanged, "changed");
  expect_error(read_while([&] { fs::rename(write("y", "9876543210"), path("x")); }),
               ErrorCode::kInputChanged, "changed");
  EXPECT_TRUE(read_while([] {}));
}

TEST_F(FileTest, ReadFile_ProcFile_IsReadThoughItSaysItIsEmpty) {
  const auto contents = read_file("/proc/self/comm", 1000);
  ASSERT_TRUE(contents);
  EXPECT_FALSE(contents->text.empty());
}

TEST_F(FileTest, ReadFile_LinkOutOfTheFolder_NamesItsTarget) {
  write("elsewhere/real.json", "1");
  fs::create_directory(path("model"));
  fs::create_symlink("../elsewhere/real.json", path("model/config.json"));
  const auto contents = read_file(path("model/config.json"), 10);
  ASSERT_TRUE(contents);
  EXPECT_EQ(contents->text, "1");
  EXPECT_EQ(contents->outside_target, fs::canonical(path("elsewhere/real.json")));

  write("model/real.json", "1");
  fs::create_symlink("real.json", path("model/alias.json"));
  EXPECT_EQ(read_file(path("model/alias.json"), 10)->outside_target, "");
}

TEST_F(FileTest, ReadFile_LinkWithinAHubCache_IsInside) {
  write("models--a--b/blobs/0123", "1");
  fs::create_directories(path("models--a--b/snapshots/rev"));
  fs::create_symlink("../../blobs/0123", path("models--a--b/snapshots/rev/config.json"));
  EXPECT_EQ(read_file(path("models--a--b/snapshots/rev/config.json"), 10)->outside_target, "");
  write("other/blobs/0123", "1");
  fs::create_symlink("../../../other/blobs/0123", path("models--a--b/snapshots/rev/x.json"));
  EXPECT_NE(read_file(path("models--a--b/snapshots/rev/x.json"), 10)->outside_target, "");
}

TEST_F(FileTest, ReadFileStart_LongerFile_GivesTheFront) {
  const auto start = read_file_start(write("x", "0123456789"), 4);
  ASSERT_TRUE(start);
  EXPECT_EQ(start->text, "0123");
  EXPECT_EQ(start->file_bytes, 10U);
  EXPECT_EQ(read_file_start(path("x"), 100)->text, "0123456789");
  EXPECT_EQ(read_file_start(write("empty", ""), 4)->text, "");
}

TEST_F(FileTest, ReadStream_Limit_IsKept) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::write(ends[1], "hello", 5), 5);
  ::close(ends[1]);
  EXPECT_EQ(read_stream(ends[0], "-", 5).value(), "hello");
  ::close(ends[0]);
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::write(ends[1], "hello", 5), 5);
  ::close(ends[1]);
  EXPECT_EQ(read_stream(ends[0], "-", 4).error().code, ErrorCode::kInputLimit);
  ::close(ends[0]);
}

TEST_F(FileTest, FindInFolder_Nothing_ListsWhatWasLookedFor) {
  constexpr std::array<std::string_view, 2> kNames = {"config.json", "params.json"};
  const auto missing = find_in_folder(root_, kNames);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kInputKind);
  EXPECT_EQ(missing.error().message, "no config.json in " + root_.string());
  EXPECT_EQ(missing.error().hint, "looked for config.json and params.json");
  fs::create_directory(path("config.json"));
  write("params.json", "{}");
  EXPECT_EQ(find_in_folder(root_, kNames).value(), path("params.json"));
}

TEST_F(FileTest, FindInFolder_SpecialFile_IsNotCalledMissing) {
  constexpr std::array<std::string_view, 1> kNames = {"config.json"};
  ASSERT_EQ(::mkfifo(path("config.json").c_str(), 0600), 0);
  const auto fifo = find_in_folder(root_, kNames);
  ASSERT_FALSE(fifo);
  EXPECT_EQ(fifo.error().code, ErrorCode::kInputKind);
  EXPECT_EQ(fifo.error().message, "not a regular file but a FIFO");
  EXPECT_EQ(fifo.error().file, path("config.json"));
  fs::remove(path("config.json"));
  fs::create_symlink("config.json", path("config.json"));
  EXPECT_THAT(find_in_folder(root_, kNames).error().message, HasSubstr("too many links"));
}

TEST_F(FileTest, ListFolder_Names_AreSorted) {
  write("b", "");
  write("a/c", "");
  EXPECT_EQ(list_folder(root_).value(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(list_folder(path("x")).error().code, ErrorCode::kInputMissing);
}

TEST_F(FileTest, WriteFile_NewAndOld_IsReplacedWhole) {
  ASSERT_TRUE(write_file(path("out"), "first"));
  EXPECT_EQ(content(path("out")), "first");
  ASSERT_EQ(::chmod(path("out").c_str(), 0640), 0);
  ASSERT_TRUE(write_file(path("out"), "second"));
  EXPECT_EQ(content(path("out")), "second");
  EXPECT_EQ(fs::status(path("out")).permissions(), fs::perms(0640));
  EXPECT_EQ(list_folder(root_).value(), (std::vector<std::string>{"out"}));
}

TEST_F(FileTest, WriteFile_ThroughALink_KeepsTheLink) {
  write("real", "old");
  fs::create_symlink("real", path("link"));
  ASSERT_TRUE(write_file(path("link"), "new"));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(content(path("real")), "new");
}

TEST_F(FileTest, WriteFile_Impossible_SaysWhy) {
  const auto missing = write_file(path("no/such/out"), "x");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kRuntime);
  EXPECT_THAT(missing.error().message, HasSubstr("No such file or directory"));
  EXPECT_THAT(write_file(root_, "x").error().message, HasSubstr("Is a directory"));
  EXPECT_TRUE(write_file("/dev/null", "x"));
  EXPECT_THAT(write_file("/dev/full", "x").error().message, HasSubstr("No space left"));
}

TEST(Paths, PartsOfAPath_AreTakenLexically) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(parent_path("a/b"), "a");
  EXPECT_EQ(parent_path("b"), ".");
  EXPECT_EQ(parent_path("/b"), "/");
  EXPECT_EQ(file_name("a/b/"), "b");
  EXPECT_EQ(file_name("b"), "b");
  EXPECT_EQ(file_name("/"), "");
}

}  // namespace
}  // namespace kernelpath
