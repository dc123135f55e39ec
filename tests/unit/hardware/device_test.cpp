#include "hardware/device.h"

#include "hardware/device_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace kernelpath::hardware {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(KnownDevices, Ids_AreUniqueEvenWithoutDashes) {
  std::set<std::string> ids;
  for (const Device& device : known_devices()) {
    std::string id = device.id;
    std::erase(id, '-');
    EXPECT_TRUE(ids.insert(id).second) << device.id;
  }
}

TEST(KnownDevices, Order_IsPlatformThenCapabilityThenId) {
  const auto key = [](const Device& d) {
    return std::tuple(d.platform, d.capability.value_or(Capability{}), d.id);
  };
  const auto devices = known_devices();
  for (std::size_t i = 1; i < devices.size(); ++i) {
    EXPECT_LT(key(devices[i - 1]), key(devices[i])) << devices[i].id;
  }
}

TEST(KnownDevices, CudaDevices_HaveAKnownCapabilityAndOthersHaveNone) {
  for (const Device& device : known_devices()) {
    if (device.platform == Platform::kCuda) {
      ASSERT_TRUE(device.capability.has_value()) << device.id;
      EXPECT_THAT(known_capabilities(), Contains(*device.capability)) << device.id;
    } else {
      EXPECT_FALSE(device.capability.has_value()) << device.id;
    }
  }
}

TEST(KnownDevices, Capabilities_AreAllServedByADevice) {
  for (const Capability capability : known_capabilities()) {
    const auto devices = known_devices();
    EXPECT_TRUE(std::any_of(devices.begin(), devices.end(), [&](const Device& d) {
      return d.capability == capability;
    })) << capability_text(capability);
  }
}

TEST(KnownDevices, Numbers_ArePositiveAndHaveASource) {
  for (const Device& device : known_devices()) {
    EXPECT_FALSE(device.source.empty()) << device.id;
    EXPECT_FALSE(device.label.empty()) << device.id;
    if (device.platform == Platform::kCpu) continue;
    EXPECT_GT(device.memory_bytes.value_or(0), std::int64_t{4} << 30) << device.id;
    if (device.platform != Platform::kAscend) {
      EXPECT_GT(device.sm_count.value_or(0), 0) << device.id;
    }
    EXPECT_GT(device.memory_bandwidth_bytes_per_s.value_or(0), 1e11) << device.id;
  }
}

TEST(KnownDevices, RocmDevices_NameTheirProcessorAndOthersHaveNone) {
  for (const Device& device : known_devices()) {
    EXPECT_EQ(device.gfx_target.starts_with("gfx"), device.platform == Platform::kRocm)
        << device.id;
  }
}

TEST(SharedNames, Ids_AreInTheTableAndTheNameIsNot) {
  const auto rows = device_rows();
  const auto has = [&](std::string_view id) {
    return std::any_of(rows.begin(), rows.end(), [&](const DeviceRow& r) { return r.id == id; });
  };
  for (const SharedName& shared : shared_names()) {
    EXPECT_FALSE(has(shared.name)) << shared.name;
    EXPECT_GT(shared.ids.size(), 1U);
    for (const std::string_view id : shared.ids) EXPECT_TRUE(has(id)) << id;
  }
}

TEST(FindDevice, H200_HasTheNumbersThatItsToolReports) {
  const auto device = find_device("h200");
  ASSERT_TRUE(device.has_value());
  EXPECT_EQ(device->capability, (Capability{9, 0}));
  EXPECT_EQ(device->memory_bytes, std::int64_t{143771} << 20);
  EXPECT_EQ(device->sm_count, 132);
  EXPECT_DOUBLE_EQ(device->memory_bandwidth_bytes_per_s.value_or(0), 4.8e12);
}

TEST(FindDevice, H200_GivesAProcessWhatTheDriverGives) {
  EXPECT_EQ(find_device("h200")->usable_bytes(), std::int64_t{143'156} << 20);
  // A size that the user states is taken as it is.
  EXPECT_EQ(device_from_capability({9, 0}, std::int64_t{1} << 30).usable_bytes(),
            std::int64_t{1} << 30);
  EXPECT_EQ(device_from_capability({9, 0}).usable_bytes(), std::nullopt);
}

TEST(FindDevice, CaseBlanksAndDashes_DoNotCount) {
  for (const char* name : {"RTX4090", "rtx-4090", "RTX 4090", "rtx_4090"}) {
    const auto device = find_device(name);
    ASSERT_TRUE(device.has_value()) << name;
    EXPECT_EQ(device->id, "rtx4090");
  }
}

TEST(FindDevice, SharedProductName_AsksForAnIdOrTheCapability) {
  const auto device = find_device("H100");
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().code, ErrorCode::kUsageUnknown);
  EXPECT_THAT(device.error().message, HasSubstr("h100-sxm, h100-pcie and h100-nvl"));
  EXPECT_THAT(device.error().hint, HasSubstr("--sm"));
  EXPECT_THAT(device.error().near_matches, Contains("h100-sxm"));
}

TEST(FindDevice, UnknownName_GivesNearMatches) {
  const auto device = find_device("l40z");
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().code, ErrorCode::kUsageUnknown);
  EXPECT_THAT(device.error().near_matches, Contains("l40s"));
}

TEST(FindDevice, HostileName_IsEscapedAndShort) {
  const auto device = find_device(std::string(100000, 'x') + "\x1b[31m");
  ASSERT_FALSE(device.has_value());
  EXPECT_LT(device.error().message.size(), 200U);
  EXPECT_EQ(find_device("\x1b[31mh100").error().message.find('\x1b'), std::string::npos);
  EXPECT_FALSE(find_device("").has_value());
}

TEST(PlatformName, Platforms_HaveTheirNames) {
  EXPECT_EQ(platform_name(Platform::kCuda), "cuda");
  EXPECT_EQ(platform_name(Platform::kRocm), "rocm");
  EXPECT_EQ(platform_name(Platform::kAscend), "ascend");
  EXPECT_EQ(platform_name(Platform::kCpu), "cpu");
}

TEST(DeviceFromCapability, MemoryNotGiven_StaysUnknown) {
  const Device device = device_from_capability({10, 3});
  EXPECT_EQ(device.id, "sm103");
  EXPECT_EQ(device.capability, (Capability{10, 3}));
  EXPECT_EQ(device.platform, Platform::kCuda);
  EXPECT_FALSE(device.memory_bytes.has_value());
  EXPECT_FALSE(device.sm_count.has_value());
  EXPECT_EQ(device_from_capability({9, 0}, 80).memory_bytes, 80);
}

}  // namespace
}  // namespace kernelpath::hardware
