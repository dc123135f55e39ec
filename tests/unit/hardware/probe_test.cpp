#include "hardware/probe.h"

#include <gtest/gtest.h>

namespace kernelpath::hardware {
namespace {

TEST(ProbeDevice, AnyMachine_GivesADeviceThatCanBeAskedAbout) {
  const Device device = probe_device();
  if (device.platform == Platform::kCpu) {
    EXPECT_EQ(device.id, "cpu");
    return;
  }
  EXPECT_EQ(device.id, "cuda:0");
  ASSERT_TRUE(device.capability);
  EXPECT_GE(device.capability->sm(), 50);
  ASSERT_TRUE(device.memory_bytes);
  EXPECT_GT(*device.memory_bytes, std::int64_t{1} << 30);
  EXPECT_FALSE(device.label.empty());
}

}  // namespace
}  // namespace kernelpath::hardware
