#pragma once

#include "kernels/cpu/attention.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/team.h"
#include "kernels/ops.h"

#include <functional>

namespace kernelpath::kernels::cpu {

// Runs bodies on a team of threads with the kernels of one instruction set.
class CpuExecutor : public Executor {
 public:
  // `threads` at least 1. `isa` must be one that has_isa() has.
  explicit CpuExecutor(int threads, Isa isa = best_isa());

  [[nodiscard]] int threads() const override { return pool_.threads(); }
  [[nodiscard]] Isa isa() const { return isa_; }
  void run(const std::function<void(Ops&)>& body) override;

 private:
  TeamPool pool_;
  Isa isa_;
  AttentionWorkspace attention_;
};

}  // namespace kernelpath::kernels::cpu
