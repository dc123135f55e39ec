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

// Why FlashInfer cannot do what the shape asks for; "" if it can.
std::string refusal(const Shape& shape, const CudaAttentionData& data) {
  const attention::Geometry& g = shape.geometry;
  if (shape.query_tokens != 1) return "several query tokens are not compared";
  if (g.window > 0 || g.chunk > 0 || g.softcap > 0 || shape.sinks) {
    return "windows, chunks, soft caps and sinks are not compared";
  }
  if (g.v_head_dim != g.head_dim) return "V rows as wide as K rows only";
  if (shape.dtype != attention::DataType::kBf16) return "bf16 queries only";
  if (shape.layout != attention::KvLayout::kHnd) return "HND pages only";
  const bool cached =
      shape.kv_type == attention::DataType::kBf16 || shape.kv_type == attention::DataType::kFp8E4m3;
  if (!cached) return "KV caches in bf16 and fp8 (e4m3) only";
  constexpr std::int64_t kMostPages = std::int64_t{1} << 31;
  return data.plan.pages < kMostPages ? "" : "too many pages";
}

// One of its kernels with the tables and the memory that it needs.
class FlashInferWorkload : public Workload {
 public:
  // Null with `reason` set where it does not go.
  static std::unique_ptr<FlashInferWorkload> make(CudaMachine& machine, const Shape& shape,
                                                  const CudaAttentionData& data, bool tensor_cores,
                                                  std::string& reason) {
    std::unique_ptr<FlashInferWorkload> out(new FlashInferWorkload);
    const Result<void> prepared = out->prepare(machine, shape, data, tensor_cores);
    if (prepared) return out;
    reason = prepared.error().text();
    return nullptr;
  }

  Result<double> run(std::int64_t launches) override { return graph_->run(launches); }
  [[nodiscard]] std::int64_t least_launches() const override { return graph_->least_launches(); }

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
    KERNELPATH_CHECK_OK(kernels::cuda::synchronize());
    const std::int64_t pages = indptr_host_.back();
    KERNELPATH_TRY(
        graph, GraphWorkload::capture(machine, {.before = {},
                                                .launch =
                                                    [this, pages, copies = data.plan.copies](
                                                        std::int64_t pass, StreamView stream) {
                                                      return launch(pass % copies * pages, stream);
                                                    },
                                                .launches = data.plan.copies}));
    graph_ = std::move(graph);
    return check(data);
  }

  Result<void> launch(std::int64_t first_page, StreamView stream) {
    const auto* const indices = reinterpret_cast<const std::int32_t*>(indices_.data());
    const std::string text =
        decode_->launch(indices + first_page, static_cast<cudaStream_t>(stream.handle));
    if (text.empty()) return {};
    return fail({.code = ErrorCode::kRuntime, .message = text});
  }

  // Its output against ours, which was compared with the reference.
  Result<void> check(const CudaAttentionData& data) {
    KERNELPATH_CHECK_OK(run(1));
    const auto count = static_cast<std::size_t>(data.o.bytes() / 2);
    std::vector<std::uint16_t> own(count);
    std::vector<std::uint16_t> other(count);
    KERNELPATH_CHECK_OK(kernels::cuda::copy_to_host(own.data(), data.o.data(), data.o.bytes()));
    KERNELPATH_CHECK_OK(kernels::cuda::copy_to_host(other.data(), output_.data(), output_.bytes()));
    const std::vector<float> ours = widened(attention::DataType::kBf16, own);
    const std::vector<float> theirs = widened(attention::DataType::kBf16, other);
    Difference difference;
    for (std::size_t i = 0; i < count; ++i) difference.add(theirs[i], ours[i]);
    constexpr double kBound = 3e-2;
    return check_peer_output(difference.relative(), kBound);
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
  std::unique_ptr<GraphWorkload> graph_;
};

}  // namespace

std::vector<Peer> cuda_decode_peers(CudaMachine& machine, const Shape& shape,
                                    const CudaAttentionData& data, const std::string& wanted) {
  std::vector<Peer> out;
  if (!names_peer(wanted, "flashinfer")) return out;
  for (const bool tensor_cores : {true, false}) {
    Peer peer{.name = tensor_cores ? "flashinfer_fa2_tc1" : "flashinfer_fa2_tc0"};
    peer.reason = refusal(shape, data);
    if (peer.reason.empty()) {
      peer.workload = FlashInferWorkload::make(machine, shape, data, tensor_cores, peer.reason);
    }
    out.push_back(std::move(peer));
  }
  return out;
}

}  // namespace kernelpath::bench
