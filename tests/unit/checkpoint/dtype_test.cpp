#include "checkpoint/dtype.h"

#include <gtest/gtest.h>

namespace kernelpath::checkpoint {
namespace {

TEST(FindDtype, Names_AreExact) {
  EXPECT_EQ(find_dtype("BF16")->bits, 16);
  EXPECT_EQ(find_dtype("F4")->bits, 4);
  EXPECT_EQ(find_dtype("C64")->bits, 64);
  EXPECT_EQ(find_dtype("bf16"), nullptr);
  EXPECT_EQ(find_dtype("F12"), nullptr);
  EXPECT_EQ(find_dtype(""), nullptr);
}

TEST(DtypeBytes, SubByteTypes_MustFillBytes) {
  EXPECT_EQ(dtype_bytes(*find_dtype("F4"), 6), 3);
  EXPECT_EQ(dtype_bytes(*find_dtype("F4"), 5), std::nullopt);
  EXPECT_EQ(dtype_bytes(*find_dtype("F6_E2M3"), 4), 3);
  EXPECT_EQ(dtype_bytes(*find_dtype("F64"), INT64_MAX), std::nullopt);
  EXPECT_EQ(dtype_bytes(*find_dtype("F32"), 0), 0);
}

}  // namespace
}  // namespace kernelpath::checkpoint
