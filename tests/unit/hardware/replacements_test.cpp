#include "hardware/replacements.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace kernelpath::hardware {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

std::vector<std::string> ids(const Device& asked) {
  std::vector<std::string> out;
  for (const Device* device : replacements(asked)) out.push_back(device->id);
  return out;
}

std::size_t place(const std::vector<std::string>& ids, const std::string& id) {
  return static_cast<std::size_t>(std::find(ids.begin(), ids.end(), id) - ids.begin());
}

TEST(Replacements, SameCapability_ComesFirstAndTheSmallestOfItFirst) {
  const auto order = ids(*find_device("h100-sxm"));
  EXPECT_THAT(std::vector(order.begin(), order.begin() + 6),
              ElementsAre("h100-pcie", "h800", "h100-nvl", "gh200", "h20", "h200"));
  EXPECT_LT(place(order, "h200"), place(order, "b200"));
  EXPECT_LT(place(order, "b200"), place(order, "gb300"));
  EXPECT_LT(place(order, "gb300"), place(order, "v100"));
}

TEST(Replacements, DeskBoards_ComeAfterEveryServerBoard) {
  const auto order = ids(*find_device("h100-sxm"));
  EXPECT_LT(place(order, "v100"), place(order, "rtx5090"));
  const auto of_desk = ids(*find_device("rtx4090"));
  EXPECT_EQ(of_desk.front(), "rtx4060");
  EXPECT_LT(place(of_desk, "rtx5090"), place(of_desk, "l4"));
}

TEST(Replacements, AskedDeviceAndOtherPlatforms_AreLeftOut) {
  EXPECT_THAT(ids(*find_device("h200")), Not(Contains("h200")));
  EXPECT_THAT(ids(*find_device("h200")), Not(Contains("mi300x")));
  EXPECT_THAT(ids(*find_device("mi300x")), Not(Contains("h200")));
  EXPECT_THAT(ids(*find_device("mi300x")), Contains("mi325x"));
}

TEST(Replacements, OfACpu_AreServerBoardsByMemory) {
  const auto order = ids(*find_device("cpu"));
  EXPECT_THAT(order, Not(Contains("cpu")));
  EXPECT_LT(place(order, "t4"), place(order, "a10"));
  EXPECT_LT(place(order, "gb300"), place(order, "rtx4060"));
}

TEST(Replacements, OfACapability_AreThoseOfIt) {
  const auto order = ids(device_from_capability({9, 0}, std::int64_t{80} << 30));
  EXPECT_EQ(find_device(order.front())->capability, (Capability{9, 0}));
}

}  // namespace
}  // namespace kernelpath::hardware
