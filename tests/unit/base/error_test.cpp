#include "base/error.h"

#include <gtest/gtest.h>

#include <set>

namespace kernelpath {
namespace {

TEST(ErrorTable, EveryCode_HasUniqueIdSentenceAndDocumentedExitCode) {
  std::set<std::string_view> ids;
  const std::set<int> documented = {1, 2, 3, 4, 5, 6, 70};
  for (const ErrorInfo& info : error_table()) {
    EXPECT_TRUE(ids.insert(info.id).second) << info.id;
    EXPECT_TRUE(documented.contains(info.exit_code)) << info.id;
    EXPECT_TRUE(info.sentence.ends_with('.')) << info.id;
    EXPECT_EQ(&error_info(info.code), &info);
    EXPECT_EQ(find_error_info(info.id), &info);
  }
  EXPECT_EQ(static_cast<std::size_t>(ErrorCode::kInternal) + 1, error_table().size());
}

TEST(Error, Text_NamesFilePlaceMessageValueAndEscapesThem) {
  const Error error{.code = ErrorCode::kConfigValue,
                    .message = "0 is not > 0",
                    .file = "a\x1b[31m.json",
                    .where = "/rope_scaling/factor",
                    .value = "0"};
  EXPECT_EQ(error.text(), "a\\x1b[31m.json: /rope_scaling/factor: 0 is not > 0 (0)");
}

}  // namespace
}  // namespace kernelpath
