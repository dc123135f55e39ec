#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::hardware {

enum class Platform : std::uint8_t { kCuda, kRocm, kAscend, kCpu };
std::string_view platform_name(Platform platform);

// CUDA compute capability; 9.0 is {9, 0}.
struct Capability {
  int major = 0;
  int minor = 0;
  [[nodiscard]] int sm() const { return major * 10 + minor; }
  // NOLINTNEXTLINE(modernize-use-nullptr): the 0 that it generates is no pointer
  friend auto operator<=>(const Capability&, const Capability&) = default;
};
std::string capability_text(Capability capability);  // "sm90"

// A machine that a question is about; nothing is probed.
struct Device {
  std::string id = {};     // "h100-sxm", as given to --device; "sm90" for --sm
  std::string label = {};  // "NVIDIA H100 SXM5 80 GB"
  Platform platform = Platform::kCuda;
  std::optional<Capability> capability = {};      // CUDA only
  std::string gfx_target = {};                    // ROCm only: "gfx942"
  std::optional<std::int64_t> memory_bytes = {};  // what the vendor's tool reports as total
  // What the driver keeps of it: a process never sees these bytes. 0 where the size was stated by
  // the user, or read from the driver itself.
  std::int64_t reserved_bytes = 0;
  std::optional<std::int64_t> sm_count = {};
  std::optional<double> memory_bandwidth_bytes_per_s = {};
  std::string source = {};  // of the numbers

  // What a process can allocate at most.
  [[nodiscard]] std::optional<std::int64_t> usable_bytes() const;
};

// The table of known devices, in the order of --list devices.
std::span<const Device> known_devices();

// By id, any case; '-', '_' and blanks do not count ("RTX 4090" is rtx4090). Error kUsageUnknown
// with near matches; a product name that several chips share asks for one of their ids, or for
// --sm.
Result<Device> find_device(std::string_view name);

// CUDA capabilities that kernelpath knows, ascending.
std::span<const Capability> known_capabilities();

// "9", "90", "sm90", "sm_90a", "9.0", "10.0", "100", "12.1" → one normal form. Error kUsageUnknown
// with the list of known capabilities.
Result<Capability> parse_capability(std::string_view text);

// The device that --sm (with --memory, in bytes) describes; what is not given stays unknown.
Device device_from_capability(Capability capability, std::optional<std::int64_t> memory_bytes = {});

}  // namespace kernelpath::hardware
