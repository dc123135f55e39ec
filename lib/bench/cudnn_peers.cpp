#include "bench/cuda_peers.h"
#include "bench/cudnn/decode.h"
#include "bench/peers.h"

#include <algorithm>
#include <utility>

// cuDNN's paged attention on our data.

namespace kernelpath::bench {
namespace {

using cudnn_peer::Decode;
using cudnn_peer::DecodeProblem;

// Its plan with the tables and the memory that it needs.
class CudnnKernel : public PeerKernel {
 public:
  Result<void> prepare(CudaMachine& machine, const Shape& shape, const CudaAttentionData& data) {
    const std::vector<std::int32_t> ones(static_cast<std::size_t>(shape.batch), 1);
    KERNELPATH_TRY(lengths, machine.copied(std::span<const std::int32_t>(ones)));
    query_lens_ = std::move(lengths);
    KERNELPATH_TRY(output, Buffer::allocate(data.o.bytes()));
    output_ = std::move(output);
    std::string text;
    decode_ = cudnn_peer::make_decode(problem(machine, shape, data), text);
    if (decode_ == nullptr) return fail({.code = ErrorCode::kUnavailable, .message = text});
    KERNELPATH_TRY(memory,
                   Buffer::allocate(std::max<std::int64_t>(decode_->workspace_bytes(), 256)));
    workspace_ = std::move(memory);
    tables_ = reinterpret_cast<std::int32_t*>(data.block_table.data());
    table_size_ = shape.batch * data.plan.stride;
    return {};
  }

  std::string launch(std::int64_t copy, StreamView stream) override {
    return decode_->launch(tables_ + copy * table_size_, workspace_.data(), stream.handle);
  }
  [[nodiscard]] const Buffer& output() const override { return output_; }

 private:
  [[nodiscard]] DecodeProblem problem(const CudaMachine& machine, const Shape& shape,
                                      const CudaAttentionData& data) const {
    const attention::Geometry& g = shape.geometry;
    const kv::PageLayout layout = page_layout(shape, g.head_dim);
    return {.sm = machine.info().sm,
            .f16 = shape.dtype == attention::DataType::kF16,
            .batch = shape.batch,
            .num_heads = g.num_heads,
            .num_kv_heads = g.num_kv_heads,
            .head_dim = g.head_dim,
            .page_size = shape.page_size,
            .pages = data.plan.pages,
            .table_width = data.plan.stride,
            .longest = std::ranges::max(shape.contexts),
            .page_stride = layout.page_elements(),
            .token_stride = layout.token_stride(),
            .head_stride = layout.head_stride(),
            .softmax_scale = g.softmax_scale,
            .q = data.q.data(),
            .k = data.kv.data(),
            .v = data.kv.data() + data.k_bytes,
            .o = output_.data(),
            .query_lens = reinterpret_cast<std::int32_t*>(query_lens_.data()),
            .seq_lens = reinterpret_cast<std::int32_t*>(data.seq_lens.data())};
  }

  Buffer query_lens_;
  Buffer output_;
  Buffer workspace_;
  std::int32_t* tables_ = nullptr;  // of all copies
  std::int64_t table_size_ = 0;
  std::unique_ptr<Decode> decode_;
};

}  // namespace

std::vector<Peer> cudnn_peers(CudaMachine& machine, const Shape& shape,
                              const CudaAttentionData& data) {
  std::vector<Peer> out;
  Peer peer{.name = "cudnn_paged", .reason = cudnn_refusal(shape)};
  if (peer.reason.empty()) prepare_peer<CudnnKernel>(peer, machine, shape, data);
  out.push_back(std::move(peer));
  return out;
}

}  // namespace kernelpath::bench
