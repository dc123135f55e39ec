#include "bench/cuda_attention_data.h"
#include "bench/cuda_jobs.h"
#include "bench/cuda_peers.h"
#include "kernels/cuda/ceilings.h"
#include "kernels/cuda/gqa_decode.h"

#include <algorithm>
#include <utility>

// gqa-decode with the kernels of lib/kernels/cuda.

namespace kernelpath::bench {
namespace {

namespace cuda = kernels::cuda;

class DecodeJob : public GraphJob {
 public:
  DecodeJob(CudaMachine& machine, Shape shape) : GraphJob(machine), shape_(std::move(shape)) {}

  Result<void> prepare(bool cold) {
    KERNELPATH_CHECK_OK(cuda::check_decode(attention_params(shape_), machine().info()));
    KERNELPATH_TRY(data, CudaAttentionData::make(machine(), shape_, cold));
    data_ = std::move(data);
    const std::int64_t bytes = cuda::decode_workspace_bytes(params_of(0), machine().info());
    KERNELPATH_TRY(memory, Buffer::allocate(std::max<std::int64_t>(bytes, 256)));
    workspace_ = std::move(memory);
    // A step plans once and runs its layers: the graph holds one plan and all launches.
    return capture({.before =
                        [this](StreamView stream) {
                          return cuda::plan_decode(params_of(0), machine().info(), workspace(),
                                                   stream);
                        },
                    .launch =
                        [this](std::int64_t pass, StreamView stream) {
                          return cuda::launch_decode(params_of(pass % data_->plan.copies),
                                                     machine().info(), workspace(), stream);
                        },
                    .launches = data_->plan.copies});
  }

  [[nodiscard]] CacheState cache() const override { return data_->state; }
  [[nodiscard]] std::string kernel() const override {
    return cuda::decode_kernel_name(params_of(0));
  }

  Result<std::optional<Check>> check() override {
    // One launch reads the first copy.
    KERNELPATH_CHECK_OK(run(1));
    KERNELPATH_TRY(check, data_->compare(machine(), shape_));
    return check;
  }

  // The same pages in runs as the kernel reads them, one run a page and KV head.
  Result<OwnLimit> limit() override {
    const std::int64_t run = data_->run_bytes;
    KERNELPATH_TRY(rate, machine().gather_ceiling(run));
    KERNELPATH_TRY(table, data_->run_table(machine(), shape_));
    run_table_ = std::move(table);
    const std::int64_t runs = run_table_.bytes() / 4 / data_->plan.copies;
    KERNELPATH_TRY(
        workload,
        GraphWorkload::capture(machine(),
                               {.before = {},
                                .launch =
                                    [this, runs, run](std::int64_t pass, StreamView stream) {
                                      const auto* const table_data =
                                          reinterpret_cast<const std::int32_t*>(run_table_.data());
                                      return cuda::launch_gather_read(
                                          {.data = data_->kv.data(),
                                           .table = table_data + pass % data_->plan.copies * runs,
                                           .num_runs = runs,
                                           .run_bytes = run},
                                          machine().sink(), stream);
                                    },
                                .launches = data_->plan.copies}));
    return OwnLimit{.kind = LimitKind::kGatherRead,
                    .workload = std::move(workload),
                    .amount = static_cast<double>(runs * run),
                    .rate = rate};
  }

  std::vector<Peer> peers(const std::string& wanted) override {
    return cuda_decode_peers(machine(), shape_, *data_, wanted);
  }

 private:
  [[nodiscard]] cuda::DecodeWorkspace workspace() const {
    return {.data = workspace_.data(), .bytes = workspace_.bytes()};
  }

  [[nodiscard]] cuda::DecodeParams params_of(std::int64_t copy) const {
    cuda::DecodeParams out = attention_params(shape_);
    data_->fill(shape_, copy, out);
    return out;
  }

  Shape shape_;
  std::unique_ptr<CudaAttentionData> data_;
  Buffer workspace_;
  Buffer run_table_;
};

}  // namespace

Result<std::unique_ptr<Job>> make_cuda_decode_job(CudaMachine& machine, const Shape& shape,
                                                  bool cold) {
  return prepared<DecodeJob>(machine, shape, cold);
}

}  // namespace kernelpath::bench
