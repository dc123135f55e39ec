#include "bench/cpu_target.h"

#include "bench/cpu_jobs.h"
#include "bench/cpu_reads.h"
#include "bench/shape.h"

#include <fmt/format.h>

namespace kernelpath::bench {
namespace {

class CpuTarget : public Target {
 public:
  explicit CpuTarget(const CpuOptions& options) : machine_(options) {}

  [[nodiscard]] const DeviceFacts& facts() const override { return machine_.facts(); }
  [[nodiscard]] bool is_cuda() const override { return false; }
  [[nodiscard]] bool has(CaseKind /*kind*/) const override { return true; }

  Result<std::unique_ptr<Job>> prepare(const Shape& shape, bool cold) override {
    KERNELPATH_CHECK_OK(check_types(shape));
    KERNELPATH_CHECK_OK(machine_.executor().ready());
    switch (shape.kind) {
      case CaseKind::kGqaDecode:
      case CaseKind::kPrefill:
        return make_cpu_attention_job(machine_, shape, cold);
      case CaseKind::kKvAppend:
        return make_cpu_append_job(machine_, shape, cold);
      case CaseKind::kGemv:
      case CaseKind::kMatrixRate:
        return make_cpu_matrix_job(machine_, shape, cold);
      case CaseKind::kReadCeiling:
      case CaseKind::kCopy:
        break;
    }
    return make_cpu_memory_job(machine_, shape, cold);
  }

 private:
  static Result<void> check_types(const Shape& shape) {
    const bool attends = shape.kind == CaseKind::kGqaDecode || shape.kind == CaseKind::kPrefill ||
                         shape.kind == CaseKind::kKvAppend;
    if (attends && shape.dtype != attention::DataType::kF32) {
      return fail({.code = ErrorCode::kUnavailable,
                   .message = fmt::format("activations of {} are not supported on the CPU, whose "
                                          "kernels have f32; KV caches of all types are",
                                          short_type_name(shape.dtype)),
                   .where = "--dtype"});
    }
    if (shape.run_bytes % 64 == 0) return {};
    return fail({.code = ErrorCode::kUnavailable,
                 .message = fmt::format("runs of {} bytes are not supported on the CPU, which "
                                        "reads whole lines of 64",
                                        shape.run_bytes),
                 .where = "run_bytes"});
  }

  CpuMachine machine_;
};

}  // namespace

std::unique_ptr<Target> make_cpu_target(const CpuOptions& options) {
  return std::make_unique<CpuTarget>(options);
}

}  // namespace kernelpath::bench
