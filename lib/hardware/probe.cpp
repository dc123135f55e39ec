#include "hardware/probe.h"

#include <array>
#include <cstddef>
#include <dlfcn.h>
#include <memory>

namespace kernelpath::hardware {
namespace {

// Own declarations of the six driver calls (CUDA driver API, stable since CUDA 3.2), because the
// toolkit's header may be missing where the driver is there.
constexpr int kSuccess = 0;
constexpr int kMultiprocessorCount = 16;
constexpr int kCapabilityMajor = 75;
constexpr int kCapabilityMinor = 76;

using CloseLibrary = int (*)(void*);
using Library = std::unique_ptr<void, CloseLibrary>;

template <class Function>
Function symbol(const Library& library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library.get(), name));
}

struct Driver {
  int (*initialise)(unsigned) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*device_attribute)(int*, int, int) = nullptr;
  int (*device_memory)(std::size_t*, int) = nullptr;

  [[nodiscard]] bool complete() const {
    return initialise != nullptr && device_count != nullptr && device != nullptr &&
           device_name != nullptr && device_attribute != nullptr && device_memory != nullptr;
  }
};

Driver load_driver(const Library& library) {
  return {symbol<int (*)(unsigned)>(library, "cuInit"),
          symbol<int (*)(int*)>(library, "cuDeviceGetCount"),
          symbol<int (*)(int*, int)>(library, "cuDeviceGet"),
          symbol<int (*)(char*, int, int)>(library, "cuDeviceGetName"),
          symbol<int (*)(int*, int, int)>(library, "cuDeviceGetAttribute"),
          symbol<int (*)(std::size_t*, int)>(library, "cuDeviceTotalMem_v2")};
}

std::optional<Device> first_cuda_device(const Driver& driver) {
  int count = 0;
  int handle = 0;
  Capability capability;
  int sm_count = 0;
  std::size_t memory = 0;
  std::array<char, 256> name{};
  const auto name_bytes = static_cast<int>(name.size()) - 1;
  const bool known =
      driver.initialise(0) == kSuccess && driver.device_count(&count) == kSuccess && count > 0 &&
      driver.device(&handle, 0) == kSuccess &&
      driver.device_name(name.data(), name_bytes, handle) == kSuccess &&
      driver.device_attribute(&capability.major, kCapabilityMajor, handle) == kSuccess &&
      driver.device_attribute(&capability.minor, kCapabilityMinor, handle) == kSuccess &&
      driver.device_attribute(&sm_count, kMultiprocessorCount, handle) == kSuccess &&
      driver.device_memory(&memory, handle) == kSuccess;
  if (!known) return std::nullopt;
  Device device{.id = "cuda:0", .label = name.data(), .source = "the CUDA driver"};
  device.capability = capability;
  device.memory_bytes = static_cast<std::int64_t>(memory);
  device.sm_count = sm_count;
  return device;
}

}  // namespace

Device probe_device() {
  // Not unloaded: the driver keeps threads of its own.
  const Library library(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), [](void*) { return 0; });
  if (library) {
    const Driver driver = load_driver(library);
    if (driver.complete()) {
      if (const std::optional<Device> device = first_cuda_device(driver)) return *device;
    }
  }
  return *find_device("cpu");
}

}  // namespace kernelpath::hardware
