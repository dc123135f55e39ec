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
class CudnnWorkload : public Workload {
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
    const auto launch = [this, batch = shape.batch, &data](std::int64_t copy, StreamView stream) {
      auto* const tables = reinterpret_cast<std::int32_t*>(data.block_table.data());
      return decode_->launch(tables + copy * batch * data.plan.stride, workspace_.data(),
                             stream.handle);
    };
    KERNELPATH_TRY(graph, capture_peer(machine, shape, data, output_, launch));
    graph_ = std::move(graph);
    return {};
  }

  Result<double> run(std::int64_t launches) override { return graph_->run(launches); }
  [[nodiscard]] std::int64_t least_launches() const override { return graph_->least_launches(); }

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
  std::unique_ptr<Decode> decode_;
  std::unique_ptr<GraphWorkload> graph_;  // ends before the plan that it launches
};

}  // namespace

std::vector<Peer> cudnn_peers(CudaMachine& machine, const Shape& shape,
                              const CudaAttentionData& data) {
  std::vector<Peer> out;
  Peer peer{.name = "cudnn_paged", .reason = cudnn_refusal(shape)};
  if (peer.reason.empty()) prepare_peer<CudnnWorkload>(peer, machine, shape, data);
  out.push_back(std::move(peer));
  return out;
}

}  // namespace kernelpath::bench
