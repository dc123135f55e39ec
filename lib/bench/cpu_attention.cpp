#include "bench/cpu_jobs.h"
#include "bench/cpu_reads.h"
#include "bench/matrix_data.h"
#include "bench/paged_data.h"

#include <utility>

// gqa-decode and prefill with the engine's attention kernels on the CPU.

namespace kernelpath::bench {
namespace {

using attention::AttentionParams;
using attention::DataType;

// Both sides of a cache.
struct Cache {
  HugeMemory k;
  HugeMemory v;
  HugeMemory k_scales;
  HugeMemory v_scales;
};

Result<Cache> make_cache(CpuMachine& machine, const Shape& shape, std::int64_t pages) {
  const kv::PageLayout k = page_layout(shape, shape.geometry.head_dim);
  const kv::PageLayout v = page_layout(shape, shape.geometry.v_head_dim);
  const BitPattern pattern = pattern_of(shape.kv_type);
  const BitPattern scales = scale_pattern(kernels::ScaleFormat::kE4m3);
  KERNELPATH_TRY(k_data, machine.filled(pages * k.page_data_bytes(), pattern, "K of the cache"));
  KERNELPATH_TRY(v_data, machine.filled(pages * v.page_data_bytes(), pattern, "V of the cache"));
  KERNELPATH_TRY(k_scales, machine.filled(pages * k.page_scale_bytes(), scales, "K scales"));
  KERNELPATH_TRY(v_scales, machine.filled(pages * v.page_scale_bytes(), scales, "V scales"));
  return Cache{.k = std::move(k_data),
               .v = std::move(v_data),
               .k_scales = std::move(k_scales),
               .v_scales = std::move(v_scales)};
}

class AttentionJob : public OpsJob {
 public:
  AttentionJob(CpuMachine& machine, Shape shape) : OpsJob(machine), shape_(std::move(shape)) {}

  Result<void> prepare(bool cold) {
    const auto cache_bytes = static_cast<std::int64_t>(work_of(shape_).bytes);
    plan_ = plan_pages(shape_, machine().copies(cache_bytes, cold));
    state_ = machine().state(cache_bytes, plan_.copies);
    KERNELPATH_TRY(cache, make_cache(machine(), shape_, plan_.pages));
    cache_ = std::move(cache);
    const attention::Geometry& g = shape_.geometry;
    const std::int64_t rows = shape_.batch * shape_.query_tokens * g.num_heads;
    KERNELPATH_TRY(q, machine().filled(rows * g.head_dim * 4, pattern_of(DataType::kF32), "Q"));
    q_ = std::move(q);
    KERNELPATH_TRY(o, machine().filled(rows * g.v_head_dim * 4, kAnyBits, "the output"));
    o_ = std::move(o);
    sinks_.assign(static_cast<std::size_t>(g.num_heads), 1.0F);
    for (std::int64_t copy = 0; copy < plan_.copies; ++copy) params_.push_back(params_of(copy));
    return {};
  }

  [[nodiscard]] CacheState cache() const override { return state_; }

  Result<std::optional<Check>> check() override {
    KERNELPATH_CHECK_OK(run(1));
    const std::vector<CheckPoint> points = check_points(shape_);
    const attention::Geometry& g = shape_.geometry;
    const std::int64_t width = g.num_heads * g.v_head_dim;
    std::vector<float> reference(static_cast<std::size_t>(width));
    const auto* const out = reinterpret_cast<const float*>(o_.data());
    Difference difference;
    for (const CheckPoint& point : points) {
      reference_row(point, reference.data());
      const float* const row = out + (point.request * shape_.query_tokens + point.query) * width;
      for (std::int64_t i = 0; i < width; ++i) {
        difference.add(row[i], reference[static_cast<std::size_t>(i)]);
      }
    }
    // Sums of float32 products, over as many keys as there are.
    constexpr double kBound = 1e-4;
    return Check{.error = difference.relative(),
                 .bound = kBound,
                 .against = check_text(shape_, points.size())};
  }

  // Decoding reads: the same pages in the same order, without arithmetic. Prefill computes.
  Result<OwnLimit> limit() override {
    if (shape_.kind == CaseKind::kPrefill) {
      return OwnLimit{.kind = LimitKind::kMatrixRate, .amount = work_of(shape_).flops};
    }
    std::vector<CpuGather> gathers;
    double bytes = 0;
    const std::int64_t k_run = page_layout(shape_, shape_.geometry.head_dim).page_data_bytes();
    const std::int64_t v_run = page_layout(shape_, shape_.geometry.v_head_dim).page_data_bytes();
    // Pages of other sizes have no gather of whole lines.
    if (k_run % 64 != 0 || v_run % 64 != 0) return OwnLimit{};
    for (std::int64_t copy = 0; copy < plan_.copies; ++copy) {
      const std::vector<std::int32_t> order = page_order(shape_, plan_, copy);
      gathers.push_back({.data = bytes_of(cache_.k), .table = order, .run_bytes = k_run});
      gathers.push_back({.data = bytes_of(cache_.v), .table = order, .run_bytes = v_run});
      bytes = static_cast<double>(static_cast<std::int64_t>(order.size()) * (k_run + v_run));
    }
    return OwnLimit{
        .kind = LimitKind::kGatherRead,
        .workload = std::make_unique<BothSides>(gather_read(machine(), std::move(gathers))),
        .amount = bytes};
  }

 protected:
  void launch(kernels::Ops& ops, std::int64_t pass) override {
    ops.attention(params_[static_cast<std::size_t>(pass % plan_.copies)]);
  }

 private:
  // K and V are two gathers of one launch.
  class BothSides : public Workload {
   public:
    explicit BothSides(std::unique_ptr<Workload> one_side) : one_side_(std::move(one_side)) {}
    Result<double> run(std::int64_t launches) override { return one_side_->run(2 * launches); }

   private:
    std::unique_ptr<Workload> one_side_;
  };

  static std::span<const std::byte> bytes_of(const HugeMemory& memory) {
    return {memory.data(), static_cast<std::size_t>(memory.bytes())};
  }

  [[nodiscard]] AttentionParams params_of(std::int64_t copy) const {
    AttentionParams out;
    out.geometry = shape_.geometry;
    out.batch = {.num_requests = shape_.batch,
                 .query_start = plan_.query_start.data(),
                 .seq_lens = plan_.seq_lens.data(),
                 .block_table = plan_.table_of(copy),
                 .block_table_stride = plan_.stride,
                 .page_size = shape_.page_size};
    const attention::Geometry& g = shape_.geometry;
    out.k =
        kv::paged_rows(page_layout(shape_, g.head_dim), cache_.k.data(), cache_.k_scales.data());
    out.v =
        kv::paged_rows(page_layout(shape_, g.v_head_dim), cache_.v.data(), cache_.v_scales.data());
    out.q = reinterpret_cast<const float*>(q_.data());
    out.o = reinterpret_cast<float*>(o_.data());
    if (shape_.sinks) out.sinks = sinks_.data();
    return out;
  }

  // One row by definition, as a batch of its own.
  void reference_row(const CheckPoint& point, float* out) {
    const std::int64_t copy = last_pass() % plan_.copies;
    PointBatch batch;
    batch.seq_lens = {static_cast<std::int32_t>(point.position + 1)};
    AttentionParams params = params_of(copy);
    params.reference = true;
    params.batch = batch.view(plan_.table_of(copy) + point.request * plan_.stride, plan_.stride,
                              shape_.page_size);
    const attention::Geometry& g = shape_.geometry;
    params.q += (point.request * shape_.query_tokens + point.query) * g.num_heads * g.head_dim;
    params.o = out;
    machine().executor().run([&](kernels::Ops& ops) { ops.attention(params); });
  }

  Shape shape_;
  PagePlan plan_;
  Cache cache_;
  HugeMemory q_;
  HugeMemory o_;
  std::vector<float> sinks_;
  std::vector<AttentionParams> params_;  // of each copy
  CacheState state_ = CacheState::kMemory;
};

}  // namespace

Result<std::unique_ptr<Job>> make_cpu_attention_job(CpuMachine& machine, const Shape& shape,
                                                    bool cold) {
  return prepared<AttentionJob>(machine, shape, cold);
}

}  // namespace kernelpath::bench
