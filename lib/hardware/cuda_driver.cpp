#include "hardware/driver_library.h"
#include "hardware/probe.h"

#include <array>
#include <cstddef>

namespace kernelpath::hardware {
namespace {

// Own declarations of the six driver calls (CUDA driver API, stable since CUDA 3.2), because the
// toolkit's header may be missing where the driver is there.
constexpr int kSuccess = 0;
enum Attribute : int {
  kMultiprocessorCount = 16,
  kMemoryClockKhz = 36,
  kMemoryBusBits = 37,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
};

struct Driver {
  explicit Driver(const DriverLibrary& library)
      : initialise(library.function<int (*)(unsigned)>("cuInit")),
        device_count(library.function<int (*)(int*)>("cuDeviceGetCount")),
        device(library.function<int (*)(int*, int)>("cuDeviceGet")),
        device_name(library.function<int (*)(char*, int, int)>("cuDeviceGetName")),
        device_attribute(library.function<int (*)(int*, int, int)>("cuDeviceGetAttribute")),
        device_memory(library.function<int (*)(std::size_t*, int)>("cuDeviceTotalMem_v2")) {}

  int (*initialise)(unsigned);
  int (*device_count)(int*);
  int (*device)(int*, int);
  int (*device_name)(char*, int, int);
  int (*device_attribute)(int*, int, int);
  int (*device_memory)(std::size_t*, int);

  [[nodiscard]] bool complete() const {
    return initialise != nullptr && device_count != nullptr && device != nullptr &&
           device_name != nullptr && device_attribute != nullptr && device_memory != nullptr;
  }

  // 0 where the driver does not say.
  [[nodiscard]] int attribute(Attribute which, int handle) const {
    int value = 0;
    return device_attribute(&value, which, handle) == kSuccess ? value : 0;
  }
};

std::optional<Device> describe(const Driver& driver, int handle) {
  std::array<char, 256> name{};
  std::size_t memory = 0;
  const auto name_bytes = static_cast<int>(name.size()) - 1;
  const Capability capability = {driver.attribute(kCapabilityMajor, handle),
                                 driver.attribute(kCapabilityMinor, handle)};
  const bool known = driver.device_name(name.data(), name_bytes, handle) == kSuccess &&
                     driver.device_memory(&memory, handle) == kSuccess && capability.major > 0;
  if (!known) return std::nullopt;
  Device device{.id = std::string(kProbedId), .label = name.data(), .source = "the CUDA driver"};
  device.capability = capability;
  device.memory_bytes = static_cast<std::int64_t>(memory);
  const int multiprocessors = driver.attribute(kMultiprocessorCount, handle);
  if (multiprocessors > 0) device.sm_count = multiprocessors;
  constexpr double kHertz = 1000;
  device.memory_bandwidth_bytes_per_s = memory_bandwidth(
      driver.attribute(kMemoryClockKhz, handle) * kHertz, driver.attribute(kMemoryBusBits, handle));
  return device;
}

}  // namespace

ProbeAnswer ask_cuda_driver(const std::string& library) {
  const DriverLibrary loaded(library);
  if (!loaded.loaded()) return {.problem = loaded.problem()};
  const Driver driver(loaded);
  if (!driver.complete()) return {.problem = library + " lacks functions of the driver API"};
  int count = 0;
  int handle = 0;
  if (driver.initialise(0) != kSuccess || driver.device_count(&count) != kSuccess) {
    return {.problem = "the driver does not start"};
  }
  if (count <= 0 || driver.device(&handle, 0) != kSuccess) return {.problem = "it has no device"};
  std::optional<Device> device = describe(driver, handle);
  if (!device) return {.problem = "its first device does not describe itself"};
  return {.device = std::move(device)};
}

}  // namespace kernelpath::hardware
