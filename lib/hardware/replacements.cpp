#include "hardware/replacements.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

namespace kernelpath::hardware {
namespace {

// Words of the product names of boards that no server is built with.
constexpr std::array<std::string_view, 6> kDeskWords = {"GeForce", "RTX",    "Jetson",
                                                        "Spark",   "Radeon", "Ryzen"};

enum class Generation : std::uint8_t { kSame, kNewer, kOlder };

Generation generation(const Device& device, const Device& asked) {
  // Without a capability there is no older or newer: a CPU, or another vendor's device.
  if (!asked.capability || !device.capability || device.capability == asked.capability) {
    return Generation::kSame;
  }
  return *device.capability > *asked.capability ? Generation::kNewer : Generation::kOlder;
}

auto rank(const Device& device, const Device& asked) {
  return std::tuple(device_class(device) != device_class(asked), generation(device, asked),
                    device.usable_bytes().value_or(0), device.capability.value_or(Capability{}));
}

}  // namespace

DeviceClass device_class(const Device& device) {
  const bool desk = std::any_of(kDeskWords.begin(), kDeskWords.end(), [&](std::string_view word) {
    return device.label.find(word) != std::string::npos;
  });
  return desk ? DeviceClass::kDesk : DeviceClass::kServer;
}

std::vector<const Device*> replacements(const Device& asked) {
  const Platform platform = asked.platform == Platform::kCpu ? Platform::kCuda : asked.platform;
  std::vector<const Device*> out;
  for (const Device& device : known_devices()) {
    if (device.platform == platform && device.id != asked.id) out.push_back(&device);
  }
  std::stable_sort(out.begin(), out.end(), [&asked](const Device* a, const Device* b) {
    return rank(*a, asked) < rank(*b, asked);
  });
  return out;
}

}  // namespace kernelpath::hardware
