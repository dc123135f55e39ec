#include "bench/cuda_decode_data.h"
#include "bench/cuda_jobs.h"
#include "bench/paged_data.h"
#include "kernels/cuda/gqa_decode.h"
#include "kernels/cuda/prefill.h"

#include <cstddef>
#include <utility>

// prefill with the kernel of lib/kernels/cuda.

namespace kernelpath::bench {
namespace {

namespace cuda = kernels::cuda;

class PrefillJob : public Job {
 public:
  PrefillJob(CudaMachine& machine, Shape shape) : machine_(&machine), shape_(std::move(shape)) {}

  Result<void> prepare(bool cold) {
    // Types and sizes alone, before there are any data.
    alignas(256) static std::byte somewhere{};
    const attention::Geometry& g = shape_.geometry;
    params_.geometry = g;
    params_.batch.num_requests = shape_.batch;
    params_.batch.page_size = shape_.page_size;
    params_.batch.block_table_stride = 1;
    params_.max_queries = shape_.query_tokens;
    params_.k = kv::paged_rows(page_layout(shape_, g.head_dim), &somewhere, &somewhere);
    params_.v = kv::paged_rows(page_layout(shape_, g.v_head_dim), &somewhere, &somewhere);
    params_.query_type = shape_.dtype;
    KERNELPATH_CHECK_OK(cuda::check_prefill(params_, machine_->info()));
    KERNELPATH_TRY(data, CudaDecodeData::make(*machine_, shape_, cold));
    data_ = std::move(data);
    KERNELPATH_TRY(work, GraphWorkload::capture(
                             *machine_, {.before = {},
                                         .launch =
                                             [this](std::int64_t pass, StreamView stream) {
                                               return launch(pass % data_->plan.copies, stream);
                                             },
                                         .launches = data_->plan.copies}));
    work_ = std::move(work);
    return {};
  }

  Result<double> run(std::int64_t launches) override { return work_->run(launches); }
  [[nodiscard]] std::int64_t least_launches() const override { return work_->least_launches(); }
  [[nodiscard]] CacheState cache() const override { return data_->state; }
  [[nodiscard]] std::string kernel() const override { return cuda::prefill_kernel_name(params_); }

  Result<std::optional<Check>> check() override {
    KERNELPATH_TRY(seconds, run(1));
    static_cast<void>(seconds);
    KERNELPATH_TRY(check, data_->compare(*machine_, shape_));
    return check;
  }

  Result<OwnLimit> limit() override {
    return OwnLimit{.kind = LimitKind::kMatrixRate, .amount = work_of(shape_).flops};
  }

 private:
  Result<void> launch(std::int64_t copy, StreamView stream) {
    cuda::DecodeParams params = params_;
    data_->fill(shape_, copy, params);
    return cuda::launch_prefill(params, machine_->info(), stream);
  }

  CudaMachine* machine_;
  Shape shape_;
  cuda::DecodeParams params_;
  std::unique_ptr<CudaDecodeData> data_;
  std::unique_ptr<GraphWorkload> work_;
};

}  // namespace

Result<std::unique_ptr<Job>> make_cuda_prefill_job(CudaMachine& machine, const Shape& shape,
                                                   bool cold) {
  auto job = std::make_unique<PrefillJob>(machine, shape);
  KERNELPATH_CHECK_OK(job->prepare(cold));
  return job;
}

}  // namespace kernelpath::bench
