#include "hardware/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::hardware {
namespace {

using ::testing::HasSubstr;

class ParseCapabilityForms : public ::testing::TestWithParam<std::pair<const char*, Capability>> {};

TEST_P(ParseCapabilityForms, EachForm_HasOneNormalForm) {
  const auto [text, expected] = GetParam();
  const auto capability = parse_capability(text);
  ASSERT_TRUE(capability.has_value()) << text;
  EXPECT_EQ(*capability, expected) << text;
}

INSTANTIATE_TEST_SUITE_P(
    H1, ParseCapabilityForms,
    ::testing::Values(std::pair{"9", Capability{9, 0}}, std::pair{"90", Capability{9, 0}},
                      std::pair{"sm90", Capability{9, 0}}, std::pair{"SM90", Capability{9, 0}},
                      std::pair{"sm_90a", Capability{9, 0}}, std::pair{"90a", Capability{9, 0}},
                      std::pair{"9.0", Capability{9, 0}}, std::pair{"9.0a", Capability{9, 0}},
                      std::pair{"compute_90", Capability{9, 0}}, std::pair{"10", Capability{10, 0}},
                      std::pair{"10.0", Capability{10, 0}}, std::pair{"100", Capability{10, 0}},
                      std::pair{"sm_100f", Capability{10, 0}}, std::pair{"103", Capability{10, 3}},
                      std::pair{"10.3", Capability{10, 3}}, std::pair{"sm110", Capability{11, 0}},
                      std::pair{"120", Capability{12, 0}}, std::pair{"12", Capability{12, 0}},
                      std::pair{"12.0", Capability{12, 0}}, std::pair{"12.1", Capability{12, 1}},
                      std::pair{"121", Capability{12, 1}}, std::pair{"7", Capability{7, 0}},
                      std::pair{"75", Capability{7, 5}}, std::pair{"8", Capability{8, 0}},
                      std::pair{" 8.9 ", Capability{8, 9}}));

class ParseCapabilityRefusals : public ::testing::TestWithParam<const char*> {};

TEST_P(ParseCapabilityRefusals, UnknownText_IsAnErrorWithTheKnownList) {
  const auto capability = parse_capability(GetParam());
  ASSERT_FALSE(capability.has_value()) << GetParam();
  EXPECT_EQ(capability.error().code, ErrorCode::kUsageUnknown);
  EXPECT_THAT(capability.error().message,
              HasSubstr("7.0, 7.5, 8.0, 8.6, 8.7, 8.9, 9.0, 10.0, 10.3, 11.0, 12.0, 12.1"));
}

INSTANTIATE_TEST_SUITE_P(H1, ParseCapabilityRefusals,
                         ::testing::Values("", "0", "-1", "99.9", "1", "6", "9.", ".9", "9.00",
                                           "09.0", "9.0.0", "9.1", "sm", "sm9", "sm_", "sm90b",
                                           "sm80a", "sm90f", "9a", "sm 90", "0x90", "90.0",
                                           "999999999999999999999", "sm-90", "+9", "9.0 0"));

TEST(ParseCapability, OldNameOfThor_NamesTheNewOne) {
  EXPECT_THAT(parse_capability("10.1").error().hint, HasSubstr("11.0"));
  EXPECT_THAT(parse_capability("sm_101a").error().hint, HasSubstr("11.0"));
}

TEST(ParseCapability, HostileText_IsEscapedAndShort) {
  const auto capability = parse_capability("\x1b[31m" + std::string(100000, '9'));
  ASSERT_FALSE(capability.has_value());
  EXPECT_LT(capability.error().message.size(), 300U);
  EXPECT_EQ(capability.error().message.find('\x1b'), std::string::npos);
}

TEST(CapabilityText, EveryKnownCapability_IsReadBack) {
  for (const Capability capability : known_capabilities()) {
    const auto again = parse_capability(capability_text(capability));
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(*again, capability);
  }
  EXPECT_EQ(capability_text({9, 0}), "sm90");
  EXPECT_EQ(capability_text({12, 1}), "sm121");
}

}  // namespace
}  // namespace kernelpath::hardware
