#include "base/checked.h"
#include "bench/cpu_jobs.h"
#include "bench/cpu_reads.h"
#include "bench/matrix_data.h"

#include <algorithm>
#include <utility>

// gemv and matrix-rate with the engine's matrix kernels on the CPU.

namespace kernelpath::bench {
namespace {

using kernels::WeightMatrix;

class MatrixJob : public OpsJob {
 public:
  MatrixJob(CpuMachine& machine, Shape shape) : OpsJob(machine), shape_(std::move(shape)) {}

  Result<void> prepare(bool cold) {
    const WeightType& type = *shape_.weight;
    const std::int64_t row_bytes = kernels::weight_row_bytes(type.format, shape_.cols);
    const std::int64_t bytes = row_bytes * shape_.rows;
    copies_ = machine().copies(bytes, cold);
    state_ = machine().state(bytes, copies_);
    KERNELPATH_TRY(data,
                   machine().filled(bytes * copies_, weight_pattern(type.format), "the weights"));
    data_ = std::move(data);
    if (kernels::has_inner_scales(type.format)) {
      set_inner_scales(type.format, data_.data(), bytes * copies_);
    }
    std::int64_t scale_row = 0;
    std::int64_t scale_rows = 0;
    if (type.block_rows > 0) {
      scale_row = ceil_div(shape_.cols, type.block_cols) * kernels::scale_bytes(type.scales);
      scale_rows = ceil_div(shape_.rows, type.block_rows);
    }
    KERNELPATH_TRY(scales, machine().filled(scale_row * scale_rows * copies_,
                                            scale_pattern(type.scales), "the scales"));
    scales_ = std::move(scales);
    for (std::int64_t i = 0; i < copies_; ++i) {
      WeightMatrix matrix{.format = type.format, .rows = shape_.rows, .cols = shape_.cols};
      matrix.data = data_.data() + i * bytes;
      matrix.row_bytes = row_bytes;
      if (type.block_rows > 0) {
        matrix.scale_format = type.scales;
        matrix.scales = scales_.data() + i * scale_row * scale_rows;
        matrix.scale_row_bytes = scale_row;
        matrix.block_rows = type.block_rows;
        matrix.block_cols = type.block_cols;
      }
      matrices_.push_back(matrix);
    }
    KERNELPATH_TRY(x, machine().filled(shape_.batch * shape_.cols * 4,
                                       pattern_of(attention::DataType::kF32), "the activations"));
    x_ = std::move(x);
    KERNELPATH_TRY(y, machine().filled(shape_.batch * shape_.rows * 4, kAnyBits, "the output"));
    y_ = std::move(y);
    return {};
  }

  [[nodiscard]] CacheState cache() const override { return state_; }

  // Rows from all of the matrix against sums in float64 of the values that are stored.
  Result<std::optional<Check>> check() override {
    KERNELPATH_CHECK_OK(run(1));
    const WeightMatrix& matrix = matrices_[static_cast<std::size_t>(last_pass() % copies_)];
    constexpr std::int64_t kMostRows = 64;
    constexpr std::int64_t kMostTokens = 4;
    const std::int64_t rows = std::min(shape_.rows, kMostRows);
    const std::int64_t tokens = std::min(shape_.batch, kMostTokens);
    std::vector<float> weights(static_cast<std::size_t>(shape_.cols));
    Worst error;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t row = sampled(i, rows, shape_.rows);
      kernels::dequantize_row(matrix, row, weights.data());
      for (std::int64_t j = 0; j < tokens; ++j) {
        error.add(error_of(weights, row, sampled(j, tokens, shape_.batch)));
      }
    }
    // Float32 sums are good for 1e-6; kernels for many tokens may round activations to bf16.
    return Check{.error = error.value(),
                 .bound = shape_.batch > 1 ? 0x1p-8 : 1e-5,
                 .against = std::to_string(rows * tokens) + " sums in float64"};
  }

  Result<OwnLimit> limit() override {
    if (shape_.kind == CaseKind::kMatrixRate) return OwnLimit{};
    // Few tokens are bound by reading the weights, many by arithmetic.
    constexpr std::int64_t kManyTokens = 32;
    if (shape_.batch >= kManyTokens) {
      return OwnLimit{.kind = LimitKind::kMatrixRate, .amount = work_of(shape_).flops};
    }
    const std::span<const std::byte> data(data_.data(), static_cast<std::size_t>(data_.bytes()));
    return OwnLimit{.kind = LimitKind::kLinearRead,
                    .workload = linear_read(machine(), data, copies_),
                    .amount = static_cast<double>(data_.bytes()) / static_cast<double>(copies_)};
  }

 protected:
  void launch(kernels::Ops& ops, std::int64_t pass) override {
    kernels::MatmulPart part;
    part.w = matrices_[static_cast<std::size_t>(pass % copies_)];
    part.n = shape_.batch;
    part.x = reinterpret_cast<const float*>(x_.data());
    part.x_stride = shape_.cols;
    part.y = reinterpret_cast<float*>(y_.data());
    part.y_stride = shape_.rows;
    ops.matmul({&part, 1});
  }

 private:
  [[nodiscard]] double error_of(const std::vector<float>& weights, std::int64_t row,
                                std::int64_t token) const {
    const auto* const x = reinterpret_cast<const float*>(x_.data()) + token * shape_.cols;
    const float y = reinterpret_cast<const float*>(y_.data())[token * shape_.rows + row];
    return output_error(weights, {x, weights.size()}, y);
  }

  Shape shape_;
  std::int64_t copies_ = 1;
  HugeMemory data_;
  HugeMemory scales_;
  HugeMemory x_;
  HugeMemory y_;
  std::vector<WeightMatrix> matrices_;  // of each copy
  CacheState state_ = CacheState::kMemory;
};

}  // namespace

Result<std::unique_ptr<Job>> make_cpu_matrix_job(CpuMachine& machine, const Shape& shape,
                                                 bool cold) {
  return prepared<MatrixJob>(machine, shape, cold);
}

}  // namespace kernelpath::bench
