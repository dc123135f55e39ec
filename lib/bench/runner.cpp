#include "bench/runner.h"

#include "bench/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kernelpath::bench {
namespace {

// Limits are side by side with what they limit, and need no more precision than it.
double rate_of(double amount, const Measured& measured) {
  return measured.summary.median > 0 ? amount / measured.summary.median : 0;
}

}  // namespace

double Row::rate() const { return rate_of(computes() ? work.flops : work.bytes, measured); }

double Row::of_limit() const { return limit_rate > 0 ? rate() / limit_rate : 0; }

double Row::of_own_size() const { return own_limit_rate > 0 ? rate() / own_limit_rate : 0; }

double Row::t0_s() const {
  if (limit_rate <= 0) return 0;
  return measured.summary.median - (computes() ? work.flops : work.bytes) / limit_rate;
}

std::vector<Row> Runner::run(const Shape& shape) {
  std::vector<Row> out;
  out.push_back(one(shape, options_.cache == CacheChoice::kCold));
  const bool again = options_.cache == CacheChoice::kBoth && !out.front().error &&
                     out.front().cache == CacheState::kWarm && !options_.measure.one_launch &&
                     !options_.measure.interrupted();
  if (!again) return out;
  Row cold = one(shape, true);
  // Where the size of the cache is not known, nothing has changed.
  if (cold.error || cold.cache == CacheState::kMemory) out.push_back(std::move(cold));
  return out;
}

Row Runner::one(const Shape& shape, bool cold) {
  Row row{.shape = shape, .kernel = {}, .rotated = cold};
  if (Result<void> possible = check_shape(shape); !possible) {
    row.error = std::move(possible).error();
    return row;
  }
  row.work = work_of(shape);
  Result<std::unique_ptr<Job>> job = target_->prepare(shape, cold);
  if (!job) {
    row.error = std::move(job).error();
    return row;
  }
  row.kernel = (*job)->kernel();
  row.cache = (*job)->cache();
  Result<void> measured = measure(**job, row);
  if (!measured) row.error = std::move(measured).error();
  if (!row.error) judge(row);
  return row;
}

Result<void> Runner::measure(Job& job, Row& row) {
  if (options_.check && !options_.measure.one_launch) {
    KERNELPATH_TRY(check, job.check());
    row.check = check;
  }
  OwnLimit limit;
  std::vector<Peer> peers;
  if (!options_.measure.one_launch) {
    KERNELPATH_TRY(own, job.limit());
    limit = std::move(own);
    peers = job.peers(options_.peer);
  }
  std::vector<Workload*> all = {&job, limit.workload.get()};
  for (const Peer& peer : peers) all.push_back(peer.workload.get());
  KERNELPATH_TRY(measured, measure_together(all, options_.measure));
  row.measured = std::move(measured.front());
  row.limit = limit.kind;
  if (limit.workload != nullptr) {
    row.own_limit_rate = rate_of(limit.amount, measured[1]);
    row.own_limit_noise = measured[1].summary.noise;
  }
  row.limit_rate = limit.rate > 0 ? limit.rate : row.own_limit_rate;
  if (limit.kind == LimitKind::kMatrixRate) {
    KERNELPATH_CHECK_OK(matrix_rate());
    row.limit_rate = matrix_rate_;
  }
  for (std::size_t i = 0; i < peers.size(); ++i) {
    PeerRow peer{.name = peers[i].name, .reason = peers[i].reason};
    if (peers[i].workload != nullptr && !measured[i + 2].samples.empty()) {
      peer.measured = std::move(measured[i + 2]);
      peer.median_s = peer.measured->summary.median;
    }
    row.peers.push_back(std::move(peer));
  }
  return {};
}

// Once a run, at the default size of the case.
Result<void> Runner::matrix_rate() {
  if (matrix_rate_ > 0) return {};
  KERNELPATH_TRY(shapes, expand(CaseKind::kMatrixRate, "", {}, {.cuda = target_->is_cuda()}));
  Result<std::unique_ptr<Job>> job = target_->prepare(shapes.front(), false);
  // Without such a kernel there is no limit to compare with.
  if (!job) return {};
  Workload* const work = job->get();
  KERNELPATH_TRY(measured, measure_together({&work, 1}, options_.measure));
  matrix_rate_ = rate_of(work_of(shapes.front()).flops, measured.front());
  return {};
}

void Runner::judge(Row& row) const {
  const Measured& measured = row.measured;
  const double bound = options_.measure.rule.max_noise;
  if (measured.samples.empty()) {
    row.problems.emplace_back("interrupted before the first sample");
    return;
  }
  if (measured.stop == StopReason::kOneLaunch) row.problems.emplace_back("a single launch");
  if (measured.stop == StopReason::kInterrupted) row.problems.emplace_back("interrupted");
  const auto samples = static_cast<std::int64_t>(measured.samples.size());
  if (measured.stop == StopReason::kTimeout && samples < options_.measure.rule.min_samples) {
    row.problems.push_back(fmt::format("{} of {} samples when the time was over", samples,
                                       options_.measure.rule.min_samples));
  }
  if (measured.summary.noise > bound) {
    row.problems.push_back(fmt::format("noise {:.1f} % is above {:g} %",
                                       100.0 * measured.summary.noise, 100.0 * bound));
  }
  // A share is worth whole per cents, a time tenths of them.
  const double limit_bound = 5.0 * bound;
  if (row.own_limit_noise > limit_bound) {
    row.problems.push_back(fmt::format("noise {:.1f} % of the limit at its size is above {:g} %",
                                       100.0 * row.own_limit_noise, 100.0 * limit_bound));
  }
  if (row.check && !row.check->ok()) {
    row.problems.push_back(fmt::format("wrong: differs from the {} by {:.2g}, {:.2g} is allowed",
                                       row.check->against, row.check->error, row.check->bound));
  }
  if (const std::string text = target_->throttled(); !text.empty()) row.problems.push_back(text);
}

}  // namespace kernelpath::bench
