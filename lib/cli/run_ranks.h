#pragma once

#include "cli/program.h"
#include "comm/agree.h"
#include "comm/placement.h"
#include "comm/world.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::cli {

// Of several ranks the first speaks: in any other one, standard output and standard error lead
// nowhere from here on. For the begin of main(); without a launcher it does nothing.
void silence_other_ranks();

// What a rank knows before the next step.
struct RankState {
  Result<void> fared = {};   // of the step before
  bool stopped = false;      // a signal came
  bool unread = false;       // nobody reads the output any more
  std::uint64_t tokens = 0;  // checksum of all tokens so far
};

enum class NextStep : std::uint8_t { kRun, kCancel, kEnd };

// The ranks of one run of llm-run: this process alone, or those that a launcher started. Every rank
// does the same with the same inputs, so that all take the same decisions; where one of them may
// see something else (files, memory, signals, standard input), they agree first.
class RunRanks {
 public:
  explicit RunRanks(const Invocation& invocation);
  RunRanks(const RunRanks&) = delete;
  RunRanks& operator=(const RunRanks&) = delete;
  ~RunRanks();

  // Whether this rank writes files: the first.
  [[nodiscard]] bool is_first() const { return launch_.rank == 0; }

  // Collective from here on. Starts MPI where several ranks are asked for or were started. Errors:
  // kUnavailable (no MPI), kUsageConflict (another number of ranks than --tp and --dcp take).
  Result<void> open(std::int64_t tp, std::int64_t dcp);
  // Places of a plan that is not run.
  void plan(std::int64_t tp, std::int64_t dcp) { placement_ = {.tp = tp, .dcp = dcp}; }

  [[nodiscard]] const comm::Placement& placement() const { return placement_; }
  [[nodiscard]] int ranks_on_host() const { return world_ ? world_->ranks_on_host() : 1; }
  // Threads of a rank, unless the user says: this process' processors, shared with the other ranks
  // of the machine.
  [[nodiscard]] int default_threads() const;

  // Launchers give standard input to the first rank alone: where `wanted`, all ranks read it.
  Result<void> share_input(bool wanted);

  // Every line that any rank has, once, in the order of the ranks.
  Result<std::vector<std::string>> lines_of_all(const std::vector<std::string>& own);

  template <class T>
  Result<T> agree_on(Result<T> own) {
    return placement_.world == nullptr ? std::move(own)
                                       : comm::agree_on(*placement_.world, std::move(own));
  }
  // What to do next, on all ranks. Errors: that of the first rank that has one; kInternal where
  // they drew different tokens.
  Result<NextStep> next_step(const RankState& state);

  // Runs the body and makes its outcome that of all ranks: the error of the first that has one, or
  // the worst exit code. A rank that cannot take part in that any more (its body threw, the ranks
  // cannot talk) says why and ends all others at once.
  Result<int> run(const std::function<Result<int>()>& body);

 private:
  [[nodiscard]] bool several() const { return placement_.world != nullptr; }
  Result<int> agree_on_code(Result<int> own);
  void end_all(const Error& error);

  const Invocation& invocation_;
  comm::Launch launch_;
  std::unique_ptr<comm::World> world_;
  std::optional<comm::RankGrid> grid_;
  comm::Placement placement_;
};

}  // namespace kernelpath::cli
