#include "bench/append_data.h"
#include "bench/cpu_jobs.h"
#include "bench/cpu_reads.h"

#include <utility>

// kv-append with the engine's kernels on the CPU.

namespace kernelpath::bench {
namespace {

using attention::AppendParams;
using attention::DataType;

class AppendJob : public OpsJob {
 public:
  AppendJob(CpuMachine& machine, Shape shape)
      : OpsJob(machine),
        shape_(std::move(shape)),
        k_layout_(page_layout(shape_, shape_.geometry.head_dim)),
        v_layout_(page_layout(shape_, shape_.geometry.v_head_dim)) {}

  Result<void> prepare(bool cold) {
    const auto bytes = static_cast<std::int64_t>(work_of(shape_).bytes);
    copies_ = machine().copies(bytes, cold);
    state_ = machine().state(bytes, copies_);
    const BitPattern pattern = pattern_of(DataType::kF32);
    const std::int64_t tokens = shape_.batch * copies_;
    KERNELPATH_TRY(
        k, machine().filled(tokens * token_elements(k_layout_) * 4, pattern, "the new keys"));
    KERNELPATH_TRY(
        v, machine().filled(tokens * token_elements(v_layout_) * 4, pattern, "the new values"));
    k_ = std::move(k);
    v_ = std::move(v);
    const std::int64_t pages = append_pages(shape_, copies_);
    KERNELPATH_CHECK_OK(side(pages, k_layout_, k_cache_, k_scales_));
    KERNELPATH_CHECK_OK(side(pages, v_layout_, v_cache_, v_scales_));
    slots_ = append_slots(shape_, copies_);
    return {};
  }

  [[nodiscard]] CacheState cache() const override { return state_; }

  Result<std::optional<Check>> check() override {
    KERNELPATH_CHECK_OK(run(1));
    const AppendParams params = params_of(last_pass());
    const std::span<const std::int64_t> slots(params.slot_mapping,
                                              static_cast<std::size_t>(params.num_tokens));
    Difference difference;
    compare_appended({k_layout_, k_cache_.data(), k_scales_.data()}, slots, params.k, difference);
    compare_appended({v_layout_, v_cache_.data(), v_scales_.data()}, slots, params.v, difference);
    return Check{.error = difference.relative(),
                 .bound = append_bound(shape_.kv_type),
                 .against = "what was to be written"};
  }

  Result<OwnLimit> limit() override {
    // A copy that reads and writes as many bytes together.
    const double moved = work_of(shape_).bytes;
    const auto half = static_cast<std::int64_t>(moved / 2.0);
    const auto all = static_cast<std::size_t>(half * copies_);
    KERNELPATH_TRY(from, machine().filled(half * copies_, kAnyBits, "the memory to copy"));
    KERNELPATH_TRY(to, machine().filled(half * copies_, kAnyBits, "the copy"));
    copy_from_ = std::move(from);
    copy_to_ = std::move(to);
    return OwnLimit{.kind = LimitKind::kCopy,
                    .workload = copying(machine(), {.from = {copy_from_.data(), all},
                                                    .to = {copy_to_.data(), all},
                                                    .parts = copies_}),
                    .amount = 2.0 * static_cast<double>(half)};
  }

 protected:
  void launch(kernels::Ops& ops, std::int64_t pass) override { ops.append(params_of(pass)); }

 private:
  Result<void> side(std::int64_t pages, const kv::PageLayout& layout, HugeMemory& data,
                    HugeMemory& scales) {
    KERNELPATH_TRY(filled, machine().filled(pages * layout.page_data_bytes(), kAnyBits,
                                            "a side of the cache"));
    data = std::move(filled);
    KERNELPATH_TRY(blocks, machine().filled(pages * layout.page_scale_bytes(), kAnyBits,
                                            "the scales of the cache"));
    scales = std::move(blocks);
    return {};
  }

  [[nodiscard]] AppendParams params_of(std::int64_t pass) const {
    const std::int64_t first = pass % copies_ * shape_.batch;
    const attention::Geometry& g = shape_.geometry;
    return {.num_tokens = shape_.batch,
            .num_kv_heads = g.num_kv_heads,
            .head_dim = g.head_dim,
            .v_head_dim = g.v_head_dim,
            .k = reinterpret_cast<const float*>(k_.data()) + first * token_elements(k_layout_),
            .k_stride = 0,
            .v = reinterpret_cast<const float*>(v_.data()) + first * token_elements(v_layout_),
            .v_stride = 0,
            .slot_mapping = slots_.data() + first,
            .page_size = shape_.page_size,
            .k_rows = kv::paged_rows(k_layout_, k_cache_.data(), k_scales_.data()),
            .v_rows = kv::paged_rows(v_layout_, v_cache_.data(), v_scales_.data())};
  }

  Shape shape_;
  kv::PageLayout k_layout_;
  kv::PageLayout v_layout_;
  std::int64_t copies_ = 1;
  HugeMemory k_;
  HugeMemory v_;
  HugeMemory k_cache_;
  HugeMemory v_cache_;
  HugeMemory k_scales_;
  HugeMemory v_scales_;
  HugeMemory copy_from_;
  HugeMemory copy_to_;
  std::vector<std::int64_t> slots_;  // [copies, batch]
  CacheState state_ = CacheState::kMemory;
};

}  // namespace

Result<std::unique_ptr<Job>> make_cpu_append_job(CpuMachine& machine, const Shape& shape,
                                                 bool cold) {
  return prepared<AppendJob>(machine, shape, cold);
}

}  // namespace kernelpath::bench
