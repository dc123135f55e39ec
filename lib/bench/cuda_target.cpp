#include "bench/cuda_target.h"

#include "bench/cuda_jobs.h"
#include "bench/cuda_machine.h"

#include <utility>

namespace kernelpath::bench {
namespace {

class CudaTarget : public Target {
 public:
  explicit CudaTarget(std::unique_ptr<CudaMachine> machine) : machine_(std::move(machine)) {}

  [[nodiscard]] const DeviceFacts& facts() const override { return machine_->facts(); }
  [[nodiscard]] bool is_cuda() const override { return true; }
  [[nodiscard]] bool has(CaseKind /*kind*/) const override { return true; }

  Result<std::unique_ptr<Job>> prepare(const Shape& shape, bool cold) override {
    switch (shape.kind) {
      case CaseKind::kGqaDecode:
        return make_cuda_decode_job(*machine_, shape, cold);
      case CaseKind::kPrefill:
        return make_cuda_prefill_job(*machine_, shape, cold);
      case CaseKind::kMatrixRate:
        return make_cuda_matrix_job(*machine_, shape);
      case CaseKind::kGemv:
        return make_cuda_gemv_job(*machine_, shape, cold);
      case CaseKind::kKvAppend:
        return make_cuda_append_job(*machine_, shape, cold);
      case CaseKind::kReadCeiling:
      case CaseKind::kCopy:
        break;
    }
    return make_cuda_memory_job(*machine_, shape, cold);
  }

  std::string throttled() override { return machine_->throttled(); }

 private:
  std::unique_ptr<CudaMachine> machine_;
};

}  // namespace

Result<std::unique_ptr<Target>> make_cuda_target(int index) {
  KERNELPATH_TRY(machine, CudaMachine::open(index));
  return std::make_unique<CudaTarget>(std::move(machine));
}

}  // namespace kernelpath::bench
