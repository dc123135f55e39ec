#pragma once

#include "base/result.h"
#include "bench/measure.h"
#include "bench/shape.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::bench {

// Where the data of a launch comes from.
enum class CacheState : std::uint8_t {
  kMemory,  // larger than the last cache, or rotated over copies that together are
  kWarm,    // repeated over data that fit the last cache
};
constexpr std::string_view cache_state_name(CacheState state) {
  return state == CacheState::kWarm ? "warm" : "memory";
}

// The result of comparing a launch's output with the float64 reference.
struct Check {
  double error = 0;  // largest difference over the largest magnitude of the reference
  double bound = 0;
  std::string against = {};                                 // "float64 reference, 2 of 64 requests"
  [[nodiscard]] bool ok() const { return error <= bound; }  // false for NaN
};

// What limits a shape, measured beside it.
enum class LimitKind : std::uint8_t { kNone, kLinearRead, kGatherRead, kCopy, kMatrixRate };
constexpr std::string_view limit_kind_name(LimitKind kind) {
  switch (kind) {
    case LimitKind::kNone:
      return "none";
    case LimitKind::kLinearRead:
      return "linear read";
    case LimitKind::kGatherRead:
      return "gather read";
    case LimitKind::kCopy:
      return "copy";
    case LimitKind::kMatrixRate:
      return "matrix rate";
  }
  return "";
}

// A workload that does what limits the shape and nothing else, over the same memory.
struct OwnLimit {
  LimitKind kind = LimitKind::kNone;
  // Null where `rate` is known already, or there is no limit.
  std::unique_ptr<Workload> workload = nullptr;
  double amount = 0;  // bytes, or operations of kMatrixRate, of one launch
  double rate = 0;    // measured once for the whole run, at a size that hides fixed costs; 0: not
};

// Another library's kernel on the same problem.
struct Peer {
  std::string name = {};                         // "flashinfer_fa2_tc1"
  std::unique_ptr<Workload> workload = nullptr;  // null: not there
  std::string reason = {};                       // why it is not there
};

// One shape on a device, with its data in place.
class Job : public Workload {
 public:
  // "avx512", "sm90_gqa<bf16, 128, 4>".
  [[nodiscard]] virtual std::string kernel() const = 0;
  [[nodiscard]] virtual CacheState cache() const = 0;
  // Launches once and compares; nothing where there is nothing to see.
  virtual Result<std::optional<Check>> check() = 0;
  virtual Result<OwnLimit> limit() = 0;
  virtual std::vector<Peer> peers(const std::string& /*wanted*/) { return {}; }
};

// A job of a class with `prepare(cold)`, its data in place, on the machine that it runs on.
template <class PreparedJob, class Machine>
Result<std::unique_ptr<Job>> prepared(Machine& machine, const Shape& shape, bool cold) {
  auto job = std::make_unique<PreparedJob>(machine, shape);
  KERNELPATH_CHECK_OK(job->prepare(cold));
  return job;
}

// What a report says about the machine.
struct DeviceFacts {
  std::string id;     // "cpu", "cuda:0"
  std::string label;  // "Intel(R) Xeon(R) …", "NVIDIA H200"
  std::int64_t memory_bytes = 0;
  std::int64_t cache_bytes = 0;  // the last level
  int threads = 0;               // CPU
  std::string kernels;           // CPU: the instruction set asked for
  bool huge_pages = false;       // CPU: the system gave them
  std::string driver;            // CUDA
  int sm = 0;
  int num_sms = 0;
  std::string clocks;  // "not locked"
};

class Target {
 public:
  virtual ~Target() = default;
  [[nodiscard]] virtual const DeviceFacts& facts() const = 0;
  [[nodiscard]] virtual bool is_cuda() const = 0;
  // Whether there is anything to measure of a case.
  [[nodiscard]] virtual bool has(CaseKind kind) const = 0;
  // Bytes that a launch of the shape reads or writes again and again: whether they fit the cache.
  // `cold`: the data are laid down as often as it takes to be out of the cache when their turn
  // comes again. Errors: kUnavailable (no kernel for this shape or type; says what there is),
  // kResource (out of memory, with the sizes).
  virtual Result<std::unique_ptr<Job>> prepare(const Shape& shape, bool cold) = 0;
  // "" or why times of this moment are not to be trusted: "clocks are throttled: power cap".
  virtual std::string throttled() { return ""; }
};

}  // namespace kernelpath::bench
