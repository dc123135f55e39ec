#include "base/embedded.h"

#include "embedded_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

namespace kernelpath {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(EmbeddedFiles, Paths_AreThoseBelowTheBaseInTheGivenOrder) {
  const auto files = testing::embedded_sample();
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].path, "configs/INDEX.tsv");
  EXPECT_EQ(files[1].path, "configs/01-ai__Yi-34B/config.json");
}

TEST(EmbeddedFiles, Content_IsThatOnDisk) {
  for (const EmbeddedFile& file : testing::embedded_sample()) {
    const std::string expected = read_file(KERNELPATH_TEST_DATA "/" + std::string(file.path));
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(file.content, expected) << file.path;
  }
}

TEST(EmbeddedFiles, Padding_IsZeroAndContentAligned) {
  for (const EmbeddedFile& file : testing::embedded_sample()) {
    const char* end = file.content.data() + file.content.size();
    EXPECT_EQ(std::string(end, EmbeddedFile::kPadding), std::string(EmbeddedFile::kPadding, '\0'));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.content.data()) % 64, 0U);
  }
}

}  // namespace
}  // namespace kernelpath
