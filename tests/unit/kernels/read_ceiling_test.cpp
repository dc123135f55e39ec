#include "kernels/cpu/read_ceiling.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

namespace kernelpath::kernels::cpu {
namespace {

std::span<const std::byte> bytes_of(const HugeMemory& memory) {
  return {memory.data(), static_cast<std::size_t>(memory.bytes())};
}

std::uint64_t sum_of(TeamPool& pool, std::span<const std::byte> memory,
                     const ReadPattern& pattern) {
  std::atomic<std::uint64_t> sum{0};
  pool.run([&](const Team& team) { sum ^= read_memory(team, memory, pattern); });
  return sum;
}

TEST(ReadMemory, EveryPattern_ReadsEveryWord) {
  constexpr std::int64_t kBytes =
      std::int64_t{64} * 4 * 3 * 50;  // whole lines for 4 streams of 3 threads
  TeamPool pool(3);
  const Result<HugeMemory> memory = make_read_memory(pool, kBytes);
  ASSERT_TRUE(memory);
  std::uint64_t expected = 0;
  for (std::int64_t at = 0; at < kBytes; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, memory->data() + at, sizeof(word));
    expected ^= word;
  }
  ASSERT_NE(expected, 0U);
  for (const ReadPattern& pattern : kReadPatterns) {
    EXPECT_EQ(sum_of(pool, bytes_of(*memory), pattern), expected) << pattern.streams;
  }
  // A single changed byte is seen, wherever it lies.
  for (const std::int64_t at : {std::int64_t{0}, kBytes / 2 + 17, kBytes - 1}) {
    memory->data()[at] ^= std::byte{1};
    EXPECT_NE(sum_of(pool, bytes_of(*memory), kReadPatterns.back()), expected) << at;
    memory->data()[at] ^= std::byte{1};
  }
}

TEST(ReadMemory, MemoryOfNoMultipleOfTheStreams_ReadsNothingBehindIt) {
  TeamPool pool(2);
  const Result<HugeMemory> memory = make_read_memory(pool, std::int64_t{64} * 32);
  ASSERT_TRUE(memory);
  const std::span<const std::byte> all = bytes_of(*memory);
  for (const ReadPattern& pattern : kReadPatterns) {
    const std::uint64_t before = sum_of(pool, all.first(64 * 13 + 7), pattern);
    memory->data()[64 * 13 + 7] ^= std::byte{1};
    EXPECT_EQ(sum_of(pool, all.first(64 * 13 + 7), pattern), before);
  }
}

TEST(MeasureReadRates, EveryPattern_HasItsRounds) {
  TeamPool pool(2);
  const Result<HugeMemory> memory = make_read_memory(pool, std::int64_t{1} << 16);
  ASSERT_TRUE(memory);
  const std::vector<ReadRate> rates = measure_read_rates(pool, bytes_of(*memory), 3);
  ASSERT_EQ(rates.size(), kReadPatterns.size());
  for (const ReadRate& rate : rates) EXPECT_EQ(rate.seconds.size(), 3U);
}

TEST(BestReadRate, LeastMedian_IsChosen) {
  const std::vector<ReadRate> rates{
      {.pattern = {.streams = 1}, .seconds = {5, 1, 5}},
      {.pattern = {.streams = 2}, .seconds = {4, 4, 9}},
      {.pattern = {.streams = 4}, .seconds = {6, 3, 5.5}},
  };
  EXPECT_EQ(best_read_rate(rates).pattern.streams, 2);
  EXPECT_EQ((ReadRate{.seconds = {4, 1, 3, 2}}).median_s(), 2.5);
}

}  // namespace
}  // namespace kernelpath::kernels::cpu
