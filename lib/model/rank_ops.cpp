#include "model/rank_ops.h"

#include <span>

namespace kernelpath::model {

void RankOps::sum(kernels::Ops& ops, std::int64_t count, float* y) {
  if (!splits_tensors()) return;
  ops.once([&] {
    if (failure_) return;
    const auto done =
        place_.tensor->all_reduce_sum(std::span<float>(y, static_cast<std::size_t>(count)));
    if (!done) failure_ = done.error();
  });
}

void RankOps::gather(kernels::Ops& ops, comm::Communicator* ranks, const Gather& what) {
  ops.once([&] {
    if (failure_) return;
    const auto count = static_cast<std::size_t>(what.count);
    const auto done = ranks->all_gather_values<float>(
        std::span<const float>(what.in, count),
        std::span<float>(what.out, count * static_cast<std::size_t>(ranks->size())));
    if (!done) failure_ = done.error();
  });
}

}  // namespace kernelpath::model
