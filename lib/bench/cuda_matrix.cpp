#include "base/float_types.h"
#include "bench/cuda_decode_data.h"
#include "bench/cuda_jobs.h"
#include "hardware/driver_library.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

// matrix-rate on a CUDA device: cuBLAS in bf16, loaded where it is installed. It is the limit of
// prefill and no kernel of ours.

namespace kernelpath::bench {
namespace {

namespace cuda = kernels::cuda;

// Own declarations of the calls used, so that no build needs the library. Names and numbers are
// those of NVIDIA's cuBLAS reference.
constexpr int kNoTranspose = 0;
constexpr int kTranspose = 1;
constexpr int kBf16 = 14;        // CUDA_R_16BF
constexpr int kCompute32F = 68;  // CUBLAS_COMPUTE_32F
constexpr int kDefaultAlgorithm = -1;
constexpr std::int64_t kWorkspaceBytes = std::int64_t{64} << 20;

using Handle = struct cublasContext*;

struct Cublas {
  hardware::DriverLibrary library = hardware::DriverLibrary("libcublas.so.13");
  int (*create)(Handle*) = library.function<int (*)(Handle*)>("cublasCreate_v2");
  int (*destroy)(Handle) = library.function<int (*)(Handle)>("cublasDestroy_v2");
  int (*set_stream)(Handle, void*) = library.function<int (*)(Handle, void*)>("cublasSetStream_v2");
  int (*set_workspace)(Handle, void*, std::size_t) =
      library.function<int (*)(Handle, void*, std::size_t)>("cublasSetWorkspace_v2");
  using Gemm = int (*)(Handle, int, int, int, int, int, const void*, const void*, int, int,
                       const void*, int, int, const void*, void*, int, int, int, int);
  Gemm gemm = library.function<Gemm>("cublasGemmEx");

  [[nodiscard]] bool complete() const {
    return create != nullptr && destroy != nullptr && set_stream != nullptr &&
           set_workspace != nullptr && gemm != nullptr;
  }
};

const Cublas& cublas_library() {
  static const Cublas kLibrary;
  return kLibrary;
}

class MatrixJob : public Job {
 public:
  MatrixJob(CudaMachine& machine, Shape shape) : machine_(&machine), shape_(std::move(shape)) {}

  Result<void> prepare() {
    const Cublas& cublas = cublas_library();
    if (!cublas.complete()) {
      return fail({.code = ErrorCode::kUnavailable,
                   .message = "matrix-rate is cuBLAS's on CUDA, and libcublas.so.13 is not there"});
    }
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
    KERNELPATH_CHECK_OK(fill(workspace_, kWorkspaceBytes, kAnyBits));
    Handle handle = nullptr;
    const bool started = cublas.create(&handle) == 0 &&
                         cublas.set_stream(handle, machine_->stream().handle) == 0 &&
                         cublas.set_workspace(handle, workspace_.data(), kWorkspaceBytes) == 0;
    handle_.reset(handle);
    if (!started) {
      return fail({.code = ErrorCode::kRuntime, .message = "cuBLAS does not start"});
    }
    KERNELPATH_TRY(
        work, GraphWorkload::capture(
                  *machine_,
                  {.before = {}, .launch = [this](std::int64_t /*pass*/, StreamView /*stream*/) {
                     return launch();
                   }}));
    work_ = std::move(work);
    return {};
  }

  Result<double> run(std::int64_t launches) override { return work_->run(launches); }
  [[nodiscard]] std::int64_t least_launches() const override { return work_->least_launches(); }
  [[nodiscard]] CacheState cache() const override {
    return machine_->state(w_.bytes() + x_.bytes() + y_.bytes(), 1);
  }
  [[nodiscard]] std::string kernel() const override { return "cuBLAS"; }
  Result<OwnLimit> limit() override { return OwnLimit{}; }

  // The first output of the first tokens against a sum in float64.
  Result<std::optional<Check>> check() override {
    KERNELPATH_TRY(seconds, run(1));
    static_cast<void>(seconds);
    constexpr std::int64_t kMostTokens = 8;
    const std::int64_t tokens = std::min(shape_.batch, kMostTokens);
    KERNELPATH_TRY(w, row(w_, 0, shape_.cols));
    double error = 0;
    for (std::int64_t token = 0; token < tokens; ++token) {
      KERNELPATH_TRY(x, row(x_, token * shape_.cols, shape_.cols));
      KERNELPATH_TRY(y, row(y_, token * shape_.rows, 1));
      double sum = 0;
      double magnitude = 0;
      for (std::size_t i = 0; i < w.size(); ++i) {
        const double product = double{w[i]} * double{x[i]};
        sum += product;
        magnitude += std::abs(product);
      }
      const double one = std::abs(sum - double{y.front()}) / magnitude;
      error = one > error || std::isnan(one) ? one : error;
    }
    constexpr double kBound = 4e-3;  // outputs are rounded to bf16
    return Check{
        .error = error, .bound = kBound, .against = std::to_string(tokens) + " sums in float64"};
  }

 private:
  struct Release {
    void operator()(Handle handle) const { cublas_library().destroy(handle); }
  };

  Result<void> fill(Buffer& buffer, std::int64_t bytes, const BitPattern& pattern) {
    KERNELPATH_TRY(filled, machine_->filled(bytes, pattern));
    buffer = std::move(filled);
    return {};
  }

  static Result<std::vector<float>> row(const Buffer& buffer, std::int64_t first,
                                        std::int64_t count) {
    std::vector<std::uint16_t> codes(static_cast<std::size_t>(count));
    KERNELPATH_CHECK_OK(cuda::copy_to_host(codes.data(), buffer.data() + first * 2, count * 2));
    return widened(attention::DataType::kBf16, codes);
  }

  // y [batch, rows] = x [batch, cols] w [rows, cols]^T; cuBLAS reads columns first.
  Result<void> launch() {
    const float one = 1.0F;
    const float zero = 0.0F;
    const auto rows = static_cast<int>(shape_.rows);
    const auto cols = static_cast<int>(shape_.cols);
    const int status = cublas_library().gemm(handle_.get(), kTranspose, kNoTranspose, rows,
                                             static_cast<int>(shape_.batch), cols, &one, w_.data(),
                                             kBf16, cols, x_.data(), kBf16, cols, &zero, y_.data(),
                                             kBf16, rows, kCompute32F, kDefaultAlgorithm);
    if (status == 0) return {};
    return fail({.code = ErrorCode::kRuntime,
                 .message = "cublasGemmEx failed with " + std::to_string(status)});
  }

  CudaMachine* machine_;
  Shape shape_;
  Buffer w_;
  Buffer x_;
  Buffer y_;
  Buffer workspace_;
  std::unique_ptr<cublasContext, Release> handle_;
  std::unique_ptr<GraphWorkload> work_;
};

}  // namespace

Result<std::unique_ptr<Job>> make_cuda_matrix_job(CudaMachine& machine, const Shape& shape) {
  auto job = std::make_unique<MatrixJob>(machine, shape);
  KERNELPATH_CHECK_OK(job->prepare());
  return job;
}

}  // namespace kernelpath::bench
