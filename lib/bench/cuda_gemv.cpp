#include "base/checked.h"
#include "bench/cublas.h"
#include "bench/cuda_attention_data.h"
#include "bench/cuda_jobs.h"
#include "bench/matrix_data.h"
#include "bench/paged_data.h"
#include "bench/peers.h"
#include "kernels/cuda/ceilings.h"
#include "kernels/cuda/gemv.h"

#include <algorithm>
#include <string>
#include <utility>

// gemv with the kernel of lib/kernels/cuda, and cuBLAS beside it.

namespace kernelpath::bench {
namespace {

namespace cuda = kernels::cuda;
using kernels::WeightMatrix;

// cuBLAS on the weights and activations of a GemvJob.
class CublasWorkload : public Workload {
 public:
  // Captured; `call_of` gives the product of each pass.
  static Result<std::unique_ptr<CublasWorkload>> make(
      CudaMachine& machine, std::int64_t copies, std::function<CublasCall(std::int64_t)> call_of) {
    auto out = std::make_unique<CublasWorkload>();
    KERNELPATH_TRY(cublas, Cublas::make(machine));
    out->cublas_ = std::move(cublas);
    KERNELPATH_TRY(
        work, GraphWorkload::capture(
                  machine, {.before = {},
                            .launch =
                                [library = out->cublas_.get(), copies, call = std::move(call_of)](
                                    std::int64_t pass, StreamView /*stream*/) {
                                  return library->multiply(call(pass % copies));
                                },
                            .launches = copies}));
    out->work_ = std::move(work);
    return out;
  }

  Result<double> run(std::int64_t launches) override { return work_->run(launches); }
  [[nodiscard]] std::int64_t least_launches() const override { return work_->least_launches(); }

 private:
  std::unique_ptr<Cublas> cublas_;
  std::unique_ptr<GraphWorkload> work_;
};

class GemvJob : public GraphJob {
 public:
  GemvJob(CudaMachine& machine, Shape shape) : GraphJob(machine), shape_(std::move(shape)) {
    const WeightType& type = *shape_.weight;
    matrix_.format = type.format;
    matrix_.rows = shape_.rows;
    matrix_.cols = shape_.cols;
    matrix_.row_bytes = kernels::weight_row_bytes(type.format, shape_.cols);
    if (type.block_rows == 0) return;
    matrix_.scale_format = type.scales;
    matrix_.block_rows = type.block_rows;
    matrix_.block_cols = type.block_cols;
    matrix_.scale_row_bytes =
        ceil_div(shape_.cols, type.block_cols) * kernels::scale_bytes(type.scales);
  }

  Result<void> prepare(bool cold) {
    KERNELPATH_CHECK_OK(cuda::check_gemv(params_of(0), machine().info()));
    copies_ = machine().copies(weight_bytes(), cold);
    state_ = machine().state(weight_bytes(), copies_);
    KERNELPATH_CHECK_OK(fill(weights_, weight_bytes() * copies_, weight_pattern(matrix_.format)));
    KERNELPATH_CHECK_OK(
        fill(scales_, scale_table_bytes() * copies_, scale_pattern(matrix_.scale_format)));
    KERNELPATH_CHECK_OK(fill(x_, shape_.batch * shape_.cols * 2, pattern_of(shape_.dtype)));
    KERNELPATH_CHECK_OK(fill(y_, shape_.batch * shape_.rows * 2, kAnyBits));
    return capture({.before = {},
                    .launch =
                        [this](std::int64_t pass, StreamView stream) {
                          return cuda::launch_gemv(params_of(pass % copies_), machine().info(),
                                                   stream);
                        },
                    .launches = copies_});
  }

  [[nodiscard]] CacheState cache() const override { return state_; }
  [[nodiscard]] std::string kernel() const override {
    return cuda::gemv_kernel_name(matrix_.format);
  }

  // Rows from all of the first copy against sums in float64 of the values that are stored.
  Result<std::optional<Check>> check() override {
    KERNELPATH_CHECK_OK(run(1));
    KERNELPATH_TRY(x, values(x_, shape_.batch * shape_.cols));
    KERNELPATH_TRY(y, values(y_, shape_.batch * shape_.rows));
    constexpr std::int64_t kMostRows = 64;
    const std::int64_t rows = std::min(shape_.rows, kMostRows);
    std::vector<float> weights(static_cast<std::size_t>(shape_.cols));
    Worst error;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t row = sampled(i, rows, shape_.rows);
      KERNELPATH_CHECK_OK(read_row(row, weights.data()));
      for (std::int64_t token = 0; token < shape_.batch; ++token) {
        const std::span<const float> activations(x.data() + token * shape_.cols, weights.size());
        const auto at = static_cast<std::size_t>(token * shape_.rows + row);
        error.add(output_error(weights, activations, y[at]));
      }
    }
    constexpr double kBound = 4e-3;  // outputs are rounded to bf16 or f16
    return Check{.error = error.value(),
                 .bound = kBound,
                 .against = std::to_string(rows * shape_.batch) + " sums in float64"};
  }

  // The same weights, and nothing but their reading.
  Result<OwnLimit> limit() override {
    KERNELPATH_TRY(rate, machine().linear_ceiling());
    KERNELPATH_TRY(workload, GraphWorkload::capture(
                                 machine(), {.before = {},
                                             .launch =
                                                 [this](std::int64_t pass, StreamView stream) {
                                                   return cuda::launch_linear_read(
                                                       weights_of(pass % copies_), weight_bytes(),
                                                       machine().sink(), stream);
                                                 },
                                             .launches = copies_}));
    return OwnLimit{.kind = LimitKind::kLinearRead,
                    .workload = std::move(workload),
                    .amount = static_cast<double>(weight_bytes()),
                    .rate = rate};
  }

  std::vector<Peer> peers(const std::string& wanted) override {
    if (!names_peer(wanted, "cublas")) return {};
    Peer peer{.name = "cublas"};
    if (matrix_.scale_format != kernels::ScaleFormat::kNone) {
      peer.reason = "cublasGemmEx has no " + std::string(shape_.weight->name) + " weights";
    } else if (Result<std::unique_ptr<Workload>> workload = cublas(); workload) {
      peer.workload = std::move(*workload);
    } else {
      peer.reason = workload.error().text();
    }
    std::vector<Peer> out;
    out.push_back(std::move(peer));
    return out;
  }

 private:
  [[nodiscard]] std::int64_t weight_bytes() const { return matrix_.row_bytes * shape_.rows; }
  [[nodiscard]] std::int64_t scale_table_bytes() const {
    return matrix_.scale_row_bytes * ceil_div(shape_.rows, matrix_.block_rows);
  }
  [[nodiscard]] const std::byte* weights_of(std::int64_t copy) const {
    return weights_.data() + copy * weight_bytes();
  }

  // Weights of a model are settled: nothing on the stream writes them.
  [[nodiscard]] cuda::GemvParams params_of(std::int64_t copy) const {
    cuda::GemvParams out;
    out.weight = matrix_;
    out.weight.data = weights_of(copy);
    out.weight.scales = scales_.data() + copy * scale_table_bytes();
    out.num_tokens = shape_.batch;
    out.x = x_.data();
    out.y = y_.data();
    out.weights_are_settled = true;
    return out;
  }

  [[nodiscard]] Result<std::vector<float>> values(const Buffer& buffer, std::int64_t count) const {
    std::vector<std::uint16_t> codes(static_cast<std::size_t>(count));
    KERNELPATH_CHECK_OK(cuda::copy_to_host(codes.data(), buffer.data(), count * 2));
    return widened(shape_.dtype, codes);
  }

  // A row of the first copy as float32.
  [[nodiscard]] Result<void> read_row(std::int64_t row, float* out) const {
    std::vector<std::byte> data(static_cast<std::size_t>(matrix_.row_bytes));
    std::vector<std::byte> scales(static_cast<std::size_t>(matrix_.scale_row_bytes));
    KERNELPATH_CHECK_OK(cuda::copy_to_host(data.data(), weights_.data() + row * matrix_.row_bytes,
                                           matrix_.row_bytes));
    if (!scales.empty()) {
      const std::int64_t at = row / matrix_.block_rows * matrix_.scale_row_bytes;
      KERNELPATH_CHECK_OK(
          cuda::copy_to_host(scales.data(), scales_.data() + at, matrix_.scale_row_bytes));
    }
    WeightMatrix one = matrix_;
    one.rows = 1;
    one.data = data.data();
    one.scales = scales.data();
    kernels::dequantize_row(one, 0, out);
    return {};
  }

  // cuBLAS, whose output is compared with ours first.
  Result<std::unique_ptr<Workload>> cublas() {
    KERNELPATH_CHECK_OK(fill(peer_y_, y_.bytes(), kAnyBits));
    KERNELPATH_TRY(workload, CublasWorkload::make(machine(), copies_, [this](std::int64_t copy) {
                     return CublasCall{.type = shape_.dtype,
                                       .rows = shape_.rows,
                                       .cols = shape_.cols,
                                       .tokens = shape_.batch,
                                       .w = weights_of(copy),
                                       .x = x_.data(),
                                       .y = peer_y_.data()};
                   }));
    KERNELPATH_TRY(ours, run(1));
    KERNELPATH_TRY(theirs, workload->run(1));
    static_cast<void>(ours + theirs);
    KERNELPATH_TRY(own, values(y_, shape_.batch * shape_.rows));
    KERNELPATH_TRY(other, values(peer_y_, shape_.batch * shape_.rows));
    Difference difference;
    for (std::size_t i = 0; i < own.size(); ++i) difference.add(other[i], own[i]);
    constexpr double kBound = 1e-2;
    KERNELPATH_CHECK_OK(check_peer_output(difference.relative(), kBound));
    return std::unique_ptr<Workload>(std::move(workload));
  }

  Shape shape_;
  WeightMatrix matrix_;  // without pointers
  std::int64_t copies_ = 1;
  Buffer weights_;
  Buffer scales_;
  Buffer x_;
  Buffer y_;
  Buffer peer_y_;
  CacheState state_ = CacheState::kMemory;
};

}  // namespace

Result<std::unique_ptr<Job>> make_cuda_gemv_job(CudaMachine& machine, const Shape& shape,
                                                bool cold) {
  return prepared<GemvJob>(machine, shape, cold);
}

}  // namespace kernelpath::bench
