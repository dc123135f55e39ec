#include "bench/cpu_reads.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

namespace kernelpath::bench {
namespace {

using kernels::cpu::Team;

// What the reads of this process come to: nobody needs it, and the compiler cannot know.
std::atomic<std::uint64_t>& sink() {
  static std::atomic<std::uint64_t> value{0};
  return value;
}

constexpr std::int64_t kLine = 64;

std::uint64_t read_run(const std::byte* run, const std::byte* next, std::int64_t bytes) {
  std::array<std::uint64_t, 8> sums{};
  for (std::int64_t at = 0; at < bytes; at += kLine) {
    __builtin_prefetch(next + at);
    std::array<std::uint64_t, 8> line{};
    std::memcpy(line.data(), run + at, sizeof(line));
    for (std::size_t i = 0; i < line.size(); ++i) sums[i] ^= line[i];
  }
  std::uint64_t out = 0;
  for (const std::uint64_t sum : sums) out ^= sum;
  return out;
}

std::span<const std::byte> part_of(std::span<const std::byte> data, std::int64_t parts,
                                   std::int64_t pass) {
  const std::size_t bytes = data.size() / static_cast<std::size_t>(parts);
  return data.subspan(static_cast<std::size_t>(pass % parts) * bytes, bytes);
}

// The workloads of a job, over memory that it owns.
struct MemoryWork {
  std::vector<HugeMemory> memory = {};
  std::string kernel = {};
  CacheState cache = {};
  std::unique_ptr<Workload> timed = {};
  std::unique_ptr<Workload> limit = {};  // null: none of its own
  double limit_bytes = 0;
  std::function<Check()> check = {};
};

class MemoryJob : public Job {
 public:
  explicit MemoryJob(MemoryWork work) : work_(std::move(work)) {}

  Result<double> run(std::int64_t launches) override { return work_.timed->run(launches); }
  [[nodiscard]] std::string kernel() const override { return work_.kernel; }
  [[nodiscard]] CacheState cache() const override { return work_.cache; }
  Result<std::optional<Check>> check() override {
    KERNELPATH_CHECK_OK(work_.timed->run(1));
    return work_.check();
  }
  Result<OwnLimit> limit() override {
    if (work_.limit == nullptr) return OwnLimit{};
    return OwnLimit{.kind = LimitKind::kLinearRead,
                    .workload = std::move(work_.limit),
                    .amount = work_.limit_bytes};
  }

 private:
  MemoryWork work_;
};

std::uint64_t plain_xor(std::span<const std::byte> data) {
  std::uint64_t out = 0;
  for (std::size_t at = 0; at + 8 <= data.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data.data() + at, sizeof(word));
    out ^= word;
  }
  return out;
}

// The sum that `read` gives on all threads together, against the plain one.
Check check_sum(CpuMachine& machine, std::span<const std::byte> data,
                const std::function<std::uint64_t(const Team&)>& read) {
  std::atomic<std::uint64_t> sum{0};
  machine.pool().run([&](const Team& team) { sum.fetch_xor(read(team)); });
  return {.error = sum == plain_xor(data) ? 0.0 : 1.0,
          .bound = 0,
          .against = "the exclusive or of all words"};
}

Result<std::unique_ptr<Job>> make_read(CpuMachine& machine, const Shape& shape, bool cold) {
  const std::int64_t copies = machine.copies(shape.bytes, cold);
  KERNELPATH_TRY(memory, machine.filled(shape.bytes * copies, kAnyBits, "the memory to read"));
  const std::span<const std::byte> data(memory.data(),
                                        static_cast<std::size_t>(shape.bytes * copies));
  const bool gathers = shape.order == ReadOrder::kGather;
  MemoryWork work{.kernel = gathers ? "gather" : "linear",
                  .cache = machine.state(shape.bytes, copies)};
  work.memory.push_back(std::move(memory));
  if (!gathers) {
    work.timed = linear_read(machine, data, copies);
    // The threads' shares are whole lines of all streams; a first part of that size is checked.
    const auto checked = data.first(std::min<std::size_t>(data.size(), 1U << 20U));
    work.check = [&machine, checked] {
      return check_sum(machine, checked, [checked](const Team& team) {
        return kernels::cpu::read_memory(team, checked, {.streams = 1, .prefetch_bytes = 0});
      });
    };
    return std::make_unique<MemoryJob>(std::move(work));
  }
  std::vector<CpuGather> parts;
  const std::int64_t runs = shape.bytes / shape.run_bytes;
  for (std::int64_t i = 0; i < copies; ++i) {
    parts.push_back({.data = part_of(data, copies, i),
                     .table = random_order(runs, static_cast<std::uint64_t>(i)),
                     .run_bytes = shape.run_bytes});
  }
  work.check = [&machine, first = parts.front()] {
    return check_sum(machine, first.data,
                     [&first](const Team& team) { return read_gather(team, first); });
  };
  work.timed = gather_read(machine, std::move(parts));
  work.limit = linear_read(machine, data, copies);
  work.limit_bytes = static_cast<double>(shape.bytes);
  return std::make_unique<MemoryJob>(std::move(work));
}

Result<std::unique_ptr<Job>> make_copy(CpuMachine& machine, const Shape& shape, bool cold) {
  const std::int64_t copies = machine.copies(2 * shape.bytes, cold);
  const std::int64_t bytes = shape.bytes * copies;
  KERNELPATH_TRY(from, machine.filled(bytes, kAnyBits, "the memory to copy"));
  KERNELPATH_TRY(to, machine.filled(bytes, kAnyBits, "the copy"));
  const auto size = static_cast<std::size_t>(bytes);
  const CopyParts parts{.from = {from.data(), size}, .to = {to.data(), size}, .parts = copies};
  MemoryWork work{.kernel = "memcpy", .cache = machine.state(2 * shape.bytes, copies)};
  work.memory.push_back(std::move(from));
  work.memory.push_back(std::move(to));
  work.timed = copying(machine, parts);
  const std::size_t one = size / static_cast<std::size_t>(copies);
  work.check = [parts, one] {
    const bool same = std::memcmp(parts.from.data(), parts.to.data(), one) == 0;
    return Check{.error = same ? 0.0 : 1.0, .bound = 0, .against = "the original"};
  };
  return std::make_unique<MemoryJob>(std::move(work));
}

}  // namespace

std::uint64_t read_gather(const Team& team, const CpuGather& gather) {
  const auto runs = static_cast<std::int64_t>(gather.table.size());
  const auto [first, last] = team.share(runs);
  std::uint64_t out = 0;
  for (std::int64_t i = first; i < last; ++i) {
    const auto at = [&](std::int64_t run) {
      return gather.data.data() +
             gather.table[static_cast<std::size_t>(std::min(run, runs - 1))] * gather.run_bytes;
    };
    out ^= read_run(at(i), at(i + 1), gather.run_bytes);
  }
  return out;
}

kernels::cpu::ReadPattern best_pattern(CpuMachine& machine, std::span<const std::byte> data) {
  constexpr int kRounds = 3;
  const auto rates = kernels::cpu::measure_read_rates(machine.pool(), data, kRounds);
  return kernels::cpu::best_read_rate(rates).pattern;
}

std::unique_ptr<Workload> linear_read(CpuMachine& machine, std::span<const std::byte> data,
                                      std::int64_t parts) {
  const kernels::cpu::ReadPattern pattern = best_pattern(machine, data);
  return std::make_unique<TeamWorkload>(
      machine.pool(), [data, parts, pattern](const Team& team, std::int64_t pass) {
        sink().fetch_xor(kernels::cpu::read_memory(team, part_of(data, parts, pass), pattern));
      });
}

std::unique_ptr<Workload> gather_read(CpuMachine& machine, std::vector<CpuGather> gathers) {
  return std::make_unique<TeamWorkload>(
      machine.pool(), [all = std::move(gathers)](const Team& team, std::int64_t pass) {
        sink().fetch_xor(read_gather(team, all[static_cast<std::size_t>(pass) % all.size()]));
      });
}

std::unique_ptr<Workload> copying(CpuMachine& machine, const CopyParts& copy) {
  return std::make_unique<TeamWorkload>(
      machine.pool(), [copy](const Team& team, std::int64_t pass) {
        const std::span<const std::byte> from = part_of(copy.from, copy.parts, pass);
        std::byte* const to = copy.to.data() + (from.data() - copy.from.data());
        const auto bytes = static_cast<std::int64_t>(from.size());
        const auto [first, last] = team.share((bytes + kLine - 1) / kLine);
        const std::int64_t end = std::min(last * kLine, bytes);
        if (first * kLine >= end) return;
        std::memcpy(to + first * kLine, from.data() + first * kLine,
                    static_cast<std::size_t>(end - first * kLine));
      });
}

Result<std::unique_ptr<Job>> make_cpu_memory_job(CpuMachine& machine, const Shape& shape,
                                                 bool cold) {
  if (shape.kind == CaseKind::kCopy) return make_copy(machine, shape, cold);
  return make_read(machine, shape, cold);
}

}  // namespace kernelpath::bench
