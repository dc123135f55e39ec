#include "kernels/cpu/read_ceiling.h"

#include "base/assert.h"
#include "kernels/cpu/isa.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kernelpath::kernels::cpu {
namespace {

constexpr std::int64_t kLine = 64;

// A thread's share: `streams` runs of `run_bytes`, one behind the other.
struct Share {
  const std::byte* data = nullptr;
  std::int64_t run_bytes = 0;
};

using ReadShare = std::uint64_t (*)(const Share& share, std::int64_t ahead);

template <int Streams>
std::uint64_t read_words(const Share& share, std::int64_t ahead) {
  std::uint64_t sum = 0;
  for (std::int64_t at = 0; at < share.run_bytes; at += kLine) {
    for (int s = 0; s < Streams; ++s) {
      const std::byte* const line = share.data + s * share.run_bytes + at;
      if (ahead > 0) __builtin_prefetch(line + ahead);
      for (int i = 0; i < 8; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, line + i * std::int64_t{8}, sizeof(word));
        sum ^= word;
      }
    }
  }
  return sum;
}

#if defined(__x86_64__)
// The sums of the streams are apart, so that none waits for another's line.
template <int Streams>
__attribute__((target("avx512f"))) std::uint64_t read_avx512(const Share& share,
                                                             std::int64_t ahead) {
  __m512i sums[Streams];  // NOLINT(modernize-avoid-c-arrays): a vector as a template argument
  for (int s = 0; s < Streams; ++s) sums[s] = _mm512_setzero_si512();
  for (std::int64_t at = 0; at < share.run_bytes; at += kLine) {
    for (int s = 0; s < Streams; ++s) {
      const std::byte* const line = share.data + s * share.run_bytes + at;
      if (ahead > 0) __builtin_prefetch(line + ahead);
      sums[s] = _mm512_xor_si512(sums[s], _mm512_loadu_si512(line));
    }
  }
  for (int s = 1; s < Streams; ++s) sums[0] = _mm512_xor_si512(sums[0], sums[s]);
  std::array<std::uint64_t, 8> words{};
  _mm512_storeu_si512(words.data(), sums[0]);
  std::uint64_t sum = 0;
  for (const std::uint64_t word : words) sum ^= word;
  return sum;
}

template <int Streams>
__attribute__((target("avx2"))) std::uint64_t read_avx2(const Share& share, std::int64_t ahead) {
  __m256i sums[Streams];  // NOLINT(modernize-avoid-c-arrays): a vector as a template argument
  for (int s = 0; s < Streams; ++s) sums[s] = _mm256_setzero_si256();
  for (std::int64_t at = 0; at < share.run_bytes; at += kLine) {
    for (int s = 0; s < Streams; ++s) {
      const std::byte* const line = share.data + s * share.run_bytes + at;
      if (ahead > 0) __builtin_prefetch(line + ahead);
      const auto* const halves = reinterpret_cast<const __m256i*>(line);
      sums[s] = _mm256_xor_si256(
          sums[s], _mm256_xor_si256(_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)));
    }
  }
  for (int s = 1; s < Streams; ++s) sums[0] = _mm256_xor_si256(sums[0], sums[s]);
  std::array<std::uint64_t, 4> words{};
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(words.data()), sums[0]);
  std::uint64_t sum = 0;
  for (const std::uint64_t word : words) sum ^= word;
  return sum;
}
#endif

template <int Streams>
ReadShare reader() {
#if defined(__x86_64__)
  static const Isa kBest = vector_isa(best_isa());
  if (kBest == Isa::kAvx512) return read_avx512<Streams>;
  if (kBest == Isa::kAvx2) return read_avx2<Streams>;
#endif
  return read_words<Streams>;
}

ReadShare reader_of(int streams) {
  switch (streams) {
    case 1:
      return reader<1>();
    case 2:
      return reader<2>();
    case 4:
      return reader<4>();
    default:
      assertion_failed("1, 2 or 4 streams", __FILE__, __LINE__);
  }
}

}  // namespace

Result<HugeMemory> make_read_memory(TeamPool& pool, std::int64_t bytes) {
  KERNELPATH_TRY(memory, HugeMemory::allocate(bytes, "the memory to be read"));
  std::byte* const data = memory.data();
  pool.run([&](const Team& team) {
    const auto [begin, end] = team.share(bytes / kLine);
    for (std::int64_t line = begin; line < end; ++line) {
      for (std::int64_t word = 0; word < kLine / 8; ++word) {
        const auto value =
            static_cast<std::uint64_t>(line * kLine + word) * std::uint64_t{0x9E3779B97F4A7C15};
        std::memcpy(data + line * kLine + word * 8, &value, sizeof(value));
      }
    }
  });
  return std::move(memory);
}

std::uint64_t read_memory(const Team& team, std::span<const std::byte> memory,
                          const ReadPattern& pattern) {
  const auto [begin, end] = team.share(static_cast<std::int64_t>(memory.size()) / kLine);
  const Share share{.data = memory.data() + begin * kLine,
                    .run_bytes = (end - begin) / pattern.streams * kLine};
  const std::uint64_t sum = reader_of(pattern.streams)(share, pattern.prefetch_bytes);
  team.barrier();
  return sum;
}

double time_read(TeamPool& pool, std::span<const std::byte> memory, const ReadPattern& pattern) {
  std::atomic<std::uint64_t> sum{0};
  const auto start = std::chrono::steady_clock::now();
  pool.run([&](const Team& team) {
    sum.fetch_xor(read_memory(team, memory, pattern), std::memory_order_relaxed);
  });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double ReadRate::median_s() const {
  KERNELPATH_ASSERT(!seconds.empty());
  std::vector<double> sorted = seconds;
  std::ranges::sort(sorted);
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

std::vector<ReadRate> measure_read_rates(TeamPool& pool, std::span<const std::byte> memory,
                                         int rounds) {
  std::vector<ReadRate> rates;
  rates.reserve(kReadPatterns.size());
  for (const ReadPattern& pattern : kReadPatterns) rates.push_back({.pattern = pattern});
  for (int round = 0; round <= std::max(rounds, 1); ++round) {
    for (ReadRate& rate : rates) {
      const double seconds = time_read(pool, memory, rate.pattern);
      if (round > 0) rate.seconds.push_back(seconds);
    }
  }
  return rates;
}

const ReadRate& best_read_rate(std::span<const ReadRate> rates) {
  KERNELPATH_ASSERT(!rates.empty());
  return *std::ranges::min_element(rates, {}, &ReadRate::median_s);
}

}  // namespace kernelpath::kernels::cpu
