#include "hardware/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

// --device auto, on machines that are made up: their drivers' libraries are built beside the tests.

namespace kernelpath::hardware {
namespace {

using ::testing::HasSubstr;

std::string driver(const std::string& folder, const std::string& library) {
  return std::string(KERNELPATH_BUILD_DIR) + "/tests/drivers/" + folder + "/" + library;
}
std::string nvml(const std::string& folder) { return driver(folder, "libnvidia-ml.so.1"); }
std::string cuda(const std::string& folder) { return driver(folder, "libcuda.so.1"); }

constexpr const char* kNowhere = "/no/such/library.so.1";

TEST(ProbeDevice, Nvml_TellsEverything) {
  const Device device = probe_device({.nvml = nvml("nvml"), .cuda = kNowhere});
  EXPECT_EQ(device.id, "cuda:0");
  EXPECT_EQ(device.label, "Made-up GPU 80GB");
  EXPECT_EQ(device.platform, Platform::kCuda);
  EXPECT_EQ(device.capability, (Capability{9, 0}));
  EXPECT_EQ(device.memory_bytes, 85520809984);
  EXPECT_EQ(device.usable_bytes(), 85520809984 - 543752192);
  EXPECT_EQ(device.sm_count, 132);
  ASSERT_TRUE(device.memory_bandwidth_bytes_per_s);
  // 2619 MHz, two transfers a cycle, 5120 bits.
  EXPECT_DOUBLE_EQ(*device.memory_bandwidth_bytes_per_s, 2619e6 * 2 * 640);
  EXPECT_EQ(device.source, "NVML, driver 570.10");
}

TEST(ProbeDevice, OldDriver_LeavesUnknownWhatItDoesNotTell) {
  const Device device = probe_device({.nvml = nvml("nvml_old"), .cuda = kNowhere});
  EXPECT_EQ(device.memory_bytes, 85520809984 - 543752192);
  EXPECT_EQ(device.usable_bytes(), device.memory_bytes);
  EXPECT_FALSE(device.sm_count);
  EXPECT_FALSE(device.memory_bandwidth_bytes_per_s);
}

TEST(ProbeDevice, NvmlFirst_ThenTheDriver) {
  EXPECT_EQ(probe_device({.nvml = nvml("nvml"), .cuda = cuda("cuda")}).label, "Made-up GPU 80GB");
  for (const std::string& failing :
       {std::string(kNowhere), nvml("nvml_failing"), nvml("nvml_empty"), cuda("cuda")}) {
    const Device device = probe_device({.nvml = failing, .cuda = cuda("cuda")});
    EXPECT_EQ(device.label, "Made-up GPU 24GB") << failing;
    EXPECT_EQ(device.source, "the CUDA driver");
    EXPECT_EQ(device.capability, (Capability{8, 9}));
    EXPECT_EQ(device.memory_bytes, 25282281472);
    EXPECT_EQ(device.sm_count, 128);
    ASSERT_TRUE(device.memory_bandwidth_bytes_per_s);
    EXPECT_DOUBLE_EQ(*device.memory_bandwidth_bytes_per_s, 10501e6 * 2 * 48);
  }
}

TEST(ProbeDevice, NothingFound_IsTheCpuWithEveryReason) {
  const Device missing = probe_device({.nvml = kNowhere, .cuda = kNowhere});
  EXPECT_EQ(missing.platform, Platform::kCpu);
  EXPECT_EQ(missing.id, "cpu");
  EXPECT_THAT(missing.source, HasSubstr("no NVIDIA GPU was found (NVML: /no/such/library.so.1: "));
  EXPECT_THAT(missing.source, HasSubstr("; CUDA driver: /no/such/library.so.1: "));

  const Device failing = probe_device({.nvml = nvml("nvml_failing"), .cuda = cuda("cuda_empty")});
  EXPECT_EQ(failing.source,
            "no NVIDIA GPU was found (NVML: it does not start: Driver Not Loaded; CUDA driver: it "
            "has no device)");

  const Device neither = probe_device({.nvml = cuda("cuda"), .cuda = nvml("nvml")});
  EXPECT_THAT(neither.source, HasSubstr("lacks functions of NVML"));
  EXPECT_THAT(neither.source, HasSubstr("lacks functions of the driver API"));
}

TEST(ProbeDevice, ThisMachine_GivesADeviceThatCanBeAskedAbout) {
  const Device device = probe_device();
  EXPECT_FALSE(device.source.empty());
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

TEST(MemoryBandwidth, UnknownClockOrBus_IsUnknown) {
  EXPECT_FALSE(memory_bandwidth(0, 384));
  EXPECT_FALSE(memory_bandwidth(1e9, 0));
  EXPECT_DOUBLE_EQ(memory_bandwidth(1e9, 64).value_or(0), 16e9);
}

}  // namespace
}  // namespace kernelpath::hardware
