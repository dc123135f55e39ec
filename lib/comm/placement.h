#pragma once

#include "base/result.h"
#include "comm/communicator.h"

#include <cstdint>
#include <memory>

namespace kernelpath::comm {

// One rank's place among those that run a model: tensor parallelism divides heads and widths,
// context parallelism the tokens of the cache. Rank r has tensor rank r % tp and context rank
// r / tp, so that those that talk most lie next to each other.
struct Placement {
  std::int64_t tp = 1;
  std::int64_t tp_rank = 0;
  std::int64_t dcp = 1;
  std::int64_t dcp_rank = 0;
  // All ranks, and the groups of this one. Null: nothing is run, only planned.
  Communicator* world = nullptr;
  Communicator* tensor = nullptr;
  Communicator* context = nullptr;

  [[nodiscard]] std::int64_t ranks() const { return tp * dcp; }
};

// Ranks arranged for a model.
class RankGrid {
 public:
  // Collective. Errors: kUsageConflict where `world` has not tp * dcp ranks, naming both; those of
  // split().
  static Result<RankGrid> make(Communicator& world, std::int64_t tp, std::int64_t dcp);

  [[nodiscard]] const Placement& placement() const { return placement_; }
  [[nodiscard]] Communicator& world() const { return *world_; }

 private:
  RankGrid() = default;

  Communicator* world_ = nullptr;
  std::unique_ptr<Communicator> tensor_;
  std::unique_ptr<Communicator> context_;
  Placement placement_;
};

}  // namespace kernelpath::comm
