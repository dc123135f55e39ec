#include "hardware/driver_library.h"
#include "hardware/probe.h"

#include <array>
#include <string_view>
#include <utility>

namespace kernelpath::hardware {
namespace {

// Own declarations of the calls used, because nvml.h comes with the toolkit only and the library
// with every driver. Names and numbers are those of NVIDIA's NVML API reference.
constexpr int kSuccess = 0;
constexpr int kMemoryClock = 2;  // NVML_CLOCK_MEM

using Handle = struct nvmlDevice_st*;

struct MemoryInfo {
  unsigned long long total = 0;
  unsigned long long free = 0;
  unsigned long long used = 0;
};

struct MemoryInfoV2 {
  unsigned version = 0;
  unsigned long long total = 0;
  unsigned long long reserved = 0;  // by the driver and firmware
  unsigned long long free = 0;
  unsigned long long used = 0;
};
constexpr unsigned kMemoryInfoV2 = sizeof(MemoryInfoV2) | (2U << 24U);

// FP32 cores of a multiprocessor. Source: CUDA C++ Programming Guide, compute capabilities.
std::int64_t cores_per_multiprocessor(Capability capability) {
  constexpr std::int64_t kFew = 64;
  constexpr std::int64_t kMany = 128;
  const bool few =
      capability.major == 7 || capability == Capability{8, 0} || capability == Capability{6, 0};
  return few ? kFew : kMany;
}

class Nvml {
 public:
  explicit Nvml(const DriverLibrary& library)
      : library_(library),
        initialise_(library.function<int (*)()>("nvmlInit_v2")),
        shutdown_(library.function<int (*)()>("nvmlShutdown")),
        count_(library.function<int (*)(unsigned*)>("nvmlDeviceGetCount_v2")),
        handle_(library.function<int (*)(unsigned, Handle*)>("nvmlDeviceGetHandleByIndex_v2")),
        name_(library.function<int (*)(Handle, char*, unsigned)>("nvmlDeviceGetName")),
        capability_(
            library.function<int (*)(Handle, int*, int*)>("nvmlDeviceGetCudaComputeCapability")) {}

  [[nodiscard]] bool complete() const {
    return initialise_ != nullptr && shutdown_ != nullptr && count_ != nullptr &&
           handle_ != nullptr && name_ != nullptr && capability_ != nullptr;
  }

  [[nodiscard]] ProbeAnswer ask() const {
    if (const int code = initialise_(); code != kSuccess) {
      return {.problem = "it does not start: " + error_text(code)};
    }
    ProbeAnswer answer = first_device();
    shutdown_();
    return answer;
  }

 private:
  [[nodiscard]] ProbeAnswer first_device() const {
    unsigned count = 0;
    Handle handle = nullptr;
    if (count_(&count) != kSuccess || count == 0) return {.problem = "it has no device"};
    if (const int code = handle_(0, &handle); code != kSuccess) {
      return {.problem = "its first device cannot be asked: " + error_text(code)};
    }
    std::array<char, 96> name{};
    Capability capability;
    const bool known =
        name_(handle, name.data(), static_cast<unsigned>(name.size()) - 1) == kSuccess &&
        capability_(handle, &capability.major, &capability.minor) == kSuccess;
    if (!known) return {.problem = "its first device does not describe itself"};
    Device device{.id = std::string(kProbedId), .label = name.data(), .source = source()};
    device.capability = capability;
    if (!read_memory(handle, device)) return {.problem = "it does not tell the memory"};
    device.sm_count = multiprocessors(handle, capability);
    constexpr double kHertz = 1e6;
    device.memory_bandwidth_bytes_per_s = memory_bandwidth(
        memory_clock(handle) * kHertz, number(handle, "nvmlDeviceGetMemoryBusWidth"));
    return {.device = std::move(device)};
  }

  [[nodiscard]] std::string error_text(int code) const {
    const auto text = library_.function<const char* (*)(int)>("nvmlErrorString");
    return text != nullptr ? text(code) : "error " + std::to_string(code);
  }

  [[nodiscard]] std::string source() const {
    const auto version = library_.function<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
    std::array<char, 80> text{};
    const bool known = version != nullptr &&
                       version(text.data(), static_cast<unsigned>(text.size()) - 1) == kSuccess;
    return known ? std::string("NVML, driver ") + text.data() : "NVML";
  }

  // Drivers before 510 tell the total without what they keep of it.
  bool read_memory(Handle handle, Device& device) const {
    const auto newer =
        library_.function<int (*)(Handle, MemoryInfoV2*)>("nvmlDeviceGetMemoryInfo_v2");
    MemoryInfoV2 info{.version = kMemoryInfoV2};
    if (newer != nullptr && newer(handle, &info) == kSuccess) {
      device.memory_bytes = static_cast<std::int64_t>(info.total);
      device.reserved_bytes = static_cast<std::int64_t>(info.reserved);
      return true;
    }
    const auto older = library_.function<int (*)(Handle, MemoryInfo*)>("nvmlDeviceGetMemoryInfo");
    MemoryInfo plain;
    if (older == nullptr || older(handle, &plain) != kSuccess) return false;
    device.memory_bytes = static_cast<std::int64_t>(plain.total);
    return true;
  }

  // A call that gives one number of a device; 0 where it is not there or fails.
  [[nodiscard]] unsigned number(Handle handle, const char* call) const {
    const auto ask = library_.function<int (*)(Handle, unsigned*)>(call);
    unsigned value = 0;
    return ask != nullptr && ask(handle, &value) == kSuccess ? value : 0;
  }

  [[nodiscard]] unsigned memory_clock(Handle handle) const {
    const auto ask =
        library_.function<int (*)(Handle, int, unsigned*)>("nvmlDeviceGetMaxClockInfo");
    unsigned mhz = 0;
    return ask != nullptr && ask(handle, kMemoryClock, &mhz) == kSuccess ? mhz : 0;
  }

  [[nodiscard]] std::optional<std::int64_t> multiprocessors(Handle handle,
                                                            Capability capability) const {
    const std::int64_t cores = number(handle, "nvmlDeviceGetNumGpuCores");
    if (cores == 0) return std::nullopt;
    return cores / cores_per_multiprocessor(capability);
  }

  const DriverLibrary& library_;
  int (*initialise_)();
  int (*shutdown_)();
  int (*count_)(unsigned*);
  int (*handle_)(unsigned, Handle*);
  int (*name_)(Handle, char*, unsigned);
  int (*capability_)(Handle, int*, int*);
};

}  // namespace

ProbeAnswer ask_nvml(const std::string& library) {
  const DriverLibrary loaded(library);
  if (!loaded.loaded()) return {.problem = loaded.problem()};
  const Nvml nvml(loaded);
  if (!nvml.complete()) return {.problem = library + " lacks functions of NVML"};
  return nvml.ask();
}

}  // namespace kernelpath::hardware
