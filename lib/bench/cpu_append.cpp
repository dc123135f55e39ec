#include "base/checked.h"
#include "bench/cpu_jobs.h"
#include "bench/cpu_reads.h"
#include "bench/paged_data.h"
#include "kernels/cpu/stored_value.h"

#include <cmath>
#include <utility>

// kv-append with the engine's kernels on the CPU.

namespace kernelpath::bench {
namespace {

using attention::AppendParams;
using attention::DataType;

class AppendJob : public OpsJob {
 public:
  AppendJob(CpuMachine& machine, Shape shape) : OpsJob(machine), shape_(std::move(shape)) {}

  Result<void> prepare(bool cold) {
    const auto bytes = static_cast<std::int64_t>(work_of(shape_).bytes);
    copies_ = machine().copies(bytes, cold);
    state_ = machine().state(bytes, copies_);
    const attention::Geometry& g = shape_.geometry;
    const BitPattern pattern = pattern_of(DataType::kF32);
    const std::int64_t tokens = shape_.batch * copies_;
    KERNELPATH_TRY(k, machine().filled(tokens * k_width() * 4, pattern, "the new keys"));
    KERNELPATH_TRY(v, machine().filled(tokens * v_width() * 4, pattern, "the new values"));
    k_ = std::move(k);
    v_ = std::move(v);
    const std::int64_t pages = ceil_div(tokens, shape_.page_size);
    const kv::PageLayout k_layout = page_layout(shape_, g.head_dim);
    const kv::PageLayout v_layout = page_layout(shape_, g.v_head_dim);
    KERNELPATH_CHECK_OK(side(pages, k_layout, k_cache_, k_scales_));
    KERNELPATH_CHECK_OK(side(pages, v_layout, v_cache_, v_scales_));
    // Each token goes to the next request's page, as in decoding.
    for (const std::int32_t slot : random_order(pages * shape_.page_size, 3)) {
      if (static_cast<std::int64_t>(slots_.size()) < tokens) slots_.push_back(slot);
    }
    k_rows_ = kv::paged_rows(k_layout, k_cache_.data(), k_scales_.data());
    v_rows_ = kv::paged_rows(v_layout, v_cache_.data(), v_scales_.data());
    return {};
  }

  [[nodiscard]] CacheState cache() const override { return state_; }

  Result<std::optional<Check>> check() override {
    KERNELPATH_TRY(seconds, run(1));
    static_cast<void>(seconds);
    const AppendParams params = params_of(last_pass());
    Difference difference;
    for (std::int64_t token = 0; token < shape_.batch; ++token) {
      add_row(params, params.k_rows, token, params.k + token * k_width(), difference);
      add_row(params, params.v_rows, token, params.v + token * v_width(), difference);
    }
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
  [[nodiscard]] std::int64_t k_width() const {
    return shape_.geometry.num_kv_heads * shape_.geometry.head_dim;
  }
  [[nodiscard]] std::int64_t v_width() const {
    return shape_.geometry.num_kv_heads * shape_.geometry.v_head_dim;
  }

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
            .k = reinterpret_cast<const float*>(k_.data()) + first * k_width(),
            .k_stride = 0,
            .v = reinterpret_cast<const float*>(v_.data()) + first * v_width(),
            .v_stride = 0,
            .slot_mapping = slots_.data() + first,
            .page_size = shape_.page_size,
            .k_rows = k_rows_,
            .v_rows = v_rows_};
  }

  void add_row(const AppendParams& params, const attention::PagedRows& rows, std::int64_t token,
               const float* expected, Difference& difference) const {
    const std::int64_t slot = params.slot_mapping[token];
    const std::int64_t width =
        &rows == &params.k_rows ? shape_.geometry.head_dim : shape_.geometry.v_head_dim;
    for (std::int64_t head = 0; head < params.num_kv_heads; ++head) {
      const std::int64_t first = slot / params.page_size * rows.page_stride +
                                 slot % params.page_size * rows.token_stride +
                                 head * rows.head_stride;
      for (std::int64_t i = 0; i < width; ++i) {
        difference.add(kernels::cpu::stored_element(rows, first + i), expected[head * width + i]);
      }
    }
  }

  Shape shape_;
  std::int64_t copies_ = 1;
  HugeMemory k_;
  HugeMemory v_;
  HugeMemory k_cache_;
  HugeMemory v_cache_;
  HugeMemory k_scales_;
  HugeMemory v_scales_;
  HugeMemory copy_from_;
  HugeMemory copy_to_;
  attention::PagedRows k_rows_;
  attention::PagedRows v_rows_;
  std::vector<std::int64_t> slots_;  // [copies, batch]
  CacheState state_ = CacheState::kMemory;
};

}  // namespace

Result<std::unique_ptr<Job>> make_cpu_append_job(CpuMachine& machine, const Shape& shape,
                                                 bool cold) {
  auto job = std::make_unique<AppendJob>(machine, shape);
  KERNELPATH_CHECK_OK(job->prepare(cold));
  return job;
}

}  // namespace kernelpath::bench
