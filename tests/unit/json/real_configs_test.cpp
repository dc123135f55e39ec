#include "json/writer.h"
#include "parse_helpers.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace kernelpath::json {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(Parse, EveryRealConfig_IsRead) {
  int count = 0;
  const std::filesystem::path root = std::filesystem::path(KERNELPATH_TEST_DATA) / "configs";
  for (const auto& folder : std::filesystem::directory_iterator(root)) {
    if (!folder.is_directory()) continue;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (file.path().extension() != ".json") continue;
      const auto document = parse(read(file.path()), file.path().string());
      ASSERT_TRUE(document) << document.error().text();
      ++count;
    }
  }
  EXPECT_GE(count, 287);
}

TEST(Parse, NemotronTimeStepLimit_EndsAtInfinity) {
  const std::string path = std::string(KERNELPATH_TEST_DATA) +
                           "/configs/nvidia__NVIDIA-Nemotron-3-Super-120B-A12B-FP8/config.json";
  const Document document = good(read(path));
  const Value* const limit = resolve_pointer(document.root, "/time_step_limit/1");
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(limit->as_double(), std::numeric_limits<double>::infinity());
  EXPECT_THAT(codes(document), testing::Contains("JSON-NONFINITE"));
}

}  // namespace
}  // namespace kernelpath::json
