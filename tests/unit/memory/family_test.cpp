#include "memory/family.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace kernelpath::memory {
namespace {

TEST(Families, Rows_AreSortedAndUnique) {
  const auto rows = families();
  for (std::size_t i = 1; i < rows.size(); ++i) {
    EXPECT_LT(rows[i - 1].model_type, rows[i].model_type);
  }
}

TEST(FindFamily, EveryRow_IsFound) {
  for (const Family& family : families()) {
    ASSERT_NE(find_family(family.model_type), nullptr) << family.model_type;
    EXPECT_EQ(find_family(family.model_type)->model_type, family.model_type);
  }
}

TEST(FindFamily, UnknownNames_AreNothing) {
  for (const char* name : {"", "a", "llama5", "zzz"}) EXPECT_EQ(find_family(name), nullptr) << name;
}

}  // namespace
}  // namespace kernelpath::memory
