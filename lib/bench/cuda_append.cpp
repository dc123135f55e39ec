#include "base/checked.h"
#include "base/float_types.h"
#include "bench/cuda_decode_data.h"
#include "bench/cuda_jobs.h"
#include "bench/paged_data.h"
#include "kernels/cpu/stored_value.h"
#include "kernels/cuda/append.h"

#include <utility>

// kv-append with the kernel of lib/kernels/cuda: rotation left out, so that what is written can be
// compared with what was to be written.

namespace kernelpath::bench {
namespace {

namespace cuda = kernels::cuda;

class AppendJob : public Job {
 public:
  AppendJob(CudaMachine& machine, Shape shape) : machine_(&machine), shape_(std::move(shape)) {}

  Result<void> prepare(bool cold) {
    KERNELPATH_CHECK_OK(cuda::check_append(params_of(0)));
    const auto bytes = static_cast<std::int64_t>(work_of(shape_).bytes);
    copies_ = machine_->copies(bytes, cold);
    state_ = machine_->state(bytes, copies_);
    const attention::Geometry& g = shape_.geometry;
    const std::int64_t tokens = shape_.batch * copies_;
    pages_ = ceil_div(tokens, shape_.page_size);
    KERNELPATH_CHECK_OK(fill(k_, tokens * k_width() * 2, pattern_of(shape_.dtype)));
    KERNELPATH_CHECK_OK(fill(v_, tokens * v_width() * 2, pattern_of(shape_.dtype)));
    const kv::PageLayout k = page_layout(shape_, g.head_dim);
    const kv::PageLayout v = page_layout(shape_, g.v_head_dim);
    KERNELPATH_CHECK_OK(fill(k_cache_, pages_ * k.page_data_bytes(), kAnyBits));
    KERNELPATH_CHECK_OK(fill(v_cache_, pages_ * v.page_data_bytes(), kAnyBits));
    KERNELPATH_CHECK_OK(fill(k_scales_, pages_ * k.page_scale_bytes(), kAnyBits));
    KERNELPATH_CHECK_OK(fill(v_scales_, pages_ * v.page_scale_bytes(), kAnyBits));
    for (const std::int32_t slot : random_order(pages_ * shape_.page_size, 3)) {
      if (static_cast<std::int64_t>(host_slots_.size()) < tokens) host_slots_.push_back(slot);
    }
    KERNELPATH_TRY(slots, machine_->copied(std::span<const std::int64_t>(host_slots_)));
    slots_ = std::move(slots);
    KERNELPATH_TRY(
        work, GraphWorkload::capture(*machine_, {.before = {},
                                                 .launch =
                                                     [this](std::int64_t pass, StreamView stream) {
                                                       return cuda::launch_append(
                                                           params_of(pass % copies_), stream);
                                                     },
                                                 .launches = copies_}));
    work_ = std::move(work);
    return {};
  }

  Result<double> run(std::int64_t launches) override { return work_->run(launches); }
  [[nodiscard]] std::int64_t least_launches() const override { return work_->least_launches(); }
  [[nodiscard]] CacheState cache() const override { return state_; }
  [[nodiscard]] std::string kernel() const override { return "append"; }

  Result<std::optional<Check>> check() override {
    KERNELPATH_TRY(seconds, run(1));
    static_cast<void>(seconds);
    const attention::Geometry& g = shape_.geometry;
    Difference difference;
    KERNELPATH_CHECK_OK(
        compare({k_.data(), k_cache_, k_scales_, page_layout(shape_, g.head_dim)}, difference));
    KERNELPATH_CHECK_OK(
        compare({v_.data(), v_cache_, v_scales_, page_layout(shape_, g.v_head_dim)}, difference));
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
        GraphWorkload::capture(*machine_, {.before = {},
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

  [[nodiscard]] std::int64_t k_width() const {
    return shape_.geometry.num_kv_heads * shape_.geometry.head_dim;
  }
  [[nodiscard]] std::int64_t v_width() const {
    return shape_.geometry.num_kv_heads * shape_.geometry.v_head_dim;
  }

  Result<void> fill(Buffer& buffer, std::int64_t bytes, const BitPattern& pattern) {
    KERNELPATH_TRY(filled, machine_->filled(bytes, pattern));
    buffer = std::move(filled);
    return {};
  }

  [[nodiscard]] cuda::RopeAppendParams params_of(std::int64_t copy) const {
    const attention::Geometry& g = shape_.geometry;
    cuda::RopeAppendParams out;
    out.num_tokens = shape_.batch;
    out.num_kv_heads = g.num_kv_heads;
    out.head_dim = g.head_dim;
    out.v_head_dim = g.v_head_dim;
    out.type = shape_.dtype;
    out.k = k_.data() + copy * shape_.batch * k_width() * 2;
    out.v = v_.data() + copy * shape_.batch * v_width() * 2;
    out.slot_mapping = reinterpret_cast<const std::int64_t*>(slots_.data()) + copy * shape_.batch;
    out.page_size = shape_.page_size;
    out.k_rows = kv::paged_rows(page_layout(shape_, g.head_dim), k_cache_.data(), k_scales_.data());
    out.v_rows =
        kv::paged_rows(page_layout(shape_, g.v_head_dim), v_cache_.data(), v_scales_.data());
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
    const kv::PageLayout& layout = side.layout;
    const std::int64_t width = layout.num_heads * layout.head_dim;
    std::vector<std::uint16_t> codes(static_cast<std::size_t>(shape_.batch * width));
    KERNELPATH_CHECK_OK(cuda::copy_to_host(codes.data(), side.written, shape_.batch * width * 2));
    const std::vector<float> expected = widened(shape_.dtype, codes);
    const attention::PagedRows rows = kv::paged_rows(layout, cache.data(), scales.data());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      const std::int64_t slot = host_slots_[static_cast<std::size_t>(index / width)];
      const std::int64_t head = index % width / layout.head_dim;
      const std::int64_t element = slot / layout.page_size * rows.page_stride +
                                   slot % layout.page_size * rows.token_stride +
                                   head * rows.head_stride + index % layout.head_dim;
      difference.add(kernels::cpu::stored_element(rows, element), expected[i]);
    }
    return {};
  }

  CudaMachine* machine_;
  Shape shape_;
  std::int64_t copies_ = 1;
  std::int64_t pages_ = 0;
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
  std::unique_ptr<GraphWorkload> work_;
  CacheState state_ = CacheState::kMemory;
};

}  // namespace

Result<std::unique_ptr<Job>> make_cuda_append_job(CudaMachine& machine, const Shape& shape,
                                                  bool cold) {
  auto job = std::make_unique<AppendJob>(machine, shape);
  KERNELPATH_CHECK_OK(job->prepare(cold));
  return job;
}

}  // namespace kernelpath::bench
