#include "hardware/device.h"

#include "base/text.h"
#include "hardware/device_table.h"

#include <algorithm>

namespace kernelpath::hardware {
namespace {

// Read on an H200: nvidia-smi reports 143,771 MiB, the driver gives a process 143,156 MiB. Taken
// for every NVIDIA GPU of the table, since a model that needs these bytes fails on all of them.
constexpr std::int64_t kDriverReserveBytes = std::int64_t{615} << 20;

Device to_device(const DeviceRow& row) {
  Device device{.id = std::string(row.id),
                .label = std::string(row.label),
                .platform = row.platform,
                .gfx_target = std::string(row.gfx_target),
                .source = std::string(row.source)};
  if (row.capability.major != 0) device.capability = row.capability;
  if (row.memory_mib != 0) device.memory_bytes = row.memory_mib << 20;
  if (row.platform == Platform::kCuda) device.reserved_bytes = kDriverReserveBytes;
  if (row.sm_count != 0) device.sm_count = row.sm_count;
  if (row.bandwidth_gb_per_s != 0)
    device.memory_bandwidth_bytes_per_s = row.bandwidth_gb_per_s * 1e9;
  return device;
}

// "RTX 4090" and "rtx-4090" are both "rtx4090".
std::string squeezed(std::string_view name) {
  std::string out = to_lower(name);
  std::erase_if(out, [](char c) { return c == '-' || c == '_' || c == ' '; });
  return out;
}

Error shared_name_error(const SharedName& shared) {
  const std::vector<std::string> ids(shared.ids.begin(), shared.ids.end());
  return Error{.code = ErrorCode::kUsageUnknown,
               .message = "'" + std::string(shared.name) +
                          "' is a name of several devices: " + join_words(ids, "and"),
               .hint = "give one of these, or --sm and --memory",
               .near_matches = ids};
}

Error unknown_device_error(std::string_view name) {
  std::vector<std::string_view> candidates;
  for (const DeviceRow& row : device_rows()) candidates.push_back(row.id);
  return Error{.code = ErrorCode::kUsageUnknown,
               .message = "unknown device '" + escape_for_terminal(shorten(name, 64)) + "'",
               .hint =
                   "--list devices shows the known ones; any other is described by --sm and "
                   "--memory",
               .near_matches = near_matches(shorten(name, 64), candidates)};
}

}  // namespace

std::string_view platform_name(Platform platform) {
  switch (platform) {
    case Platform::kCuda:
      return "cuda";
    case Platform::kRocm:
      return "rocm";
    case Platform::kAscend:
      return "ascend";
    case Platform::kCpu:
      return "cpu";
  }
  return "";
}

std::optional<std::int64_t> Device::usable_bytes() const {
  if (!memory_bytes) return std::nullopt;
  return std::max<std::int64_t>(*memory_bytes - reserved_bytes, 0);
}

std::span<const Device> known_devices() {
  static const std::vector<Device> devices = [] {
    std::vector<Device> out;
    for (const DeviceRow& row : device_rows()) out.push_back(to_device(row));
    return out;
  }();
  return devices;
}

Result<Device> find_device(std::string_view name) {
  const std::string wanted = squeezed(name);
  for (const DeviceRow& row : device_rows()) {
    if (squeezed(row.id) == wanted) return to_device(row);
  }
  for (const SharedName& shared : shared_names()) {
    if (wanted == shared.name) return fail(shared_name_error(shared));
  }
  return fail(unknown_device_error(name));
}

Device device_from_capability(Capability capability, std::optional<std::int64_t> memory_bytes) {
  const std::string id = capability_text(capability);
  return Device{.id = id,
                .label = "CUDA device of compute capability " + std::to_string(capability.major) +
                         "." + std::to_string(capability.minor),
                .platform = Platform::kCuda,
                .capability = capability,
                .memory_bytes = memory_bytes,
                .source = memory_bytes ? "--sm and --memory" : "--sm"};
}

}  // namespace kernelpath::hardware
