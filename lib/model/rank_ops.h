#pragma once

#include "base/error.h"
#include "comm/placement.h"
#include "kernels/ops.h"

#include <cstdint>
#include <optional>

namespace kernelpath::model {

// What the ranks of a model exchange during a step. Called like operations: by every thread, with
// the same arguments; one thread talks.
class RankOps {
 public:
  explicit RankOps(const comm::Placement& place) : place_(place) {}

  [[nodiscard]] const comm::Placement& place() const { return place_; }
  [[nodiscard]] bool splits_tensors() const { return place_.tp > 1; }
  [[nodiscard]] bool splits_context() const { return place_.dcp > 1; }

  // y[i] = the sum over the ranks that split tensors; nothing to do for one rank.
  void sum(kernels::Ops& ops, std::int64_t count, float* y);
  // out[r, i] = rank r's in[i].
  void gather_tensors(kernels::Ops& ops, std::int64_t count, const float* in, float* out) {
    gather(ops, place_.tensor, {.count = count, .in = in, .out = out});
  }
  void gather_context(kernels::Ops& ops, std::int64_t count, const float* in, float* out) {
    gather(ops, place_.context, {.count = count, .in = in, .out = out});
  }

  // The first exchange that failed; none is tried after it.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  struct Gather {
    std::int64_t count = 0;
    const float* in = nullptr;
    float* out = nullptr;
  };
  void gather(kernels::Ops& ops, comm::Communicator* ranks, const Gather& what);

  comm::Placement place_;
  std::optional<Error> failure_;
};

}  // namespace kernelpath::model
