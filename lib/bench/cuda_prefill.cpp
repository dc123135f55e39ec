#include "bench/cuda_attention_data.h"
#include "bench/cuda_jobs.h"
#include "kernels/cuda/prefill.h"

#include <utility>

// prefill with the kernel of lib/kernels/cuda.

namespace kernelpath::bench {
namespace {

namespace cuda = kernels::cuda;

class PrefillJob : public GraphJob {
 public:
  PrefillJob(CudaMachine& machine, Shape shape) : GraphJob(machine), shape_(std::move(shape)) {}

  Result<void> prepare(bool cold) {
    params_ = attention_params(shape_);
    KERNELPATH_CHECK_OK(cuda::check_prefill(params_, machine().info()));
    KERNELPATH_TRY(data, CudaAttentionData::make(machine(), shape_, cold));
    data_ = std::move(data);
    return capture(
        {.before = {},
         .launch = [this](std::int64_t pass,
                          StreamView stream) { return launch(pass % data_->plan.copies, stream); },
         .launches = data_->plan.copies});
  }

  [[nodiscard]] CacheState cache() const override { return data_->state; }
  [[nodiscard]] std::string kernel() const override { return cuda::prefill_kernel_name(params_); }

  Result<std::optional<Check>> check() override {
    KERNELPATH_CHECK_OK(run(1));
    KERNELPATH_TRY(check, data_->compare(machine(), shape_));
    return check;
  }

  Result<OwnLimit> limit() override {
    return OwnLimit{.kind = LimitKind::kMatrixRate, .amount = work_of(shape_).flops};
  }

 private:
  Result<void> launch(std::int64_t copy, StreamView stream) {
    cuda::DecodeParams params = params_;
    data_->fill(shape_, copy, params);
    return cuda::launch_prefill(params, machine().info(), stream);
  }

  Shape shape_;
  cuda::DecodeParams params_;
  std::unique_ptr<CudaAttentionData> data_;
};

}  // namespace

Result<std::unique_ptr<Job>> make_cuda_prefill_job(CudaMachine& machine, const Shape& shape,
                                                   bool cold) {
  return prepared<PrefillJob>(machine, shape, cold);
}

}  // namespace kernelpath::bench
