#include "kernels/cuda/sm80/gqa/kernel.h"

// One block plans a step: the costs of requests as prefix sums, then where each worker begins. The
// others clear the partial results meanwhile.
namespace kernelpath::kernels::cuda::sm80 {
namespace {

constexpr int kThreads = 1024;
constexpr unsigned kBlocks = 65;

// The sum of `value` over the threads up to this one, and over all of them.
__device__ std::int64_t inclusive_sum(std::int64_t value, std::int64_t& all) {
  __shared__ std::int64_t warp_sums[32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  for (int step = 1; step < 32; step *= 2) {
    const std::int64_t before = __shfl_up_sync(~0U, value, step);
    if (lane >= step) value += before;
  }
  __syncthreads();  // the last call's sums have been read
  if (lane == 31) warp_sums[warp] = value;
  __syncthreads();
  std::int64_t before = 0;
  all = 0;
  for (int w = 0; w < kThreads / 32; ++w) {
    if (w < warp) before += warp_sums[w];
    all += warp_sums[w];
  }
  return before + value;
}

__device__ RequestPlan request_at(const PlanKernelParams& params, const PlanShape& shape, int r) {
  if (r >= params.num_requests) return {};
  const std::int32_t begin = params.query_start[r];
  return plan_request(shape, params.seq_lens[r], begin, params.query_start[r + 1] - begin);
}

// Pages of the runs that each worker reads first.
__device__ void look_pages_up(const PlanKernelParams& params, const PlanShape& shape) {
  const int each = shape.first_pages;
  for (int i = static_cast<int>(threadIdx.x); i < shape.workers * each; i += kThreads) {
    const WorkerPlan& plan = params.workers[i / each];
    if (!plan.segment.valid()) continue;
    const TokenRange tokens = segment_tokens(shape, plan.tile_tokens, plan.segment);
    if (tokens.empty()) continue;
    const std::int32_t page = first_run_token(shape, tokens, i % each) / params.page_size;
    params.first_pages[i] =
        params.block_table[plan.segment.index * params.block_table_stride + page];
  }
}

// Blocks from 1 on: no part of an item has arrived.
__device__ void clear_partials(const PlanKernelParams& params) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x - 1) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x - 1) * kThreads + threadIdx.x;
       i < params.num_partials; i += step) {
    params.partials[i] = {};
  }
}

__global__ void __launch_bounds__(kThreads) plan_kernel(const PlanKernelParams params) {
  if (blockIdx.x > 0) {
    clear_partials(params);
    return;
  }
  PlanShape shape = params.shape;
  if (shape.coarse > 1) {
    const PlanShape coarse = coarse_shape(shape);
    std::int64_t cost = 0;
    for (int r = static_cast<int>(threadIdx.x); r < params.num_requests; r += kThreads) {
      cost += request_cost(coarse, request_at(params, coarse, r));
    }
    std::int64_t all = 0;
    inclusive_sum(cost, all);
    shape = choose_shape(shape, all);
  }
  std::int64_t total = 0;
  for (int base = 0; base < params.num_requests; base += kThreads) {
    const int r = base + static_cast<int>(threadIdx.x);
    RequestPlan request = request_at(params, shape, r);
    const std::int64_t cost = request_cost(shape, request);
    std::int64_t all = 0;
    request.first_cost = total + inclusive_sum(cost, all) - cost;
    total += all;
    if (r < params.num_requests) params.requests[r] = request;
  }
  __syncthreads();
  for (int w = static_cast<int>(threadIdx.x); w < shape.workers; w += kThreads) {
    params.workers[w] = plan_worker(shape, params.requests, params.num_requests, total, w);
    params.marks[w] = 1;
  }
  __syncthreads();
  look_pages_up(params, shape);
}

}  // namespace

cudaError_t launch_plan_kernel(const PlanKernelParams& params, cudaStream_t stream) {
  plan_kernel<<<kBlocks, kThreads, 0, stream>>>(params);
  return cudaGetLastError();
}

}  // namespace kernelpath::kernels::cuda::sm80
