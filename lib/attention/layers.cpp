#include "attention/layers.h"

#include "base/assert.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace kernelpath::attention {
namespace {

std::string text_of(const std::vector<Refusal>& refusals) {
  std::vector<std::string> reasons;
  reasons.reserve(refusals.size());
  for (const Refusal& refusal : refusals) reasons.push_back(refusal.reason);
  return join(reasons, "; ");
}

// All checks come before the first forward.
Result<void> check(const BackendRow& row, const LayerRequest& request) {
  const std::vector<Refusal> faults = request_faults(request);
  if (!faults.empty()) return fail({.code = ErrorCode::kConfigValue, .message = text_of(faults)});
  const std::vector<Refusal> reasons = refusals(row, request);
  if (reasons.empty()) return {};
  return fail({.code = ErrorCode::kUnavailable,
               .message = fmt::format("backend {} cannot serve this layer: {}", row.name,
                                      text_of(reasons))});
}

AttentionParams params_of(const BackendRow& row, const Geometry& geometry,
                          const StepMetadata& metadata) {
  AttentionParams params;
  params.geometry = geometry;
  params.batch = metadata.batch;
  params.shard = metadata.shard;
  params.plan = metadata.plan;
  params.reference = row.id == BackendId::kVanilla;
  return params;
}

}  // namespace

Result<Attention> Attention::make(const BackendRow& row, const LayerRequest& request) {
  if (request.mla) {
    return fail({.code = ErrorCode::kConfigValue,
                 .message = "multi-head latent attention is built as MlaAttention"});
  }
  KERNELPATH_CHECK_OK(check(row, request));
  return Attention(row, request);
}

MetadataBuilder Attention::metadata_builder(const KvShard& shard) const {
  return {*row_, request_.geometry, shard};
}

void Attention::forward(Kernels& kernels, const StepMetadata& metadata,
                        const ForwardArgs& args) const {
  // Sinks join once: where the parts of several ranks are merged, they join there.
  KERNELPATH_ASSERT((args.sinks != nullptr) == (request_.sinks && request_.context_parallel == 1));
  KERNELPATH_ASSERT((args.selected != nullptr) == request_.sparse);
  KERNELPATH_ASSERT((args.lse.data != nullptr) == request_.lse_base.has_value());
  AttentionParams params = params_of(*row_, request_.geometry, metadata);
  params.k = args.k;
  params.v = args.v;
  params.q = args.q;
  params.q_stride = args.q_stride;
  params.o = args.o;
  params.o_stride = args.o_stride;
  params.lse = args.lse;
  params.sinks = args.sinks;
  params.selected = args.selected;
  params.selected_stride = args.selected_stride;
  kernels.attention(params);
}

Result<MlaAttention> MlaAttention::make(const BackendRow& row, const LayerRequest& request) {
  if (!request.mla) {
    return fail({.code = ErrorCode::kConfigValue,
                 .message = "MLA needs q_lora_rank, kv_lora_rank, qk_nope_head_dim, "
                            "qk_rope_head_dim and v_head_dim"});
  }
  KERNELPATH_CHECK_OK(check(row, request));
  return MlaAttention(row, request);
}

MetadataBuilder MlaAttention::metadata_builder(const KvShard& shard) const {
  return {*row_, mqa_geometry(request_.geometry, *request_.mla), shard};
}

void MlaAttention::forward_mqa(Kernels& kernels, const StepMetadata& metadata,
                               const MqaArgs& args) const {
  KERNELPATH_ASSERT((args.selected != nullptr) == request_.sparse);
  KERNELPATH_ASSERT((args.lse.data != nullptr) == request_.lse_base.has_value());
  AttentionParams params =
      params_of(*row_, mqa_geometry(request_.geometry, *request_.mla), metadata);
  params.k = args.rows;
  params.v = args.rows;
  params.q = args.q;
  params.q_stride = args.q_stride;
  params.o = args.o;
  params.o_stride = args.o_stride;
  params.lse = args.lse;
  params.selected = args.selected;
  params.selected_stride = args.selected_stride;
  kernels.attention(params);
}

void MlaAttention::forward_mha(Kernels& kernels, const StepMetadata& metadata,
                               const MhaArgs& args) const {
  KERNELPATH_ASSERT(!request_.sparse);
  KERNELPATH_ASSERT((args.lse.data != nullptr) == request_.lse_base.has_value());
  const Geometry geometry = mha_geometry(request_.geometry, *request_.mla);
  AttentionParams params = params_of(*row_, geometry, metadata);
  params.plan = nullptr;  // the plan is that of one KV head
  params.shard = {};      // expanded rows hold every position
  // Kernels only read; the rows of a cache are written by append.
  const auto rows = [&](const float* data, std::int64_t dim) {
    const std::int64_t stride = geometry.num_heads * dim;
    return PagedRows{.data = reinterpret_cast<std::byte*>(const_cast<float*>(data)),  // NOLINT
                     .page_stride = stride,
                     .token_stride = stride,
                     .head_stride = dim};
  };
  params.k = rows(args.k, geometry.head_dim);
  params.v = rows(args.v, geometry.v_head_dim);
  params.batch.block_table = args.first;
  params.batch.block_table_stride = 1;
  params.batch.page_size = std::max<std::int64_t>(metadata.max_seq_len, 1);
  params.q = args.q;
  params.q_stride = args.q_stride;
  params.o = args.o;
  params.o_stride = args.o_stride;
  params.lse = args.lse;
  kernels.attention(params);
}

}  // namespace kernelpath::attention
