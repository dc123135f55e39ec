#pragma once

#include "attention/params.h"
#include "attention/plan.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/team.h"

#include <cstddef>
#include <vector>

namespace kernelpath::kernels::cpu {

// Memory that attention() needs and a team shares; grows to what its calls need and keeps it.
class AttentionWorkspace {
 public:
  explicit AttentionWorkspace(int threads) : own_(static_cast<std::size_t>(threads)) {}

  // A thread's tiles [first, last) of an item; `part` where other threads have some too.
  struct Share {
    const attention::WorkItem* item = nullptr;
    const attention::SplitPart* part = nullptr;
    std::int64_t first = 0;
    std::int64_t last = 0;
  };
  // One thread's.
  struct Own {
    attention::AttentionPlan plan;
    std::vector<attention::SplitPart> parts;
    std::vector<Share> shares;
    std::vector<std::byte> bytes;
  };
  Own& own(int thread) { return own_[static_cast<std::size_t>(thread)]; }
  std::vector<float>& states() { return states_; }

 private:
  std::vector<Own> own_;
  std::vector<float> states_;  // of rows whose keys several threads read
};

// Attention of a step's query rows over the paged cache, by all threads of a team; returns on each
// when the output is complete. `isa` must be one that has_isa() has. The output of a row has the
// same bits for any number of threads and for whatever else the batch holds.
//
// The threads share the work by attention::make_plan: one long request uses all of them. Rows whose
// keys several threads read are merged in the order of the keys, sinks once, at the end.
void paged_attention(const Team& team, Isa isa, const attention::AttentionParams& params,
                     AttentionWorkspace& workspace);

}  // namespace kernelpath::kernels::cpu
