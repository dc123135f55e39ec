#include "comm/placement.h"

#include "base/checked.h"

#include <optional>
#include <string>

namespace kernelpath::comm {

Result<RankGrid> RankGrid::make(Communicator& world, std::int64_t tp, std::int64_t dcp) {
  const std::optional<std::int64_t> ranks = checked_mul(tp, dcp);
  if (ranks != world.size()) {
    const std::string needed = ranks ? std::to_string(*ranks) : "too many";
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = "--tp " + std::to_string(tp) + " with --dcp " + std::to_string(dcp) +
                            " takes " + needed + (ranks == 1 ? " rank" : " ranks") +
                            "; started were " + std::to_string(world.size()),
                 .hint = ranks == 1 ? "say --tp or --dcp, or start it without mpirun"
                                    : "mpirun -np " + needed + " llm-run …"});
  }
  RankGrid out;
  out.world_ = &world;
  const std::int64_t rank = world.rank();
  out.placement_ = {.tp = tp, .tp_rank = rank % tp, .dcp = dcp, .dcp_rank = rank / tp};
  KERNELPATH_TRY(tensor, world.split(static_cast<int>(out.placement_.dcp_rank)));
  KERNELPATH_TRY(context, world.split(static_cast<int>(out.placement_.tp_rank)));
  out.tensor_ = std::move(tensor);
  out.context_ = std::move(context);
  out.placement_.world = &world;
  out.placement_.tensor = out.tensor_.get();
  out.placement_.context = out.context_.get();
  return out;
}

}  // namespace kernelpath::comm
