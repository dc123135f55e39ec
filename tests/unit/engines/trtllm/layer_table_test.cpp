#include "engines/trtllm/layer_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace kernelpath::engines::trtllm {
namespace {

std::vector<std::string> keys(const std::vector<std::string>& indices) {
  LayerTable table;
  std::vector<std::string> out;
  for (const std::string& index : indices) out.push_back(table.add(index));
  return out;
}

TEST(LayerTable, DistinctIndices_KeepTheirNames) {
  EXPECT_EQ(keys({"0", "1", "31"}), (std::vector<std::string>{"0", "1", "31"}));
}

TEST(LayerTable, RepeatedIndex_GetsTheFirstFreeSuffix) {
  EXPECT_EQ(keys({"0", "0", "1", "0", "1"}),
            (std::vector<std::string>{"0", "0_0", "1", "0_1", "1_0"}));
  EXPECT_EQ(keys({"None", "None"}), (std::vector<std::string>{"None", "None_0"}));
}

TEST(LayerTable, SuffixThatAnIndexTook_IsPassedOver) {
  EXPECT_EQ(keys({"0_0", "0", "0"}), (std::vector<std::string>{"0_0", "0", "0_1"}));
  EXPECT_EQ(keys({"0", "0", "0_0", "0"}), (std::vector<std::string>{"0", "0_0", "0_0_0", "0_1"}));
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
