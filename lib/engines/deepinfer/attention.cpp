#include "engines/deepinfer/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::deepinfer {
namespace {

constexpr std::string_view kFusedPrefill = "fused_norm_rope_attn_rope_cast_fwd";
constexpr std::string_view kFusedDecode = "fused_norm_rope_attn_rope_cast_decode";
constexpr std::string_view kSparsePrefill = "sparse_prefill_fwd";
constexpr std::string_view kSparseDecode = "sparse_decode_fwd";
constexpr std::int64_t kLargestIndexChunk = 8192;

bool kernel_heads(std::int64_t heads) { return heads == 64 || heads == 128; }

// The index layers that score candidate blocks only.
bool uses_candidates(const Model& model, const Topology& topology, std::int64_t layer) {
  return model.candidates && layer > model.candidates->source_layer && layer < model.num_layers &&
         Topology::is_source(topology.index_topk, layer);
}

Checked<bool> check_candidate_indexer(const Model& model) {
  constexpr std::string_view kStage = "attention";
  const CandidateSettings& candidates = *model.candidates;
  if (model.index_n_heads > 32 || model.index_head_dim != 128) {
    return refuse(std::string(kStage), "candidate-indexer-heads-32-dim-128");
  }
  if (candidates.block_size != 8 && candidates.block_size != 16) {
    return refuse(std::string(kStage), "candidate-block-size-8-or-16");
  }
  if (candidates.topk_blocks > 4096 || candidates.topk_blocks % 4 != 0) {
    return refuse(std::string(kStage), "candidate-topk-blocks-at-most-4096");
  }
  if (candidates.topk_blocks * candidates.block_size * 2 % 1024 != 0) {
    return refuse(std::string(kStage), "candidate-row-multiple-of-1024");
  }
  return true;
}

// Query rows that are scored at a time, so that their scores stay below the limit.
Checked<std::int64_t> index_chunk(std::int64_t scores_per_row, const Variables& variables) {
  constexpr std::int64_t kBytesPerScore = 2;
  constexpr std::int64_t kRows = 8;
  KERNELPATH_TRY(limit, variables.integer("INDEX_ATTN_MEMORY_LIMIT", "attention"));
  const std::int64_t row_bytes = std::max<std::int64_t>(1, kBytesPerScore * scores_per_row);
  const std::int64_t chunk = std::min(kLargestIndexChunk, limit / row_bytes / kRows * kRows);
  if (chunk > 0) return chunk;
  return refuse("attention", "index-memory-limit-too-small",
                fmt::format("DEEPINFER_INDEX_ATTN_MEMORY_LIMIT is too small, at least {} B is "
                            "required",
                            kRows * row_bytes));
}

struct Builder : AttentionInput {
  [[nodiscard]] bool is_fused(bool compressed, bool sparse) const {
    const bool prompt_engine =
        arguments.engine_type == EngineType::kPrompt && !variables.flag("BATCH_INVARIANT");
    return (sparse || !compressed || prompt_engine) && kernel_heads(model.num_attention_heads) &&
           machine.platform == Platform::kCuda;
  }

  [[nodiscard]] Checked<bool> set_indexer(std::int64_t layer, LayerAttention& out) const {
    const bool narrowed = uses_candidates(model, topology, layer);
    const bool source = model.candidates && layer == model.candidates->source_layer;
    out.indexer = narrowed ? "candidate_consumer" : source ? "candidate_source" : "full";
    if (narrowed) KERNELPATH_CHECK_OK(check_candidate_indexer(model));
    const std::int64_t scores =
        narrowed ? model.candidates->topk_blocks * model.candidates->block_size
                 : limits.runtime_model_len / std::max<std::int64_t>(1, out.ratio);
    KERNELPATH_TRY(chunk, index_chunk(scores, variables));
    out.index_chunk = chunk;
    return true;
  }

  [[nodiscard]] Checked<bool> set_kernels(LayerAttention& out) const {
    out.fused = is_fused(out.ratio != 0, out.sparse);
    out.prefill = out.fused ? kFusedPrefill : kSparsePrefill;
    out.decode = out.fused ? kFusedDecode : kSparseDecode;
    if (out.fused) return true;
    KERNELPATH_TRY(padded, padded_heads(model.num_attention_heads, "attention"));
    if (padded != model.num_attention_heads) out.padded_heads = padded;
    return true;
  }

  [[nodiscard]] Checked<LayerAttention> backbone_layer(std::int64_t layer) const {
    LayerAttention out;
    out.ratio = model.compress_ratios[static_cast<std::size_t>(layer)];
    out.sparse = out.ratio != 0 && model.index_topk != 0;
    out.consumer = model.boundary < model.num_layers && layer >= model.boundary;
    if (out.ratio != 0) {
      out.kv_source = Topology::is_source(topology.kv, layer);
      out.index_source = Topology::is_source(topology.index_topk, layer);
      out.index_k_source = Topology::is_source(topology.index_k, layer);
      if (out.sparse && out.index_source) KERNELPATH_CHECK_OK(set_indexer(layer, out));
    }
    KERNELPATH_CHECK_OK(set_kernels(out));
    return out;
  }

  [[nodiscard]] Checked<LayerAttention> draft_layer() const {
    LayerAttention out;
    out.draft = true;
    KERNELPATH_CHECK_OK(set_kernels(out));
    out.prefill.clear();
    // A prefill engine builds them for their cache only.
    if (arguments.engine_type == EngineType::kPrompt) out.decode.clear();
    return out;
  }
};

std::string not_on_this_device(std::string_view description, std::string_view kernel) {
  return fmt::format("{} ({}) is only supported on SM100f architectures.", description, kernel);
}

struct KernelRow {
  std::string_view name;
  std::string_view function;
  std::string_view description;
  bool fused = false;
  bool prefill = false;
};
constexpr std::array kKernels = std::to_array<KernelRow>({
    {"fused_prefill", kFusedPrefill, "Fused Norm + RoPE + Core Attn + RoPE + Cast", true, true},
    {"fused_decode", kFusedDecode, "Fused Norm + RoPE + Core Attn + RoPE + Cast", true, false},
    {"sparse_prefill", kSparsePrefill, "Sparse Attention Prefill Kernel", false, true},
    {"sparse_decode", kSparseDecode, "Sparse Attention Decode Kernel", false, false},
});

Fault runtime_error(std::string text) {
  return {.stage = "kernel", .type = "RuntimeError", .text = std::move(text)};
}

KernelAnswer check_ascend_kernel(const KernelRow& kernel, KernelAnswer answer, std::int64_t heads) {
  if (kernel.fused) {
    answer.fault =
        runtime_error(fmt::format("{} is only supported on CUDA GPUs.", kernel.function));
  } else if (heads > 64) {
    answer.fault = runtime_error(
        "The chosen implementation does not support all required features. See message above for "
        "details.");
  } else {
    answer.implementation = "ascend_h64";
  }
  return answer;
}

}  // namespace

Checked<std::int64_t> padded_heads(std::int64_t heads, std::string_view stage) {
  for (const std::int64_t size : {std::int64_t{64}, std::int64_t{128}}) {
    if (heads <= size) return size;
  }
  return raise({.stage = std::string(stage),
                .type = "ValueError",
                .text = fmt::format("attention head 数 {} 超出 FlashMLA 支持范围 (64, 128)", heads),
                .rule = "heads-above-128"});
}

Checked<bool> check_parameter_tree(const Model& model, const Topology& topology) {
  const std::string stage = "build";
  if (model.o_groups <= 0) return refuse(stage, "o-groups-not-positive");
  if (model.num_attention_heads % model.o_groups != 0) {
    return refuse(stage, "heads-not-divisible-by-o-groups");
  }
  bool has_indexer = false;
  for (std::int64_t layer = 0; layer < model.num_layers; ++layer) {
    has_indexer = has_indexer || (model.compressed(layer) && model.index_topk != 0 &&
                                  Topology::is_source(topology.index_topk, layer));
  }
  if (has_indexer && model.qk_rope_head_dim != 64) return refuse(stage, "index-rope-dim-not-64");
  if (model.scoring_func != "sqrtsoftplus") return refuse(stage, "scoring-func-not-sqrtsoftplus");
  if (model.topk_method != "noaux_tc") return refuse(stage, "topk-method-not-noaux-tc");
  if (!model.norm_topk_prob) return refuse(stage, "norm-topk-prob-false");
  const bool has_engram = std::ranges::any_of(model.engram.layers, [&](std::int64_t layer) {
    return layer >= 0 && layer < model.num_layers;
  });
  if (has_engram && model.hc_mult <= 1) return refuse(stage, "engram-needs-hc-mult-above-1");
  if (!model.engram.layers.empty() && model.engram.max_ngram < 2) {
    return refuse(stage, "engram-ngram-below-2");
  }
  if (model.num_draft_layers > 0 && model.draft_markov_rank <= 0) {
    return refuse(stage, "markov-rank-not-positive");
  }
  return true;
}

Checked<std::vector<LayerAttention>> build_attention(const AttentionInput& input) {
  const Builder builder{input};
  const Model& model = input.model;
  std::vector<LayerAttention> layers;
  for (std::int64_t layer = 0; layer < model.num_layers; ++layer) {
    KERNELPATH_TRY(built, builder.backbone_layer(layer));
    layers.push_back(built);
  }
  // Their caches exist with drafting off too, their attention does not.
  const std::int64_t drafts = input.limits.draft_length != 0 ? model.num_draft_layers : 0;
  for (std::int64_t draft = 0; draft < drafts; ++draft) {
    KERNELPATH_TRY(built, builder.draft_layer());
    layers.push_back(built);
  }
  return layers;
}

KernelAnswer check_kernel(const KernelQuestion& question, const Machine& machine) {
  const auto* const row = std::ranges::find_if(
      kKernels, [&](const KernelRow& kernel) { return kernel.name == question.kernel; });
  KernelAnswer answer;
  if (row == kKernels.end()) return answer;
  std::int64_t heads = question.heads;
  if (!row->fused && !kernel_heads(heads) && heads <= 128) {
    heads = heads <= 64 ? 64 : 128;
    answer.padded_heads = heads;
  }
  if (machine.platform == Platform::kAscend) return check_ascend_kernel(*row, answer, heads);
  if (!machine.sm || *machine.sm / 10 != 10) {
    answer.fault = runtime_error(not_on_this_device(row->description, row->function));
    return answer;
  }
  constexpr std::int64_t kMxfp8Bytes = 528;
  constexpr std::int64_t kFp4Bytes = 288;
  const std::int64_t bytes = question.kv_bytes_per_token.value_or(kMxfp8Bytes);
  if (bytes == kFp4Bytes) {
    answer.fault = runtime_error("The fp4 KV cache is only supported as extra_kv");
  } else if (bytes != kMxfp8Bytes) {
    answer.fault = runtime_error(fmt::format(
        "Unsupported bytes_per_token for d_qk=512: {}. Expected 528 (V4.1) or 288 (V4.1 fp4)",
        bytes));
  } else if (!row->fused && row->prefill && heads == 128 && question.topk) {
    constexpr std::int64_t kSmallTopk = 1280;
    answer.implementation =
        *question.topk <= kSmallTopk ? "sm100_head128_small_topk" : "sm100_head128";
  }
  return answer;
}

}  // namespace kernelpath::engines::deepinfer
