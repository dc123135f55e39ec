#pragma once

#include "base/result.h"
#include "bench/measure.h"
#include "bench/shape.h"
#include "bench/target.h"

#include <optional>
#include <string>
#include <vector>

namespace kernelpath::bench {

// Which states of the cache are measured.
enum class CacheChoice : std::uint8_t {
  kBoth,  // repeated as it is; shapes that then come from the cache once more out of memory
  kCold,  // out of memory
  kWarm,  // repeated as it is
};

struct RunOptions {
  MeasureOptions measure = {};
  bool check = true;  // compare with the reference first
  CacheChoice cache = CacheChoice::kBoth;
  std::string peer = "none";  // kind of peers: "none", "all", "flashinfer" …
};

// Another library's kernel on the same data, in the same minutes.
struct PeerRow {
  std::string name = {};
  std::optional<Measured> measured = {};
  bool paged = true;  // reads K and V through a page table, as we do; others are context alone
  std::optional<double> median_s = {};  // of a file of peers, which has no samples
  std::string reason = {};              // why there is no time
};

// How a baseline's time of the same shape compares.
struct BaselineChange {
  double before_s = 0;
  double change = 0;  // 0.03: slower by 3 %
  bool regressed = false;
};

// What is known about one shape in one state of the cache.
struct Row {
  Shape shape = {};
  std::string kernel = {};
  CacheState cache = CacheState::kMemory;
  bool rotated = false;  // over copies, to be out of the cache
  Work work = {};
  std::optional<Error> error = {};  // in place of everything below
  Measured measured = {};
  std::optional<Check> check = {};
  LimitKind limit = LimitKind::kNone;
  double limit_rate = 0;       // bytes (operations of kMatrixRate) a second; 0: none
  double own_limit_rate = 0;   // of the same at the row's own size, fixed costs included; 0: not
  double own_limit_noise = 0;  // of its samples
  std::vector<PeerRow> peers = {};
  std::optional<BaselineChange> baseline = {};
  std::vector<std::string> problems = {};  // why the time is not valid; empty: it is

  [[nodiscard]] bool valid() const { return !error && problems.empty(); }
  // Bytes a second; operations a second where they are the limit.
  [[nodiscard]] double rate() const;
  [[nodiscard]] bool computes() const {
    return limit == LimitKind::kMatrixRate || shape.kind == CaseKind::kMatrixRate;
  }
  // Rate over the limit's; 0 without a limit.
  [[nodiscard]] double of_limit() const;
  // Rate over that of a limit of as many bytes; 0 where that was not measured.
  [[nodiscard]] double of_own_size() const;
  // The time beyond what the limit's rate needs; 0 without a limit.
  [[nodiscard]] double t0_s() const;
};

// Measures shapes on one device.
class Runner {
 public:
  Runner(Target& target, RunOptions options) : target_(&target), options_(std::move(options)) {}

  // One row for each state of the cache that is asked for. Shapes that the device refuses, and
  // failures, are rows with an error.
  std::vector<Row> run(const Shape& shape);

 private:
  Row one(const Shape& shape, bool cold);
  Result<void> measure(Job& job, Row& row);
  Result<void> matrix_rate();
  void judge(Row& row) const;

  Target* target_;
  RunOptions options_;
  double matrix_rate_ = 0;
};

}  // namespace kernelpath::bench
