#include "bench/cuda_machine.h"

#include "base/checked.h"
#include "hardware/driver_library.h"
#include "kernels/cuda/ceilings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

namespace kernelpath::bench {
namespace {

namespace cuda = kernels::cuda;

constexpr std::int64_t kBlockBytes = std::int64_t{64} << 20;  // of random data
constexpr std::int64_t kCeilingBytes = std::int64_t{8} << 30;

int host_threads() {
  constexpr unsigned kMost = 16;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, kMost));
}

// Own declarations of the calls used. Names and numbers are those of NVML's API reference.
constexpr int kSmClock = 1;  // NVML_CLOCK_SM

struct Nvml {
  using Device = struct nvmlDevice_st*;
  hardware::DriverLibrary library = hardware::DriverLibrary("libnvidia-ml.so.1");
  int (*start)() = library.function<int (*)()>("nvmlInit_v2");
  // By the bus: its numbers are not those of CUDA, which a variable may have changed.
  int (*find)(const char*, Device*) =
      library.function<int (*)(const char*, Device*)>("nvmlDeviceGetHandleByPciBusId_v2");
  int (*clock)(Device, int, unsigned*) =
      library.function<int (*)(Device, int, unsigned*)>("nvmlDeviceGetClockInfo");
  int (*reasons)(Device, unsigned long long*) =
      library.function<int (*)(Device, unsigned long long*)>(
          "nvmlDeviceGetCurrentClocksThrottleReasons");

  [[nodiscard]] bool complete() const {
    return start != nullptr && find != nullptr && clock != nullptr && reasons != nullptr;
  }
};

const Nvml& nvml_library() {
  static const Nvml kLibrary;
  return kLibrary;
}

// What NVML says holds the clocks down; names are those of its API reference.
std::string throttle_text(unsigned long long reasons) {
  struct Reason {
    unsigned long long bit;
    std::string_view name;
  };
  constexpr std::array kReasons = {
      Reason{0x4, "power cap"},         Reason{0x8, "hardware slowdown"},
      Reason{0x20, "software thermal"}, Reason{0x40, "hardware thermal"},
      Reason{0x80, "power brake"},
  };
  std::string out;
  for (const Reason& reason : kReasons) {
    if ((reasons & reason.bit) != 0) out += (out.empty() ? "" : ", ") + std::string(reason.name);
  }
  return out.empty() ? out : "clocks are held down: " + out;
}

}  // namespace

Result<std::unique_ptr<CudaMachine>> CudaMachine::open(int index) {
  KERNELPATH_TRY(count, cuda::device_count());
  if (index >= count) {
    return fail(
        {.code = ErrorCode::kUnavailable,
         .message = fmt::format("there is no CUDA device {}; this machine has {}", index, count),
         .where = "--device"});
  }
  KERNELPATH_CHECK_OK(cuda::use_device(index));
  KERNELPATH_TRY(info, cuda::device_info());
  KERNELPATH_TRY(stream, cuda::Stream::create());
  KERNELPATH_TRY(sink, Buffer::allocate(256));
  std::unique_ptr<CudaMachine> out(
      new CudaMachine(std::move(info), std::move(stream), std::move(sink)));
  out->facts_.id = fmt::format("cuda:{}", index);
  return out;
}

CudaMachine::CudaMachine(cuda::DeviceInfo info, cuda::Stream stream, Buffer sink)
    : info_(std::move(info)),
      stream_(std::move(stream)),
      sink_(std::move(sink)),
      host_(host_threads(), kernels::cpu::Isa::kReference) {
  facts_.label = info_.name;
  facts_.memory_bytes = info_.memory_bytes;
  facts_.cache_bytes = info_.l2_bytes;
  facts_.driver = fmt::format("CUDA {}.{}", info_.driver / 1000, info_.driver % 1000 / 10);
  facts_.sm = info_.sm;
  facts_.num_sms = info_.num_sms;
  facts_.clocks = fmt::format("not locked by us, {} MHz at most", info_.clock_khz / 1000);
}

Result<Buffer> CudaMachine::filled(std::int64_t bytes, const BitPattern& pattern) {
  if (bytes == 0) return Buffer();
  KERNELPATH_TRY(buffer, Buffer::allocate(bytes));
  std::vector<std::byte> block(static_cast<std::size_t>(std::min(bytes, kBlockBytes)));
  fill_random({}, block, pattern, static_cast<std::uint64_t>(bytes));
  const auto size = static_cast<std::int64_t>(block.size());
  KERNELPATH_CHECK_OK(cuda::copy_to_device(buffer.data(), block.data(), size));
  for (std::int64_t at = size; at < bytes; at += size) {
    KERNELPATH_CHECK_OK(cuda::copy_on_device(buffer.data() + at, buffer.data(),
                                             std::min(size, bytes - at), stream()));
  }
  KERNELPATH_CHECK_OK(stream_.wait());
  return std::move(buffer);
}

Result<Buffer> CudaMachine::copied_bytes(const void* data, std::int64_t bytes) {
  KERNELPATH_TRY(buffer, Buffer::allocate(bytes));
  KERNELPATH_CHECK_OK(cuda::copy_to_device(buffer.data(), data, bytes));
  return std::move(buffer);
}

std::int64_t CudaMachine::copies(std::int64_t bytes, bool cold) const {
  if (!cold || bytes <= 0) return 1;
  constexpr std::int64_t kMost = 1024;
  return std::clamp<std::int64_t>(2 * info_.l2_bytes / bytes + 1, 1, kMost);
}

CacheState CudaMachine::state(std::int64_t bytes, std::int64_t copies) const {
  return bytes * copies > info_.l2_bytes ? CacheState::kMemory : CacheState::kWarm;
}

Result<double> CudaMachine::gather_ceiling(std::int64_t run_bytes) {
  const auto known = ceilings_.find(run_bytes);
  if (known != ceilings_.end()) return known->second;
  KERNELPATH_TRY(free, cuda::free_memory_bytes());
  const std::int64_t runs = std::min(kCeilingBytes, free / 2) / run_bytes;
  KERNELPATH_TRY(data, filled(runs * run_bytes, kAnyBits));
  const std::vector<std::int32_t> order = random_order(runs, 5);
  KERNELPATH_TRY(table, copied(std::span(order)));
  const cuda::GatherRead read{.data = data.data(),
                              .table = reinterpret_cast<const std::int32_t*>(table.data()),
                              .num_runs = runs,
                              .run_bytes = run_bytes};
  KERNELPATH_TRY(rate, read_rate(runs * run_bytes, [&](StreamView stream) {
                   return cuda::launch_gather_read(read, sink(), stream);
                 }));
  ceilings_[run_bytes] = rate;
  return rate;
}

Result<double> CudaMachine::linear_ceiling() {
  const auto known = ceilings_.find(0);
  if (known != ceilings_.end()) return known->second;
  KERNELPATH_TRY(free, cuda::free_memory_bytes());
  constexpr std::int64_t kUnit = 16;  // bytes
  const std::int64_t bytes = std::min(kCeilingBytes, free / 2) / kUnit * kUnit;
  KERNELPATH_TRY(data, filled(bytes, kAnyBits));
  KERNELPATH_TRY(rate, read_rate(bytes, [&](StreamView stream) {
                   return cuda::launch_linear_read(data.data(), bytes, sink(), stream);
                 }));
  ceilings_[0] = rate;
  return rate;
}

Result<double> CudaMachine::read_rate(std::int64_t bytes,
                                      std::function<Result<void>(StreamView)> launch) {
  KERNELPATH_TRY(
      workload,
      GraphWorkload::capture(
          *this, {.before = {},
                  .launch = [run = std::move(launch)](std::int64_t /*pass*/, StreamView stream) {
                    return run(stream);
                  }}));
  const MeasureOptions options{.rule = {.min_time_s = 0.2, .timeout_s = 3}};
  Workload* const one = workload.get();
  KERNELPATH_TRY(measured, measure_together({&one, 1}, options));
  return static_cast<double>(bytes) / measured.front().summary.median;
}

std::string CudaMachine::throttled() {
  const Nvml& nvml = nvml_library();
  if (!nvml.complete()) return "";
  Nvml::Device device = nullptr;
  if (nvml.start() != 0 || nvml.find(info_.pci_bus_id.c_str(), &device) != 0) return "";
  unsigned mhz = 0;
  if (nvml.clock(device, kSmClock, &mhz) == 0) {
    least_mhz_ = least_mhz_ == 0 ? mhz : std::min(least_mhz_, mhz);
    most_mhz_ = std::max(most_mhz_, mhz);
    facts_.clocks = fmt::format("not locked by us, {} MHz at most, {} to {} MHz after rows",
                                info_.clock_khz / 1000, least_mhz_, most_mhz_);
  }
  unsigned long long reasons = 0;
  return nvml.reasons(device, &reasons) == 0 ? throttle_text(reasons) : "";
}

GraphWorkload::GraphWorkload(CudaMachine& machine, Body body, cuda::Event begin, cuda::Event end)
    : machine_(&machine), body_(std::move(body)), begin_(std::move(begin)), end_(std::move(end)) {}

Result<void> GraphWorkload::launch_all(StreamView stream, std::int64_t launches) const {
  if (body_.before) KERNELPATH_CHECK_OK(body_.before(stream));
  for (std::int64_t pass = 0; pass < launches; ++pass) {
    KERNELPATH_CHECK_OK(body_.launch(pass, stream));
  }
  return {};
}

Result<std::unique_ptr<GraphWorkload>> GraphWorkload::capture(CudaMachine& machine, Body body) {
  body.launches = std::max(body.launches, kGraphLaunches);
  KERNELPATH_TRY(begin, cuda::Event::create());
  KERNELPATH_TRY(end, cuda::Event::create());
  std::unique_ptr<GraphWorkload> out(
      new GraphWorkload(machine, std::move(body), std::move(begin), std::move(end)));
  const StreamView stream = machine.stream();
  // Once outside of a capture: kernels are loaded with their first launch.
  KERNELPATH_CHECK_OK(out->launch_all(stream, 1));
  KERNELPATH_CHECK_OK(cuda::synchronize());
  KERNELPATH_TRY(graph, cuda::Graph::capture(
                            stream, [&] { return out->launch_all(stream, out->body_.launches); }));
  out->graph_ = std::move(graph);
  return out;
}

Result<double> GraphWorkload::run(std::int64_t launches) {
  const StreamView stream = machine_->stream();
  KERNELPATH_CHECK_OK(begin_.record(stream));
  std::int64_t done = launches;
  if (launches < body_.launches) {
    KERNELPATH_CHECK_OK(launch_all(stream, launches));
  } else {
    const std::int64_t replays = ceil_div(launches, body_.launches);
    done = replays * body_.launches;
    for (std::int64_t i = 0; i < replays; ++i) KERNELPATH_CHECK_OK(graph_.replay(stream));
  }
  KERNELPATH_CHECK_OK(end_.record(stream));
  KERNELPATH_TRY(microseconds, end_.microseconds_since(begin_));
  return microseconds * 1e-6 * static_cast<double>(launches) / static_cast<double>(done);
}

Result<void> GraphJob::capture(GraphWorkload::Body body) {
  KERNELPATH_TRY(work, GraphWorkload::capture(*machine_, std::move(body)));
  work_ = std::move(work);
  return {};
}

Result<void> GraphJob::fill(Buffer& buffer, std::int64_t bytes, const BitPattern& pattern) {
  KERNELPATH_TRY(filled, machine_->filled(bytes, pattern));
  buffer = std::move(filled);
  return {};
}

}  // namespace kernelpath::bench
