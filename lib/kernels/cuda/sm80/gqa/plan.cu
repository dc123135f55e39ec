#include "kernels/cuda/sm80/gqa/launch.cuh"
#include "kernels/cuda/sm80/gqa/ptx.cuh"

// One block plans a step: the costs of requests as prefix sums, then where each worker begins. The
// others clear the partial results meanwhile.
//
// Launches read the plan before the launch before them has ended. So this one lets none start
// before it has ended, and its writes have reached the L2 by then.
namespace kernelpath::kernels::cuda::sm80 {
namespace {

constexpr int kThreads = 1024;
constexpr unsigned kBlocks = 65;

// The sum of `value` over the lanes up to this one.
__device__ std::int64_t sum_of_lanes(std::int64_t value) {
  const int lane = threadIdx.x % 32;
  for (int step = 1; step < 32; step *= 2) {
    const std::int64_t before = __shfl_up_sync(~0U, value, step);
    if (lane >= step) value += before;
  }
  return value;
}

// The sum of `value` over the threads up to this one, and over all of them.
__device__ std::int64_t inclusive_sum(std::int64_t value, std::int64_t& all) {
  static_assert(kThreads == 32 * 32);
  __shared__ std::int64_t warp_sums[32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  value = sum_of_lanes(value);
  __syncthreads();  // the last call's sums have been read
  if (lane == 31) warp_sums[warp] = value;
  __syncthreads();
  const std::int64_t sums = sum_of_lanes(warp_sums[lane]);
  all = __shfl_sync(~0U, sums, 31);
  const std::int64_t before = __shfl_sync(~0U, sums, (warp + 31) % 32);
  return warp == 0 ? value : before + value;
}

__device__ RequestPlan request_at(const PlanKernelParams& params, const PlanShape& shape, int r) {
  if (r >= params.num_requests) return {};
  const std::int32_t begin = params.query_start[r];
  return plan_request(shape, params.seq_lens[r], begin, params.query_start[r + 1] - begin);
}

// The shape that the batch is planned with.
__device__ PlanShape shape_of_batch(const PlanKernelParams& params) {
  if (params.shape.coarse <= 1) return params.shape;
  const PlanShape coarse = coarse_shape(params.shape);
  std::int64_t cost = 0;
  for (int r = static_cast<int>(threadIdx.x); r < params.num_requests; r += kThreads) {
    cost += request_cost(coarse, request_at(params, coarse, r));
  }
  std::int64_t all = 0;
  inclusive_sum(cost, all);
  return choose_shape(params.shape, all);
}

// Where a worker's first segment begins, for those who look its pages up.
struct FirstTokens {
  TokenRange tokens = {};
  std::int32_t request = 0;
};

// The plans of up to kThreads workers, and the pages of the runs that each of them reads first.
// `requests`: in shared memory where they fit, since each is found by a search.
__device__ void plan_workers(const PlanKernelParams& params, const PlanShape& shape,
                             const RequestPlan* requests, const PlanLine& line, int first_worker) {
  __shared__ FirstTokens first_tokens[kThreads];
  const int w = first_worker + static_cast<int>(threadIdx.x);
  const int workers = min(shape.workers - first_worker, kThreads);
  if (static_cast<int>(threadIdx.x) < workers) {
    const WorkerPlan plan = plan_worker(shape, requests, params.num_requests, line, w);
    params.workers[w] = plan;
    params.marks[w] = 1;
    FirstTokens first;
    if (plan.segment.valid()) {
      first = {.tokens = segment_tokens(shape, plan.line.tile_tokens, plan.segment),
               .request = plan.segment.index};
    }
    first_tokens[threadIdx.x] = first;
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < workers * shape.first_pages; i += kThreads) {
    const FirstTokens& first = first_tokens[i / shape.first_pages];
    if (first.tokens.empty()) continue;
    const std::int32_t token = first_run_token(shape, first.tokens, i % shape.first_pages);
    const std::int32_t* const table =
        params.block_table + first.request * params.block_table_stride;
    params.first_pages[first_worker * shape.first_pages + i] = table[token / params.page_size];
  }
  __syncthreads();
}

// Blocks from 1 on: no part of an item has arrived.
__device__ void clear_partials(const PlanKernelParams& params) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x - 1) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x - 1) * kThreads + threadIdx.x;
       i < params.num_partials; i += step) {
    params.partials[i] = {};
  }
}

__global__ void __launch_bounds__(kThreads)
    plan_kernel(const __grid_constant__ PlanKernelParams params) {
  constexpr int kSharedRequests = 512;
  __shared__ RequestPlan shared_requests[kSharedRequests];
  wait_for_launch_before();
  if (blockIdx.x > 0) {
    clear_partials(params);
    __threadfence();
    return;
  }
  const PlanShape shape = shape_of_batch(params);
  const bool shared = params.num_requests <= kSharedRequests;
  std::int64_t total = 0;
  bool alike = true;  // all requests' items, those of the first one's
  const std::int64_t each = item_cost(shape, request_at(params, shape, 0));
  for (int base = 0; base < params.num_requests; base += kThreads) {
    const int r = base + static_cast<int>(threadIdx.x);
    RequestPlan request = request_at(params, shape, r);
    const std::int64_t cost = request_cost(shape, request);
    std::int64_t all = 0;
    request.first_cost = total + inclusive_sum(cost, all) - cost;
    total += all;
    if (r >= params.num_requests) continue;
    alike = alike && request.blocks > 0 && item_cost(shape, request) == each;
    params.requests[r] = request;
    if (shared) shared_requests[r] = request;
  }
  const PlanLine line = line_of(shape, total, __syncthreads_and(alike) != 0 ? each : 0);
  for (int first = 0; first < shape.workers; first += kThreads) {
    plan_workers(params, shape, shared ? shared_requests : params.requests, line, first);
  }
  __threadfence();
}

}  // namespace

cudaError_t launch_plan_kernel(const PlanKernelParams& params, cudaStream_t stream) {
  return launch_overlapping(plan_kernel, params, {.blocks = kBlocks, .threads = kThreads},
                            params.overlap_launches != 0, stream);
}

}  // namespace kernelpath::kernels::cuda::sm80
