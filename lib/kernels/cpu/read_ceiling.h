#pragma once

#include "base/huge_memory.h"
#include "base/result.h"
#include "kernels/cpu/team.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// How fast this machine's memory can be read: what decoding is measured against, since it reads
// every weight and every key and value once for a token.
namespace kernelpath::kernels::cpu {

// How a thread walks its share of the memory.
struct ReadPattern {
  int streams = 1;                  // runs of addresses that are read by turns: 1, 2 or 4
  std::int64_t prefetch_bytes = 0;  // asked for ahead of each stream; 0: the processor's own only

  friend bool operator==(const ReadPattern&, const ReadPattern&) = default;
};
// Which of them is fastest differs between machines, and with the footprint.
inline constexpr std::array kReadPatterns{
    ReadPattern{.streams = 1, .prefetch_bytes = 0},
    ReadPattern{.streams = 1, .prefetch_bytes = 1024},
    ReadPattern{.streams = 2, .prefetch_bytes = 1024},
    ReadPattern{.streams = 4, .prefetch_bytes = 512},
    ReadPattern{.streams = 4, .prefetch_bytes = 1024},
};

// Memory as the weights of a model lie: in huge pages where the system gives them, each part
// first written by the thread that reads it. No two lines hold the same.
// Errors: kResource, with the size.
Result<HugeMemory> make_read_memory(TeamPool& pool, std::int64_t bytes);

// Reads `memory` once with all threads of a team, in the widest registers of the processor, without
// any other work; returns a sum over this thread's share, which keeps the reads from being left
// out. Every thread returns when all have read their share. Bytes past the last multiple of
// 64 * streams of a share are not read.
std::uint64_t read_memory(const Team& team, std::span<const std::byte> memory,
                          const ReadPattern& pattern);

// One pass of a pattern over the memory, in seconds of wall time.
double time_read(TeamPool& pool, std::span<const std::byte> memory, const ReadPattern& pattern);

struct ReadRate {
  ReadPattern pattern = {};
  std::vector<double> seconds = {};  // of each pass

  [[nodiscard]] double median_s() const;
};

// Passes of all patterns by turns, `rounds` of each (at least 1) after one that is not counted.
// The ceiling of the machine is the least median: best_read_rate().
std::vector<ReadRate> measure_read_rates(TeamPool& pool, std::span<const std::byte> memory,
                                         int rounds);
const ReadRate& best_read_rate(std::span<const ReadRate> rates);

}  // namespace kernelpath::kernels::cpu
