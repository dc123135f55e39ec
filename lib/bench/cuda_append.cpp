#include "bench/append_data.h"
#include "bench/cuda_attention_data.h"
#include "bench/cuda_jobs.h"
#include "kernels/cuda/append.h"

#include <utility>

// kv-append with the kernel of lib/kernels/cuda: rotation left out, so that what is written can be
// compared with what was to be written.

namespace kernelpath::bench {
namespace {

namespace cuda = kernels::cuda;

class AppendJob : public GraphJob {
 public:
  AppendJob(CudaMachine& machine, Shape shape)
      : GraphJob(machine),
        shape_(std::move(shape)),
        k_layout_(page_layout(shape_, shape_.geometry.head_dim)),
        v_layout_(page_layout(shape_, shape_.geometry.v_head_dim)) {}

  Result<void> prepare(bool cold) {
    KERNELPATH_CHECK_OK(cuda::check_append(params_of(0)));
    const auto bytes = static_cast<std::int64_t>(work_of(shape_).bytes);
    copies_ = machine().copies(bytes, cold);
    state_ = machine().state(bytes, copies_);
    const std::int64_t tokens = shape_.batch * copies_;
    const std::int64_t pages = append_pages(shape_, copies_);
    KERNELPATH_CHECK_OK(fill(k_, tokens * token_elements(k_layout_) * 2, pattern_of(shape_.dtype)));
    KERNELPATH_CHECK_OK(fill(v_, tokens * token_elements(v_layout_) * 2, pattern_of(shape_.dtype)));
    KERNELPATH_CHECK_OK(fill(k_cache_, pages * k_layout_.page_data_bytes(), kAnyBits));
    KERNELPATH_CHECK_OK(fill(v_cache_, pages * v_layout_.page_data_bytes(), kAnyBits));
    KERNELPATH_CHECK_OK(fill(k_scales_, pages * k_layout_.page_scale_bytes(), kAnyBits));
    KERNELPATH_CHECK_OK(fill(v_scales_, pages * v_layout_.page_scale_bytes(), kAnyBits));
    host_slots_ = append_slots(shape_, copies_);
    KERNELPATH_TRY(slots, machine().copied(std::span<const std::int64_t>(host_slots_)));
    slots_ = std::move(slots);
    return capture({.before = {},
                    .launch =
                        [this](std::int64_t pass, StreamView stream) {
                          return cuda::launch_append(params_of(pass % copies_), stream);
                        },
                    .launches = copies_});
  }

  [[nodiscard]] CacheState cache() const override { return state_; }
  [[nodiscard]] std::string kernel() const override { return "append"; }

  Result<std::optional<Check>> check() override {
    KERNELPATH_CHECK_OK(run(1));
    Difference difference;
    KERNELPATH_CHECK_OK(compare({k_.data(), k_cache_, k_scales_, k_layout_}, difference));
    KERNELPATH_CHECK_OK(compare({v_.data(), v_cache_, v_scales_, v_layout_}, difference));
    return Check{.error = difference.relative(),
                 .bound = append_bound(shape_.kv_type),
                 .against = "what was to be written"};
  }

  // A copy that reads and writes as many bytes together.
  Result<OwnLimit> limit() override {
    const auto half = static_cast<std::int64_t>(work_of(shape_).bytes / 2.0);
    KERNELPATH_CHECK_OK(fill(copy_from_, half * copies_, kAnyBits));
    KERNELPATH_CHECK_OK(fill(copy_to_, half * copies_, kAnyBits));
    KERNELPATH_TRY(
        workload,
        GraphWorkload::capture(machine(), {.before = {},
                                           .launch =
                                               [this, half](std::int64_t pass, StreamView stream) {
                                                 const std::int64_t at = pass % copies_ * half;
                                                 return cuda::copy_on_device(copy_to_.data() + at,
                                                                             copy_from_.data() + at,
                                                                             half, stream);
                                               },
                                           .launches = copies_}));
    return OwnLimit{.kind = LimitKind::kCopy,
                    .workload = std::move(workload),
                    .amount = 2.0 * static_cast<double>(half)};
  }

 private:
  struct Side {
    const std::byte* written = nullptr;  // what was to be written
    const Buffer& cache;
    const Buffer& scales;
    kv::PageLayout layout;
  };

  [[nodiscard]] cuda::RopeAppendParams params_of(std::int64_t copy) const {
    const attention::Geometry& g = shape_.geometry;
    cuda::RopeAppendParams out;
    out.num_tokens = shape_.batch;
    out.num_kv_heads = g.num_kv_heads;
    out.head_dim = g.head_dim;
    out.v_head_dim = g.v_head_dim;
    out.type = shape_.dtype;
    out.k = k_.data() + copy * shape_.batch * token_elements(k_layout_) * 2;
    out.v = v_.data() + copy * shape_.batch * token_elements(v_layout_) * 2;
    out.slot_mapping = reinterpret_cast<const std::int64_t*>(slots_.data()) + copy * shape_.batch;
    out.page_size = shape_.page_size;
    out.k_rows = kv::paged_rows(k_layout_, k_cache_.data(), k_scales_.data());
    out.v_rows = kv::paged_rows(v_layout_, v_cache_.data(), v_scales_.data());
    return out;
  }

  // The first copy's tokens.
  Result<void> compare(const Side& side, Difference& difference) const {
    std::vector<std::byte> cache(static_cast<std::size_t>(side.cache.bytes()));
    std::vector<std::byte> scales(static_cast<std::size_t>(side.scales.bytes()));
    KERNELPATH_CHECK_OK(cuda::copy_to_host(cache.data(), side.cache.data(), side.cache.bytes()));
    if (!scales.empty()) {
      KERNELPATH_CHECK_OK(
          cuda::copy_to_host(scales.data(), side.scales.data(), side.scales.bytes()));
    }
    const std::int64_t count = shape_.batch * token_elements(side.layout);
    std::vector<std::uint16_t> codes(static_cast<std::size_t>(count));
    KERNELPATH_CHECK_OK(cuda::copy_to_host(codes.data(), side.written, count * 2));
    const std::span<const std::int64_t> slots(host_slots_.data(),
                                              static_cast<std::size_t>(shape_.batch));
    compare_appended({side.layout, cache.data(), scales.data()}, slots,
                     widened(shape_.dtype, codes).data(), difference);
    return {};
  }

  Shape shape_;
  kv::PageLayout k_layout_;
  kv::PageLayout v_layout_;
  std::int64_t copies_ = 1;
  Buffer k_;
  Buffer v_;
  Buffer k_cache_;
  Buffer v_cache_;
  Buffer k_scales_;
  Buffer v_scales_;
  Buffer slots_;
  Buffer copy_from_;
  Buffer copy_to_;
  std::vector<std::int64_t> host_slots_;  // [copies, batch]
  CacheState state_ = CacheState::kMemory;
};

}  // namespace

Result<std::unique_ptr<Job>> make_cuda_append_job(CudaMachine& machine, const Shape& shape,
                                                  bool cold) {
  return prepared<AppendJob>(machine, shape, cold);
}

}  // namespace kernelpath::bench
