#include "kernels/cuda/append.h"

#include "kernels/cuda/append.cuh"
#include "kernels/cuda/status.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace kernelpath::kernels::cuda {
namespace {

using attention::DataType;

std::string size_problem(std::string_view name, std::int64_t dim, DataType cached) {
  const std::int64_t multiple = cached == DataType::kNvfp4 ? attention::kNvfp4Block : 8;
  if (dim >= 0 && dim <= 256 && dim % multiple == 0) return {};
  return fmt::format("the head size of {} is {}; multiples of {} up to 256 are supported for {}",
                     name, dim, multiple, attention::data_type_name(cached));
}

std::string problem_of(const RopeAppendParams& params) {
  if (params.type != DataType::kBf16 && params.type != DataType::kF16) {
    return fmt::format("the inputs are {}; bfloat16 and float16 are supported",
                       attention::data_type_name(params.type));
  }
  if (params.page_size < 1) {
    return fmt::format("the page size is {}; 1 or more is supported", params.page_size);
  }
  // Both lanes of a rotated pair hold whole vectors of 8.
  const std::int64_t unit = params.interleaved ? 8 : 16;
  if (params.rotary_dim < 0 || params.rotary_dim > params.head_dim ||
      params.rotary_dim % unit != 0) {
    return fmt::format(
        "{} rotated elements of {}; multiples of {} up to the head size are "
        "supported",
        params.rotary_dim, params.head_dim, unit);
  }
  std::string problem = size_problem("K", params.head_dim, params.k_rows.type);
  if (problem.empty()) problem = size_problem("V", params.v_head_dim, params.v_rows.type);
  return problem;
}

}  // namespace

Result<void> check_append(const RopeAppendParams& params) {
  const std::string problem = problem_of(params);
  if (problem.empty()) return {};
  return fail({.code = ErrorCode::kUnavailable,
               .message = fmt::format("the CUDA append kernel cannot run this call: {}", problem)});
}

Result<void> launch_append(const RopeAppendParams& params, StreamView stream) {
  KERNELPATH_CHECK_OK(check_append(params));
  RopeAppendParams call = params;
  if (call.q_stride == 0) call.q_stride = call.num_heads * call.head_dim;
  if (call.k_stride == 0) call.k_stride = call.num_kv_heads * call.head_dim;
  if (call.v_stride == 0) call.v_stride = call.num_kv_heads * call.v_head_dim;
  return check_status(launch_append_kernel(call, static_cast<cudaStream_t>(stream.handle)),
                      "the launch of the append kernel");
}

}  // namespace kernelpath::kernels::cuda
