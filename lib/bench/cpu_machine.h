#pragma once

#include "base/huge_memory.h"
#include "bench/measure.h"
#include "bench/random_data.h"
#include "bench/target.h"
#include "kernels/cpu/executor.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/team.h"

#include <functional>
#include <memory>

// What the cases on the CPU share.
namespace kernelpath::bench {

struct CpuOptions {
  int threads = 1;
  kernels::cpu::Isa isa = kernels::cpu::Isa::kReference;
};

// The threads of this machine, once for the kernels and once for what reads and copies.
class CpuMachine {
 public:
  explicit CpuMachine(const CpuOptions& options);

  kernels::cpu::CpuExecutor& executor() { return executor_; }
  kernels::cpu::TeamPool& pool() { return pool_; }
  [[nodiscard]] std::int64_t cache_bytes() const { return facts_.cache_bytes; }
  [[nodiscard]] const DeviceFacts& facts() const { return facts_; }

  // Memory in huge pages where the system gives them, filled at random by the threads that read it.
  Result<HugeMemory> filled(std::int64_t bytes, const BitPattern& pattern, std::string_view what);

  // How often data of `bytes` must lie there, so that one of them is out of the cache when its turn
  // comes again; 1 unless `cold`.
  [[nodiscard]] std::int64_t copies(std::int64_t bytes, bool cold) const;
  // Of data that are used again every `copies` launches.
  [[nodiscard]] CacheState state(std::int64_t bytes, std::int64_t copies) const;

 private:
  kernels::cpu::CpuExecutor executor_;
  kernels::cpu::TeamPool pool_;
  DeviceFacts facts_;
  std::uint64_t seed_ = 1;
};

// Bytes of the largest cache of this processor; 0 where the system does not tell.
std::int64_t last_cache_bytes();

// Wall time of one call.
double timed(const std::function<void()>& call);

// Body of a pass over memory on one thread of a team; `pass` counts up from launch to launch.
class TeamWorkload : public Workload {
 public:
  TeamWorkload(kernels::cpu::TeamPool& pool,
               std::function<void(const kernels::cpu::Team&, std::int64_t pass)> body)
      : pool_(&pool), body_(std::move(body)) {}
  Result<double> run(std::int64_t launches) override;

 private:
  kernels::cpu::TeamPool* pool_;
  std::function<void(const kernels::cpu::Team&, std::int64_t)> body_;
  std::int64_t passes_ = 0;
};

// The same with the operations of the engine's kernels.
class OpsJob : public Job {
 public:
  explicit OpsJob(CpuMachine& machine) : machine_(&machine) {}
  Result<double> run(std::int64_t launches) override;
  [[nodiscard]] std::string kernel() const override;

 protected:
  // One launch, on one of the threads; `pass` counts up.
  virtual void launch(kernels::Ops& ops, std::int64_t pass) = 0;
  [[nodiscard]] CpuMachine& machine() const { return *machine_; }
  // The pass whose output the last launch left.
  [[nodiscard]] std::int64_t last_pass() const { return passes_ - 1; }

 private:
  CpuMachine* machine_;
  std::int64_t passes_ = 0;
};

}  // namespace kernelpath::bench
