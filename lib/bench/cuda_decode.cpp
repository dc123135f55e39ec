#include "base/float_types.h"
#include "bench/cuda_decode_data.h"
#include "bench/cuda_jobs.h"
#include "bench/cuda_peers.h"
#include "bench/paged_data.h"
#include "kernels/cuda/ceilings.h"
#include "kernels/cuda/gqa_decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

// gqa-decode with the kernels of lib/kernels/cuda.

namespace kernelpath::bench {
namespace {

namespace cuda = kernels::cuda;

class DecodeJob : public Job {
 public:
  DecodeJob(CudaMachine& machine, Shape shape) : machine_(&machine), shape_(std::move(shape)) {}

  Result<void> prepare(bool cold) {
    KERNELPATH_CHECK_OK(cuda::check_decode(checked_params(), machine_->info()));
    KERNELPATH_TRY(data, CudaDecodeData::make(*machine_, shape_, cold));
    data_ = std::move(data);
    const std::int64_t bytes = cuda::decode_workspace_bytes(params_of(0), machine_->info());
    KERNELPATH_TRY(memory, Buffer::allocate(std::max<std::int64_t>(bytes, 256)));
    workspace_ = std::move(memory);
    // A step plans once and runs its layers: the graph holds one plan and all launches.
    KERNELPATH_TRY(
        work, GraphWorkload::capture(*machine_, {.before =
                                                     [this](StreamView stream) {
                                                       return cuda::plan_decode(
                                                           params_of(0), machine_->info(),
                                                           workspace(), stream);
                                                     },
                                                 .launch =
                                                     [this](std::int64_t pass, StreamView stream) {
                                                       return cuda::launch_decode(
                                                           params_of(pass % data_->plan.copies),
                                                           machine_->info(), workspace(), stream);
                                                     },
                                                 .launches = data_->plan.copies}));
    work_ = std::move(work);
    return {};
  }

  Result<double> run(std::int64_t launches) override { return work_->run(launches); }
  [[nodiscard]] std::int64_t least_launches() const override { return work_->least_launches(); }
  [[nodiscard]] CacheState cache() const override { return data_->state; }
  [[nodiscard]] std::string kernel() const override {
    return cuda::decode_kernel_name(params_of(0));
  }

  Result<std::optional<Check>> check() override {
    // One launch reads the first copy.
    KERNELPATH_TRY(seconds, run(1));
    static_cast<void>(seconds);
    KERNELPATH_TRY(check, data_->compare(*machine_, shape_));
    return check;
  }

  // The same pages in runs as the kernel reads them, one run a page and KV head.
  Result<OwnLimit> limit() override {
    const std::int64_t run = data_->run_bytes;
    KERNELPATH_TRY(rate, machine_->gather_ceiling(run));
    KERNELPATH_TRY(table, data_->run_table(*machine_, shape_));
    run_table_ = std::move(table);
    const std::int64_t runs = run_table_.bytes() / 4 / data_->plan.copies;
    KERNELPATH_TRY(
        workload,
        GraphWorkload::capture(*machine_,
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
                                          machine_->sink(), stream);
                                    },
                                .launches = data_->plan.copies}));
    return OwnLimit{.kind = LimitKind::kGatherRead,
                    .workload = std::move(workload),
                    .amount = static_cast<double>(runs * run),
                    .rate = rate};
  }

  std::vector<Peer> peers(const std::string& wanted) override {
    return cuda_decode_peers(*machine_, shape_, *data_, wanted);
  }

 private:
  [[nodiscard]] cuda::DecodeWorkspace workspace() const {
    return {.data = workspace_.data(), .bytes = workspace_.bytes()};
  }

  // Before there are any data: types and sizes alone. Block scales are somewhere, so that it is the
  // type that is judged.
  [[nodiscard]] cuda::DecodeParams checked_params() const {
    cuda::DecodeParams out;
    out.geometry = shape_.geometry;
    out.batch.num_requests = shape_.batch;
    out.batch.page_size = shape_.page_size;
    out.batch.block_table_stride = 1;
    out.max_queries = shape_.query_tokens;
    alignas(256) static std::byte somewhere{};
    const attention::Geometry& g = shape_.geometry;
    out.k = kv::paged_rows(page_layout(shape_, g.head_dim), &somewhere, &somewhere);
    out.v = kv::paged_rows(page_layout(shape_, g.v_head_dim), &somewhere, &somewhere);
    out.query_type = shape_.dtype;
    return out;
  }

  [[nodiscard]] cuda::DecodeParams params_of(std::int64_t copy) const {
    cuda::DecodeParams out = checked_params();
    data_->fill(shape_, copy, out);
    return out;
  }

  CudaMachine* machine_;
  Shape shape_;
  std::unique_ptr<CudaDecodeData> data_;
  Buffer workspace_;
  Buffer run_table_;
  std::unique_ptr<GraphWorkload> work_;
};

}  // namespace

Result<std::unique_ptr<Job>> make_cuda_decode_job(CudaMachine& machine, const Shape& shape,
                                                  bool cold) {
  auto job = std::make_unique<DecodeJob>(machine, shape);
  KERNELPATH_CHECK_OK(job->prepare(cold));
  return job;
}

}  // namespace kernelpath::bench
