#include "bench/cublas.h"

#include "hardware/driver_library.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace kernelpath::bench {
namespace {

// Own declarations of the calls used. Names and numbers are those of NVIDIA's cuBLAS reference.
constexpr int kNoTranspose = 0;
constexpr int kTranspose = 1;
constexpr int kF16 = 2;          // CUDA_R_16F
constexpr int kBf16 = 14;        // CUDA_R_16BF
constexpr int kCompute32F = 68;  // CUBLAS_COMPUTE_32F
constexpr int kDefaultAlgorithm = -1;
constexpr std::int64_t kWorkspaceBytes = std::int64_t{64} << 20;

struct Library {
  hardware::DriverLibrary library = hardware::DriverLibrary("libcublas.so.13");
  int (*create)(void**) = library.function<int (*)(void**)>("cublasCreate_v2");
  int (*destroy)(void*) = library.function<int (*)(void*)>("cublasDestroy_v2");
  int (*set_stream)(void*, void*) = library.function<int (*)(void*, void*)>("cublasSetStream_v2");
  int (*set_workspace)(void*, void*, std::size_t) =
      library.function<int (*)(void*, void*, std::size_t)>("cublasSetWorkspace_v2");
  using Gemm = int (*)(void*, int, int, int, int, int, const void*, const void*, int, int,
                       const void*, int, int, const void*, void*, int, int, int, int);
  Gemm gemm = library.function<Gemm>("cublasGemmEx");

  [[nodiscard]] bool complete() const {
    return create != nullptr && destroy != nullptr && set_stream != nullptr &&
           set_workspace != nullptr && gemm != nullptr;
  }
};

const Library& library() {
  static const Library kLibrary;
  return kLibrary;
}

}  // namespace

void Cublas::Release::operator()(void* handle) const { library().destroy(handle); }

Result<std::unique_ptr<Cublas>> Cublas::make(CudaMachine& machine) {
  if (!library().complete()) {
    return fail({.code = ErrorCode::kUnavailable, .message = "libcublas.so.13 is not there"});
  }
  auto out = std::make_unique<Cublas>();
  KERNELPATH_TRY(workspace, Buffer::allocate(kWorkspaceBytes));
  out->workspace_ = std::move(workspace);
  void* handle = nullptr;
  const bool started =
      library().create(&handle) == 0 &&
      library().set_stream(handle, machine.stream().handle) == 0 &&
      library().set_workspace(handle, out->workspace_.data(), kWorkspaceBytes) == 0;
  out->handle_.reset(handle);
  if (started) return out;
  return fail({.code = ErrorCode::kRuntime, .message = "cuBLAS does not start"});
}

// cuBLAS reads columns first: its matrices are ours transposed.
Result<void> Cublas::multiply(const CublasCall& call) const {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  const std::int64_t largest = std::max({call.rows, call.cols, call.tokens});
  if (largest > kMost) {
    return fail({.code = ErrorCode::kUnavailable,
                 .message = "cuBLAS multiplies matrices of up to " + std::to_string(kMost) +
                            " rows and columns",
                 .value = std::to_string(largest)});
  }
  const float one = 1.0F;
  const float zero = 0.0F;
  const int type = call.type == attention::DataType::kF16 ? kF16 : kBf16;
  const auto rows = static_cast<int>(call.rows);
  const auto cols = static_cast<int>(call.cols);
  const int status =
      library().gemm(handle_.get(), kTranspose, kNoTranspose, rows, static_cast<int>(call.tokens),
                     cols, &one, call.w, type, cols, call.x, type, cols, &zero, call.y, type, rows,
                     kCompute32F, kDefaultAlgorithm);
  if (status == 0) return {};
  return fail({.code = ErrorCode::kRuntime,
               .message = "cublasGemmEx failed with " + std::to_string(status)});
}

}  // namespace kernelpath::bench
