// read_ceiling BYTES THREADS ROUNDS: how fast this machine reads memory of that size, as JSON.
#include "kernels/cpu/read_ceiling.h"

#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <iostream>
#include <span>
#include <string>
#include <vector>

namespace kernelpath {
namespace {

using kernels::cpu::ReadRate;

int measure(std::int64_t bytes, int threads, int rounds) {
  kernels::cpu::TeamPool pool(threads);
  const Result<HugeMemory> memory = kernels::cpu::make_read_memory(pool, bytes);
  if (!memory) {
    std::cerr << "read_ceiling: " << memory.error().text() << '\n';
    return 5;
  }
  const std::span<const std::byte> all{memory->data(), static_cast<std::size_t>(bytes)};
  std::vector<std::string> patterns;
  for (const ReadRate& rate : kernels::cpu::measure_read_rates(pool, all, rounds)) {
    patterns.push_back(fmt::format(
        R"({{"streams": {}, "prefetch_bytes": {}, "seconds": [{:.6f}]}})", rate.pattern.streams,
        rate.pattern.prefetch_bytes, fmt::join(rate.seconds, ", ")));
  }
  std::cout << fmt::format(R"({{"bytes": {}, "threads": {}, "huge_pages": {}, "patterns": [{}]}})",
                           bytes, threads, memory->huge_pages(), fmt::join(patterns, ", "))
            << '\n';
  return 0;
}

}  // namespace
}  // namespace kernelpath

int main(int argc, char** argv) {
  std::array<std::int64_t, 3> numbers{};
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  bool valid = arguments.size() == numbers.size() + 1;
  for (std::size_t i = 0; valid && i < numbers.size(); ++i) {
    const auto number = kernelpath::parse_integer(arguments[i + 1]);
    valid = number && *number >= 1;
    if (valid) numbers[i] = *number;
  }
  if (!valid) {
    std::cerr << "usage: read_ceiling BYTES THREADS ROUNDS (each at least 1)\n";
    return 2;
  }
  return kernelpath::measure(numbers[0], static_cast<int>(numbers[1]),
                             static_cast<int>(numbers[2]));
}
