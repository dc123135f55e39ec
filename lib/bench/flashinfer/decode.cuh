#pragma once

#include "bench/flashinfer/decode.h"

#include <array>
#include <exception>
#include <flashinfer/attention/decode.cuh>
#include <flashinfer/attention/default_decode_params.cuh>
#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/prefill.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <flashinfer/attention/variants.cuh>

// The bodies behind decode.h, for one head size and cache type a unit: each takes minutes to
// compile. They do what FlashInfer's Python wrapper does for a decode without soft cap and window,
// planned outside a graph and captured with the lengths of the plan.

namespace kernelpath::bench::flashinfer_peer {

using Variant = flashinfer::DefaultAttention<false, false, false, false>;

template <class T>
T* at_offset(void* base, std::int64_t offset) {
  return reinterpret_cast<T*>(static_cast<char*>(base) + offset);
}

inline std::string text_of(cudaError_t status) {
  return status == cudaSuccess ? "" : cudaGetErrorString(status);
}

template <class Kv>
flashinfer::paged_kv_t<Kv, std::int32_t> paged_cache(const DecodeProblem& problem) {
  const auto count = [](std::int32_t value) { return static_cast<std::uint32_t>(value); };
  // In the order of an HND cache: page, head, token.
  const std::array<std::int64_t, 3> strides = {problem.page_stride, problem.head_stride,
                                               problem.token_stride};
  return flashinfer::paged_kv_t<Kv, std::int32_t>(
      count(problem.num_kv_heads), count(problem.page_size), count(problem.head_dim),
      count(problem.batch), flashinfer::QKVLayout::kHND,
      static_cast<Kv*>(const_cast<void*>(problem.k)),
      static_cast<Kv*>(const_cast<void*>(problem.v)), strides.data(), nullptr,
      const_cast<std::int32_t*>(problem.indptr), const_cast<std::int32_t*>(problem.last_page_len));
}

template <class Kv, int HeadDim>
class TensorCoreDecode : public Decode {
 public:
  using Params =
      flashinfer::BatchPrefillPagedParams<__nv_bfloat16, Kv, __nv_bfloat16, std::int32_t>;

  std::string plan(const DecodeProblem& problem, const Workspace& workspace) {
    flashinfer::PrefillPlanInfo plan;
    const cudaError_t status = flashinfer::PrefillPlan<std::int32_t>(
        workspace.floats, workspace.float_bytes, workspace.integers, workspace.pinned_integers,
        workspace.integer_bytes, plan, const_cast<std::int32_t*>(problem.host_query_start),
        const_cast<std::int32_t*>(problem.host_indptr), problem.batch, problem.batch,
        problem.num_heads, problem.num_kv_heads, HeadDim, HeadDim, problem.page_size,
        /*enable_cuda_graph=*/false, sizeof(__nv_bfloat16), /*window_left=*/-1,
        /*fixed_split_size=*/-1, /*disable_split_kv=*/false, /*num_colocated_ctas=*/0,
        /*uniform_q_len=*/0, /*fixed_uniform_q_len=*/false, nullptr, sizeof(Kv));
    if (status != cudaSuccess) return text_of(status);
    if (plan.cta_tile_q != kTileQ) {
      return "its plan takes a tile of " + std::to_string(plan.cta_tile_q) +
             " query rows, and this build has the one of 16";
    }
    params_ =
        Params(static_cast<__nv_bfloat16*>(const_cast<void*>(problem.q)), paged_cache<Kv>(problem),
               nullptr, const_cast<std::int32_t*>(problem.query_start), nullptr, nullptr,
               static_cast<__nv_bfloat16*>(problem.o), nullptr, nullptr,
               static_cast<std::uint32_t>(problem.num_heads), problem.num_heads * problem.head_dim,
               problem.head_dim, -1, 0.0F, problem.softmax_scale, 1.0F, 1e4F);
    void* const integers = workspace.integers;
    params_.request_indices = at_offset<std::int32_t>(integers, plan.request_indices_offset);
    params_.qo_tile_indices = at_offset<std::int32_t>(integers, plan.qo_tile_indices_offset);
    params_.kv_tile_indices = at_offset<std::int32_t>(integers, plan.kv_tile_indices_offset);
    params_.o_indptr = at_offset<std::int32_t>(integers, plan.o_indptr_offset);
    params_.kv_chunk_size_ptr = at_offset<std::int32_t>(integers, plan.kv_chunk_size_ptr_offset);
    if (plan.split_kv) {
      params_.merge_indptr = at_offset<std::int32_t>(integers, plan.merge_indptr_offset);
      values_ = at_offset<__nv_bfloat16>(workspace.floats, plan.v_offset);
      sums_ = at_offset<float>(workspace.floats, plan.s_offset);
    }
    params_.padded_batch_size = static_cast<std::uint32_t>(plan.padded_batch_size);
    params_.max_total_num_rows = static_cast<std::uint32_t>(plan.total_num_rows);
    return "";
  }

  std::string launch(const std::int32_t* indices, cudaStream_t stream) override {
    try {
      params_.paged_kv.indices = const_cast<std::int32_t*>(indices);
      return text_of(flashinfer::BatchPrefillWithPagedKVCacheDispatched<
                     /*SAME_KV_STRIDES=*/true, kTileQ, HeadDim, HeadDim,
                     flashinfer::PosEncodingMode::kNone, /*USE_FP16_QK_REDUCTION=*/false,
                     flashinfer::MaskMode::kNone, /*USE_TOKEN_HEAD_SF=*/false, Variant, Params>(
          params_, values_, sums_, /*enable_pdl=*/false, stream));
    } catch (const std::exception& error) {
      return error.what();
    }
  }

 private:
  static constexpr int kTileQ = 16;
  Params params_;
  __nv_bfloat16* values_ = nullptr;
  float* sums_ = nullptr;
};

template <class Kv, int HeadDim>
class CudaCoreDecode : public Decode {
 public:
  using Params = flashinfer::BatchDecodeParams<__nv_bfloat16, Kv, __nv_bfloat16, std::int32_t>;

  std::string plan(const DecodeProblem& problem, const Workspace& workspace) {
    flashinfer::DecodePlanInfo plan;
    const cudaError_t status = plan_of(problem, workspace, plan);
    if (status != cudaSuccess) return text_of(status);
    params_ =
        Params(static_cast<__nv_bfloat16*>(const_cast<void*>(problem.q)), nullptr,
               paged_cache<Kv>(problem), static_cast<__nv_bfloat16*>(problem.o), nullptr, nullptr,
               static_cast<std::uint32_t>(problem.num_heads), problem.num_heads * problem.head_dim,
               problem.head_dim, -1, 0.0F, problem.softmax_scale, 1.0F, 1e4F);
    void* const integers = workspace.integers;
    params_.request_indices = at_offset<std::int32_t>(integers, plan.request_indices_offset);
    params_.kv_tile_indices = at_offset<std::int32_t>(integers, plan.kv_tile_indices_offset);
    params_.o_indptr = at_offset<std::int32_t>(integers, plan.o_indptr_offset);
    params_.kv_chunk_size_ptr = at_offset<std::int32_t>(integers, plan.kv_chunk_size_ptr_offset);
    if (plan.split_kv) {
      values_ = at_offset<__nv_bfloat16>(workspace.floats, plan.v_offset);
      sums_ = at_offset<float>(workspace.floats, plan.s_offset);
    }
    params_.padded_batch_size = static_cast<std::uint32_t>(plan.padded_batch_size);
    return "";
  }

  std::string launch(const std::int32_t* indices, cudaStream_t stream) override {
    try {
      params_.paged_kv.indices = const_cast<std::int32_t*>(indices);
      return text_of(flashinfer::BatchDecodeWithPagedKVCacheDispatched<
                     HeadDim, flashinfer::PosEncodingMode::kNone, Variant, Params>(
          params_, values_, sums_, /*enable_pdl=*/false, stream));
    } catch (const std::exception& error) {
      return error.what();
    }
  }

 private:
  static cudaError_t plan_of(const DecodeProblem& problem, const Workspace& workspace,
                             flashinfer::DecodePlanInfo& plan) {
    constexpr auto kNoEncoding = flashinfer::PosEncodingMode::kNone;
    const auto group = static_cast<std::uint32_t>(problem.num_heads / problem.num_kv_heads);
    using flashinfer::uint_fastdiv;
    DISPATCH_GQA_GROUP_SIZE(group, GROUP_SIZE, {
      return flashinfer::DecodePlan<HeadDim, kNoEncoding, Variant, Params>(
          workspace.floats, workspace.float_bytes, workspace.integers, workspace.pinned_integers,
          workspace.integer_bytes, plan, const_cast<std::int32_t*>(problem.host_indptr),
          static_cast<std::uint32_t>(problem.batch), static_cast<std::uint32_t>(problem.num_heads),
          static_cast<std::uint32_t>(problem.page_size), /*enable_cuda_graph=*/false, nullptr,
          flashinfer::BatchDecodeWithPagedKVCacheWorkEstimationDispatched<
              GROUP_SIZE, HeadDim, kNoEncoding, Variant, Params>);
    });
    return cudaSuccess;
  }

  Params params_;
  __nv_bfloat16* values_ = nullptr;
  float* sums_ = nullptr;
};

template <class Body>
std::unique_ptr<Decode> planned(const DecodeProblem& problem, const Workspace& workspace,
                                std::string& problem_text) {
  try {
    auto out = std::make_unique<Body>();
    problem_text = out->plan(problem, workspace);
    if (problem_text.empty()) return out;
  } catch (const std::exception& error) {
    problem_text = error.what();
  }
  return nullptr;
}

using Make = std::unique_ptr<Decode> (*)(const DecodeProblem&, const Workspace&, std::string&);

// One a unit of instantiations/.
template <class Kv, int HeadDim, bool TensorCores>
std::unique_ptr<Decode> make_one(const DecodeProblem& problem, const Workspace& workspace,
                                 std::string& problem_text);

}  // namespace kernelpath::bench::flashinfer_peer

// Defines make_one for one combination.
#define KERNELPATH_FLASHINFER_DECODE(KV, HEAD_DIM, TENSOR_CORES)                             \
  template <>                                                                                \
  std::unique_ptr<kernelpath::bench::flashinfer_peer::Decode>                                \
  kernelpath::bench::flashinfer_peer::make_one<KV, HEAD_DIM, TENSOR_CORES>(                  \
      const DecodeProblem& problem, const Workspace& workspace, std::string& problem_text) { \
    using Body = std::conditional_t<TENSOR_CORES, TensorCoreDecode<KV, HEAD_DIM>,            \
                                    CudaCoreDecode<KV, HEAD_DIM>>;                           \
    return planned<Body>(problem, workspace, problem_text);                                  \
  }
