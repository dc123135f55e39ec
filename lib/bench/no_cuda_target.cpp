#include "bench/cuda_target.h"

// In builds without CUDA.

namespace kernelpath::bench {

Result<std::unique_ptr<Target>> make_cuda_target(int /*index*/) {
  return fail({.code = ErrorCode::kUnavailable,
               .message = "this build has no CUDA kernels",
               .where = "--device",
               .hint = "build with the CUDA toolkit (cmake --preset cuda), or say --device cpu"});
}

}  // namespace kernelpath::bench
