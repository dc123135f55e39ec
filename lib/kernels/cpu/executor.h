#pragma once

#include "base/huge_memory.h"
#include "base/result.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/team.h"
#include "kernels/ops.h"

#include <cstdint>
#include <functional>

namespace kernelpath::kernels::cpu {

// Runs bodies on a team of threads with the kernels of one instruction set.
class CpuExecutor : public Executor {
 public:
  // `threads` at least 1. `isa` must be one that has_isa() has.
  explicit CpuExecutor(int threads, Isa isa = best_isa());

  // Whether the memory in which its kernels work is there, without which nothing can be run. Error:
  // kResource (not so much memory).
  [[nodiscard]] Result<void> ready() const;
  // What that takes.
  static std::int64_t scratch_bytes(int threads) { return threads * kMatmulScratchBytes; }

  [[nodiscard]] int threads() const override { return pool_.threads(); }
  [[nodiscard]] Isa isa() const { return isa_; }
  void run(const std::function<void(Ops&)>& body) override;

 private:
  TeamPool pool_;
  Isa isa_;
  AttentionWorkspace attention_;
  Result<HugeMemory> scratch_;  // kMatmulScratchBytes of each thread
};

}  // namespace kernelpath::kernels::cpu
