#include "bench/flashinfer/decode.h"
#include "bench/flashinfer/version.h"

#include <cuda_bf16.h>
#include <cuda_fp8.h>

namespace kernelpath::bench::flashinfer_peer {

// Defined by the units of instantiations/.
template <class Kv, int HeadDim, bool TensorCores>
std::unique_ptr<Decode> make_one(const DecodeProblem& problem, const Workspace& workspace,
                                 std::string& problem_text);

namespace {

template <bool TensorCores>
std::unique_ptr<Decode> make(const DecodeProblem& problem, const Workspace& workspace,
                             std::string& problem_text) {
  if (problem.fp8) {
    if (problem.head_dim == 128) {
      return make_one<__nv_fp8_e4m3, 128, TensorCores>(problem, workspace, problem_text);
    }
    problem_text = "this build has its fp8 kernels for head size 128";
    return nullptr;
  }
  switch (problem.head_dim) {
    case 64:
      return make_one<__nv_bfloat16, 64, TensorCores>(problem, workspace, problem_text);
    case 128:
      return make_one<__nv_bfloat16, 128, TensorCores>(problem, workspace, problem_text);
    case 256:
      return make_one<__nv_bfloat16, 256, TensorCores>(problem, workspace, problem_text);
    default:
      problem_text = "this build has its kernels for head sizes 64, 128 and 256";
      return nullptr;
  }
}

}  // namespace

std::unique_ptr<Decode> make_decode(bool tensor_cores, const DecodeProblem& problem,
                                    const Workspace& workspace, std::string& problem_text) {
  if (tensor_cores) return make<true>(problem, workspace, problem_text);
  return make<false>(problem, workspace, problem_text);
}

const char* version() { return KERNELPATH_FLASHINFER_VERSION; }

}  // namespace kernelpath::bench::flashinfer_peer
