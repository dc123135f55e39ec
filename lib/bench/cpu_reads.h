#pragma once

#include "bench/cpu_machine.h"
#include "kernels/cpu/read_ceiling.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

// Workloads that move memory and do nothing else.
namespace kernelpath::bench {

// Runs of adjacent bytes in the order of a table.
struct CpuGather {
  std::span<const std::byte> data;
  std::vector<std::int32_t> table;  // run i lies at table[i] * run_bytes
  std::int64_t run_bytes = 0;       // a multiple of 64
};
// Reads this thread's share of the runs once; returns a sum that keeps the reads.
std::uint64_t read_gather(const kernels::cpu::Team& team, const CpuGather& gather);

// The pattern that reads `data` fastest, of kernels::cpu::kReadPatterns.
kernels::cpu::ReadPattern best_pattern(CpuMachine& machine, std::span<const std::byte> data);

// Passes over equal parts of `data` by turns, one a launch.
std::unique_ptr<Workload> linear_read(CpuMachine& machine, std::span<const std::byte> data,
                                      std::int64_t parts);
// Gathers by turns, one a launch.
std::unique_ptr<Workload> gather_read(CpuMachine& machine, std::vector<CpuGather> gathers);
// Copies `bytes` from one part of `from` to one of `to`, parts by turns.
struct CopyParts {
  std::span<const std::byte> from;
  std::span<std::byte> to;
  std::int64_t parts = 1;
};
std::unique_ptr<Workload> copying(CpuMachine& machine, const CopyParts& copy);

// read-ceiling and copy.
Result<std::unique_ptr<Job>> make_cpu_memory_job(CpuMachine& machine, const Shape& shape,
                                                 bool cold);

}  // namespace kernelpath::bench
