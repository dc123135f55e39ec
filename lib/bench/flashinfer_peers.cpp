#include "base/checked.h"
#include "bench/cuda_peers.h"
#include "bench/flashinfer/decode.h"
#include "bench/peers.h"

#include <array>
#include <cuda_runtime_api.h>
#include <numeric>
#include <utility>

// FlashInfer's fa2 decode kernels, with and without tensor cores, on our data.

namespace kernelpath::bench {
namespace {

using flashinfer_peer::Decode;
using flashinfer_peer::DecodeProblem;

// One of its kernels with the tables and the memory that it needs.
class FlashInferKernel : public PeerKernel {
 public:
  Result<void> prepare(CudaMachine& machine, const Shape& shape, const CudaAttentionData& data,
                       bool tensor_cores) {
    KERNELPATH_CHECK_OK(make_tables(machine, shape, data.plan));
    KERNELPATH_TRY(output, Buffer::allocate(data.o.bytes()));
    output_ = std::move(output);
    KERNELPATH_TRY(floats, Buffer::allocate(kFloatBytes));
    floats_ = std::move(floats);
    KERNELPATH_TRY(integers, Buffer::allocate(kIntegerBytes));
    integers_ = std::move(integers);
    void* pinned = nullptr;
    if (cudaMallocHost(&pinned, static_cast<std::size_t>(kIntegerBytes)) != cudaSuccess) {
      return fail({.code = ErrorCode::kResource, .message = "no pinned memory for its plan"});
    }
    pinned_.reset(pinned);
    std::string text;
    decode_ = flashinfer_peer::make_decode(tensor_cores, problem(shape, data),
                                           {.floats = floats_.data(),
                                            .float_bytes = kFloatBytes,
                                            .integers = integers_.data(),
                                            .integer_bytes = kIntegerBytes,
                                            .pinned_integers = pinned_.get()},
                                           text);
    if (decode_ == nullptr) return fail({.code = ErrorCode::kUnavailable, .message = text});
    // Its plan is copied by the default stream.
    return kernels::cuda::synchronize();
  }

  std::string launch(std::int64_t copy, StreamView stream) override {
    const auto* const indices = reinterpret_cast<const std::int32_t*>(indices_.data());
    return decode_->launch(indices + copy * indptr_host_.back(),
                           static_cast<cudaStream_t>(stream.handle));
  }
  [[nodiscard]] const Buffer& output() const override { return output_; }

 private:
  static constexpr std::int64_t kFloatBytes = std::int64_t{512} << 20;
  static constexpr std::int64_t kIntegerBytes = std::int64_t{32} << 20;

  // Page tables as it has them: the pages of all requests in a row, one row for each copy.
  Result<void> make_tables(CudaMachine& machine, const Shape& shape, const PagePlan& plan) {
    indptr_host_ = {0};
    std::vector<std::int32_t> last;
    for (const std::int32_t length : plan.seq_lens) {
      const auto pages = static_cast<std::int32_t>(ceil_div(length, shape.page_size));
      indptr_host_.push_back(indptr_host_.back() + pages);
      last.push_back(static_cast<std::int32_t>((length - 1) % shape.page_size + 1));
    }
    std::vector<std::int32_t> all;
    for (std::int64_t copy = 0; copy < plan.copies; ++copy) {
      const std::vector<std::int32_t> order = page_order(shape, plan, copy);
      all.insert(all.end(), order.begin(), order.end());
    }
    KERNELPATH_TRY(indptr, machine.copied(std::span<const std::int32_t>(indptr_host_)));
    indptr_ = std::move(indptr);
    KERNELPATH_TRY(indices, machine.copied(std::span<const std::int32_t>(all)));
    indices_ = std::move(indices);
    KERNELPATH_TRY(lengths, machine.copied(std::span<const std::int32_t>(last)));
    last_page_len_ = std::move(lengths);
    return {};
  }

  [[nodiscard]] DecodeProblem problem(const Shape& shape, const CudaAttentionData& data) const {
    const auto integers = [](const Buffer& buffer) {
      return reinterpret_cast<const std::int32_t*>(buffer.data());
    };
    const attention::Geometry& g = shape.geometry;
    const kv::PageLayout layout = page_layout(shape, g.head_dim);
    DecodeProblem out;
    out.batch = static_cast<std::int32_t>(shape.batch);
    out.num_heads = static_cast<std::int32_t>(g.num_heads);
    out.num_kv_heads = static_cast<std::int32_t>(g.num_kv_heads);
    out.head_dim = static_cast<std::int32_t>(g.head_dim);
    out.page_size = static_cast<std::int32_t>(shape.page_size);
    out.fp8 = shape.kv_type == attention::DataType::kFp8E4m3;
    out.host_indptr = indptr_host_.data();
    out.indptr = integers(indptr_);
    out.last_page_len = integers(last_page_len_);
    out.query_start = integers(data.query_start);
    out.host_query_start = data.plan.query_start.data();
    out.q = data.q.data();
    out.k = data.kv.data();
    out.v = data.kv.data() + data.k_bytes;
    out.o = output_.data();
    out.page_stride = layout.page_elements();
    out.token_stride = layout.token_stride();
    out.head_stride = layout.head_stride();
    out.softmax_scale = g.softmax_scale;
    return out;
  }

  struct FreePinned {
    void operator()(void* data) const { cudaFreeHost(data); }
  };

  std::vector<std::int32_t> indptr_host_;
  Buffer indptr_;
  Buffer indices_;
  Buffer last_page_len_;
  Buffer output_;
  Buffer floats_;
  Buffer integers_;
  std::unique_ptr<void, FreePinned> pinned_;
  std::unique_ptr<Decode> decode_;
};

}  // namespace

std::vector<Peer> flashinfer_peers(CudaMachine& machine, const Shape& shape,
                                   const CudaAttentionData& data) {
  std::vector<Peer> out;
  for (const bool tensor_cores : {true, false}) {
    Peer peer{.name = tensor_cores ? "flashinfer_fa2_tc1" : "flashinfer_fa2_tc0",
              .reason = flashinfer_refusal(shape)};
    if (peer.reason.empty()) {
      prepare_peer<FlashInferKernel>(peer, machine, shape, data, tensor_cores);
    }
    out.push_back(std::move(peer));
  }
  return out;
}

}  // namespace kernelpath::bench
