#include "bench/cpu_machine.h"

#include "base/host_memory.h"
#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <unistd.h>

namespace kernelpath::bench {
namespace {

// "model name : …" of the first processor.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

std::int64_t memory_bytes() {
  const std::int64_t pages = sysconf(_SC_PHYS_PAGES);
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages * page : 0;
}

// Pages are given when they are touched: a system that then has none left ends the process, or
// another one. A sixteenth is left to it.
Result<void> check_room(std::int64_t bytes, std::string_view what) {
  const std::optional<std::int64_t> available = available_host_bytes();
  if (!available || bytes <= *available - *available / 16) return {};
  return fail({.code = ErrorCode::kResource,
               .message = fmt::format("no memory for {} of {}: {} are available",
                                      format_bytes(bytes), what, format_bytes(*available)),
               .hint = "take a smaller shape"});
}

}  // namespace

std::int64_t last_cache_bytes() {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  const std::int64_t third = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::int64_t second = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return std::max({third, second, std::int64_t{0}});
#else
  return 0;
#endif
}

CpuMachine::CpuMachine(const CpuOptions& options)
    : executor_(options.threads, options.isa), pool_(options.threads) {
  facts_ = {.id = "cpu",
            .label = processor_name(),
            .memory_bytes = memory_bytes(),
            .cache_bytes = last_cache_bytes(),
            .threads = options.threads,
            .kernels = std::string(kernels::cpu::isa_name(options.isa)),
            .huge_pages = true,
            .driver = {},
            .sm = 0,
            .num_sms = 0,
            .clocks = {}};
}

Result<HugeMemory> CpuMachine::filled(std::int64_t bytes, const BitPattern& pattern,
                                      std::string_view what) {
  KERNELPATH_CHECK_OK(check_room(bytes, what));
  KERNELPATH_TRY(memory, HugeMemory::allocate(bytes, what));
  const std::span data(memory.data(), static_cast<std::size_t>(bytes));
  const std::uint64_t seed = seed_;
  seed_ += static_cast<std::uint64_t>(bytes);
  pool_.run([&](const kernels::cpu::Team& team) { fill_random(team, data, pattern, seed); });
  // Less than a huge page lies in small ones whatever the system does.
  constexpr std::int64_t kHugePage = std::int64_t{1} << 21;
  if (bytes >= kHugePage) facts_.huge_pages = facts_.huge_pages && memory.huge_pages();
  return std::move(memory);
}

std::int64_t CpuMachine::copies(std::int64_t bytes, bool cold) const {
  if (!cold || bytes <= 0) return 1;
  constexpr std::int64_t kMost = 4096;
  // Twice the cache passes by before a copy is used again.
  return std::clamp<std::int64_t>(2 * cache_bytes() / bytes + 1, 1, kMost);
}

CacheState CpuMachine::state(std::int64_t bytes, std::int64_t copies) const {
  return bytes * copies > cache_bytes() ? CacheState::kMemory : CacheState::kWarm;
}

double timed(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Result<double> TeamWorkload::run(std::int64_t launches) {
  const std::int64_t first = passes_;
  passes_ += launches;
  return timed([&] {
    pool_->run([&](const kernels::cpu::Team& team) {
      for (std::int64_t i = 0; i < launches; ++i) {
        body_(team, first + i);
        team.barrier();
      }
    });
  });
}

Result<double> OpsJob::run(std::int64_t launches) {
  const std::int64_t first = passes_;
  passes_ += launches;
  return timed([&] {
    machine_->executor().run([&](kernels::Ops& ops) {
      for (std::int64_t i = 0; i < launches; ++i) launch(ops, first + i);
    });
  });
}

std::string OpsJob::kernel() const {
  return std::string(kernels::cpu::isa_name(machine_->executor().isa()));
}

}  // namespace kernelpath::bench
