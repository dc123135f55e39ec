#include "engines/remedy_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace kernelpath::engines {
namespace {

Edit add_to(std::int64_t Deployment::*member, std::string subject) {
  return {subject, {"+" + subject, ""}, [member](Request& out) { ++(out.deployment.*member); }};
}

const std::vector<Edit>& edits() {
  static const std::vector<Edit> kEdits = {
      add_to(&Deployment::tp, "tp"), add_to(&Deployment::pp, "pp"), add_to(&Deployment::dp, "dp")};
  return kEdits;
}

Request request() {
  return {.model = {},
          .device = hardware::find_device("h100-sxm").value(),
          .deployment = {},
          .environment = {}};
}

TEST(FindRemedies, SingleEdit_IsPreferredOverPairs) {
  const auto found = find_remedies(
      request(), edits(), [](const Request& changed) { return changed.deployment.pp > 1; });
  ASSERT_EQ(found.size(), 1U);
  ASSERT_EQ(found[0].size(), 1U);
  EXPECT_EQ(found[0][0].option, "+pp");
}

TEST(FindRemedies, NothingSingle_TriesPairs) {
  const auto found = find_remedies(request(), edits(), [](const Request& changed) {
    return changed.deployment.pp > 1 && changed.deployment.dp > 1;
  });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].size(), 2U);
}

TEST(FindRemedies, LimitOfAttempts_EndsTheSearch) {
  std::size_t attempts = 0;
  const auto found = find_remedies(request(), edits(),
                                   [&](const Request& /*changed*/) {
                                     ++attempts;
                                     return false;
                                   },
                                   {.most_attempts = 4});
  EXPECT_TRUE(found.empty());
  EXPECT_LE(attempts, 4U + edits().size());
}

TEST(DeviceEdits, EachGeneration_IsTriedOnceAndNotTheOwn) {
  std::vector<std::string> effects;
  for (const Edit& edit : device_edits(request())) effects.push_back(edit.change.effect);
  EXPECT_THAT(effects, ::testing::Contains("sm100"));
  EXPECT_THAT(effects, ::testing::Not(::testing::Contains("sm90")));
  std::sort(effects.begin(), effects.end());
  EXPECT_EQ(std::adjacent_find(effects.begin(), effects.end()), effects.end());
}

}  // namespace
}  // namespace kernelpath::engines
