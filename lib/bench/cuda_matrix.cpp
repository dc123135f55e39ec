#include "bench/cublas.h"
#include "bench/cuda_attention_data.h"
#include "bench/cuda_jobs.h"
#include "bench/matrix_data.h"

#include <algorithm>
#include <string>
#include <utility>

// matrix-rate on a CUDA device: cuBLAS in bf16. It is the limit of prefill and no kernel of ours.

namespace kernelpath::bench {
namespace {

namespace cuda = kernels::cuda;

class MatrixJob : public GraphJob {
 public:
  MatrixJob(CudaMachine& machine, Shape shape) : GraphJob(machine), shape_(std::move(shape)) {}

  Result<void> prepare(bool /*cold*/) {
    Result<std::unique_ptr<Cublas>> cublas = Cublas::make(machine());
    if (!cublas) {
      Error error = std::move(cublas).error();
      error.message = "matrix-rate is cuBLAS's on CUDA: " + error.message;
      return fail(std::move(error));
    }
    cublas_ = std::move(*cublas);
    if (shape_.weight->format != kernels::WeightFormat::kBf16) {
      return fail({.code = ErrorCode::kUnavailable,
                   .message = "matrix-rate has bf16 weights alone on CUDA",
                   .where = "--weight-dtype",
                   .value = std::string(shape_.weight->name)});
    }
    const BitPattern pattern = pattern_of(attention::DataType::kBf16);
    KERNELPATH_CHECK_OK(fill(w_, shape_.rows * shape_.cols * 2, pattern));
    KERNELPATH_CHECK_OK(fill(x_, shape_.batch * shape_.cols * 2, pattern));
    KERNELPATH_CHECK_OK(fill(y_, shape_.batch * shape_.rows * 2, pattern));
    return capture({.before = {}, .launch = [this](std::int64_t /*pass*/, StreamView /*stream*/) {
                      return launch();
                    }});
  }

  [[nodiscard]] CacheState cache() const override {
    return machine().state(w_.bytes() + x_.bytes() + y_.bytes(), 1);
  }
  [[nodiscard]] std::string kernel() const override { return "cuBLAS"; }
  Result<OwnLimit> limit() override { return OwnLimit{}; }

  // The first output of the first tokens against a sum in float64.
  Result<std::optional<Check>> check() override {
    KERNELPATH_CHECK_OK(run(1));
    constexpr std::int64_t kMostTokens = 8;
    const std::int64_t tokens = std::min(shape_.batch, kMostTokens);
    KERNELPATH_TRY(w, row(w_, 0, shape_.cols));
    Worst error;
    for (std::int64_t token = 0; token < tokens; ++token) {
      KERNELPATH_TRY(x, row(x_, token * shape_.cols, shape_.cols));
      KERNELPATH_TRY(y, row(y_, token * shape_.rows, 1));
      error.add(output_error(w, x, y.front()));
    }
    constexpr double kBound = 4e-3;  // outputs are rounded to bf16
    return Check{.error = error.value(),
                 .bound = kBound,
                 .against = std::to_string(tokens) + " sums in float64"};
  }

 private:
  static Result<std::vector<float>> row(const Buffer& buffer, std::int64_t first,
                                        std::int64_t count) {
    std::vector<std::uint16_t> codes(static_cast<std::size_t>(count));
    KERNELPATH_CHECK_OK(cuda::copy_to_host(codes.data(), buffer.data() + first * 2, count * 2));
    return widened(attention::DataType::kBf16, codes);
  }

  Result<void> launch() {
    return cublas_->multiply({.type = shape_.dtype,
                              .rows = shape_.rows,
                              .cols = shape_.cols,
                              .tokens = shape_.batch,
                              .w = w_.data(),
                              .x = x_.data(),
                              .y = y_.data()});
  }

  Shape shape_;
  Buffer w_;
  Buffer x_;
  Buffer y_;
  std::unique_ptr<Cublas> cublas_;
};

}  // namespace

Result<std::unique_ptr<Job>> make_cuda_matrix_job(CudaMachine& machine, const Shape& shape) {
  return prepared<MatrixJob>(machine, shape, false);
}

}  // namespace kernelpath::bench
