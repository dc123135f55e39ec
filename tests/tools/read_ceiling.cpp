// read_ceiling BYTES THREADS ROUNDS: how fast this machine reads memory of that size, as JSON.
#include "kernels/cpu/read_ceiling.h"

#include "base/units.h"

#include <cstdio>
#include <span>

namespace kernelpath {
namespace {

int measure(std::int64_t bytes, int threads, int rounds) {
  kernels::cpu::TeamPool pool(threads);
  const Result<HugeMemory> memory = kernels::cpu::make_read_memory(pool, bytes);
  if (!memory) {
    std::fprintf(stderr, "read_ceiling: %s\n", memory.error().text().c_str());
    return 5;
  }
  const std::span<const std::byte> all{memory->data(), static_cast<std::size_t>(bytes)};
  std::printf("{\"bytes\": %lld, \"threads\": %d, \"huge_pages\": %s, \"patterns\": [",
              static_cast<long long>(bytes), threads, memory->huge_pages() ? "true" : "false");
  const char* separator = "";
  for (const auto& rate : kernels::cpu::measure_read_rates(pool, all, rounds)) {
    std::printf("%s{\"streams\": %d, \"prefetch_bytes\": %lld, \"seconds\": [", separator,
                rate.pattern.streams, static_cast<long long>(rate.pattern.prefetch_bytes));
    separator = "";
    for (const double seconds : rate.seconds) {
      std::printf("%s%.6f", separator, seconds);
      separator = ", ";
    }
    std::printf("]}");
  }
  std::printf("]}\n");
  return 0;
}

}  // namespace
}  // namespace kernelpath

int main(int argc, char** argv) {
  std::int64_t numbers[3] = {};
  for (int i = 0; i < 3; ++i) {
    const auto number =
        argc == 4 ? kernelpath::parse_integer(argv[i + 1]) : kernelpath::Result<std::int64_t>(0);
    if (!number || *number < 1) {
      std::fprintf(stderr, "usage: read_ceiling BYTES THREADS ROUNDS (each at least 1)\n");
      return 2;
    }
    numbers[i] = *number;
  }
  return kernelpath::measure(numbers[0], static_cast<int>(numbers[1]),
                             static_cast<int>(numbers[2]));
}
