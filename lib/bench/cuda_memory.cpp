#include "bench/cuda_jobs.h"
#include "kernels/cuda/ceilings.h"

#include <utility>

// read-ceiling and copy on a CUDA device.

namespace kernelpath::bench {
namespace {

namespace cuda = kernels::cuda;

class MemoryJob : public GraphJob {
 public:
  MemoryJob(CudaMachine& machine, Shape shape) : GraphJob(machine), shape_(std::move(shape)) {}

  Result<void> prepare(bool cold) {
    const bool copies_memory = shape_.kind == CaseKind::kCopy;
    copies_ = machine().copies(shape_.bytes, cold);
    state_ = machine().state(shape_.bytes, copies_);
    KERNELPATH_TRY(data, machine().filled(shape_.bytes * copies_, kAnyBits));
    data_ = std::move(data);
    if (copies_memory) {
      KERNELPATH_TRY(target, Buffer::allocate(shape_.bytes * copies_));
      target_ = std::move(target);
    }
    if (shape_.order == ReadOrder::kGather) {
      const std::vector<std::int32_t> order = random_order(shape_.bytes / shape_.run_bytes, 5);
      KERNELPATH_TRY(table, machine().copied(std::span(order)));
      table_ = std::move(table);
    }
    return capture(body(shape_.order));
  }

  [[nodiscard]] CacheState cache() const override { return state_; }
  [[nodiscard]] std::string kernel() const override {
    if (shape_.kind == CaseKind::kCopy) return "cudaMemcpyAsync";
    return shape_.order == ReadOrder::kGather ? "gather_read" : "linear_read";
  }

  // What a kernel that only reads has read cannot be seen; a copy can.
  Result<std::optional<Check>> check() override {
    if (shape_.kind != CaseKind::kCopy) return std::nullopt;
    KERNELPATH_CHECK_OK(run(1));
    constexpr std::int64_t kMost = std::int64_t{1} << 24;
    const std::int64_t bytes = std::min(shape_.bytes, kMost);
    std::vector<std::byte> from(static_cast<std::size_t>(bytes));
    std::vector<std::byte> to(from.size());
    KERNELPATH_CHECK_OK(cuda::copy_to_host(from.data(), data_.data(), bytes));
    KERNELPATH_CHECK_OK(cuda::copy_to_host(to.data(), target_.data(), bytes));
    return Check{.error = from == to ? 0.0 : 1.0, .bound = 0, .against = "the original"};
  }

  Result<OwnLimit> limit() override {
    if (shape_.order != ReadOrder::kGather) return OwnLimit{};
    KERNELPATH_TRY(linear, GraphWorkload::capture(machine(), body(ReadOrder::kLinear)));
    return OwnLimit{.kind = LimitKind::kLinearRead,
                    .workload = std::move(linear),
                    .amount = static_cast<double>(shape_.bytes)};
  }

 private:
  GraphWorkload::Body body(ReadOrder order) {
    return {.before = {},
            .launch = [this, order](std::int64_t pass, StreamView stream) -> Result<void> {
              const std::int64_t at = pass % copies_ * shape_.bytes;
              if (shape_.kind == CaseKind::kCopy) {
                return cuda::copy_on_device(target_.data() + at, data_.data() + at, shape_.bytes,
                                            stream);
              }
              if (order == ReadOrder::kLinear) {
                return cuda::launch_linear_read(data_.data() + at, shape_.bytes, machine().sink(),
                                                stream);
              }
              return cuda::launch_gather_read(
                  {.data = data_.data() + at,
                   .table = reinterpret_cast<const std::int32_t*>(table_.data()),
                   .num_runs = shape_.bytes / shape_.run_bytes,
                   .run_bytes = shape_.run_bytes},
                  machine().sink(), stream);
            },
            .launches = copies_};
  }

  Shape shape_;
  std::int64_t copies_ = 1;
  Buffer data_;
  Buffer target_;
  Buffer table_;
  CacheState state_ = CacheState::kMemory;
};

}  // namespace

Result<std::unique_ptr<Job>> make_cuda_memory_job(CudaMachine& machine, const Shape& shape,
                                                  bool cold) {
  return prepared<MemoryJob>(machine, shape, cold);
}

}  // namespace kernelpath::bench
