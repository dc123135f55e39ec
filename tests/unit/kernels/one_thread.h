#pragma once

#include "attention/layers.h"
#include "attention/params.h"
#include "kernels/cpu/append.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/isa.h"

namespace kernelpath::testing {

// What attention layers call, by one thread of one instruction set.
class OneThread : public attention::Kernels {
 public:
  explicit OneThread(kernels::cpu::Isa isa) : isa_(isa) {}
  void append(const attention::AppendParams& params) override {
    kernels::cpu::paged_append({}, params);
  }
  void attention(const attention::AttentionParams& params) override {
    kernels::cpu::paged_attention({}, isa_, params, workspace_);
  }

 private:
  kernels::cpu::Isa isa_;
  kernels::cpu::AttentionWorkspace workspace_{1};
};

}  // namespace kernelpath::testing
