#include "engines/vllm/backend_rules.h"

#include <algorithm>
#include <array>
#include <span>

namespace kernelpath::engines::vllm {
namespace {

template <class Rule>
struct Named {
  std::string_view name;
  Rule rule;
};

constexpr auto kFlagRules = std::to_array<Named<FlagRule>>({
    {"FlashAttentionBackend.supports_sink", flash_attn_sink},
    {"FlashAttentionBackend.supports_mm_prefix", flash_attn_mm_prefix},
    {"FlashAttentionBackend.supports_per_head_quant_scales", flash_attn_per_head_scales},
    {"_FABackend.supports_compute_capability", composite_child_capability},
    {"FlashInferBackend.supports_sink", flashinfer_sink},
    {"FlashInferBackend.supports_device_cpu_query_lens_mismatch",
     flashinfer_query_lengths_mismatch},
    {"CompositeAttentionBackend.supports_compute_capability", composite_capability},
    {"CompositeAttentionBackend.supports_mm_prefix", composite_mm_prefix},
    {"CompositeAttentionBackend.supports_sliding_window", composite_sliding_window},
    {"CompositeAttentionBackend.supports_rswa", composite_rswa},
    {"AiterFlashAttentionBackend.supports_compute_capability", aiter_flash_attn_capability},
    {"RocmOctaveAttentionBackend.supports_compute_capability", octave_capability},
    {"ROCMAiterMLASparseBackend.supports_sink", aiter_mla_sparse_sink},
    {"AiterMLABackend.supports_non_causal", aiter_mla_non_causal},
});

constexpr auto kHeadSizeRules = std::to_array<Named<HeadSizeRule>>({
    {"FlashAttentionBackend.supports_head_size", flash_attn_head_size},
    {"CompositeAttentionBackend.supports_head_size", composite_head_size},
});

constexpr auto kNameRules = std::to_array<Named<NameRule>>({
    {"FlashAttentionBackend.supports_kv_cache_dtype", flash_attn_kv_dtype},
    {"FlashInferBackend.supports_kv_cache_dtype", flashinfer_kv_dtype},
    {"CompositeAttentionBackend.supports_dtype", composite_dtype},
    {"CompositeAttentionBackend.supports_kv_cache_dtype", composite_kv_dtype},
    {"CPUAttentionBackend.supports_kv_cache_dtype", cpu_kv_dtype},
});

constexpr auto kBlockSizeRules = std::to_array<Named<BlockSizeRule>>({
    {"CompositeAttentionBackend.supports_block_size", composite_block_size},
});

constexpr auto kBlockSizesRules = std::to_array<Named<BlockSizesRule>>({
    {"FlashAttentionBackend.get_supported_kernel_block_sizes", flash_attn_block_sizes},
    {"FlashInferBackend.get_supported_kernel_block_sizes", flashinfer_block_sizes},
    {"CompositeAttentionBackend.get_supported_kernel_block_sizes", composite_block_sizes},
    {"FlashMLASparseBackend.get_supported_kernel_block_sizes", flashmla_sparse_block_sizes},
    {"DeepseekV4SparseMLABackend.get_supported_kernel_block_sizes", deepseek_v41_block_sizes},
    {"DeepseekV41IndexerBackend.get_supported_kernel_block_sizes", deepseek_v41_block_sizes},
    {"DeepseekV32IndexerBackend.get_supported_kernel_block_sizes", indexer_block_sizes},
    {"Glm5NextIndexerBackend.get_supported_kernel_block_sizes", pooled_indexer_block_sizes},
});

constexpr auto kLayoutsRules = std::to_array<Named<LayoutsRule>>({
    {"FlashInferBackend.get_required_kv_cache_layout", flashinfer_layouts},
    {"FlashInferBackend.supported_kv_cache_layouts", flashinfer_layouts},
    {"CompositeAttentionBackend.supported_kv_cache_layouts", composite_layouts},
    {"AiterFlashAttentionBackend.supported_kv_cache_layouts", aiter_flash_attn_layouts},
    {"RocmAiterUnifiedAttentionBackend.supported_kv_cache_layouts", aiter_unified_layouts},
    {"MiniMaxM3SparseBackend.supported_kv_cache_layouts", minimax_m3_layouts},
    {"RocmOctaveAttentionBackend.supported_kv_cache_layouts", octave_layouts},
});

constexpr auto kCombinationRules = std::to_array<Named<CombinationRule>>({
    {"FlashAttentionBackend.supports_combination", flash_attn_combination},
    {"_FABackend.supports_combination", composite_child_combination},
    {"Step5DSAAttentionBackend.supports_combination", step5_combination},
    {"FlashInferBackend.supports_combination", flashinfer_combination},
    {"B12xPagedAttentionBackend.supports_combination", b12x_combination},
    {"FlashAttnMLABackend.supports_combination", flash_attn_mla_combination},
    {"FlashAttnMLASparseBackend.supports_combination", flash_attn_mla_sparse_combination},
    {"FlashAttnMLASparseFA4Backend.supports_combination", flash_attn_mla_sparse_fa4_combination},
    {"FlashInferMLABackend.supports_combination", flashinfer_mla_combination},
    {"FlashInferMLASparseTRTLLMBackend.supports_combination", flashinfer_mla_sparse_combination},
    {"FlashInferMLASparseSM90Backend.supports_combination", flashinfer_mla_sparse_sm90_combination},
    {"FlashInferMLASparseSM120Backend.supports_combination",
     flashinfer_mla_sparse_sm120_combination},
    {"FlashMLABackend.supports_combination", flashmla_combination},
    {"FlashMLASparseBackend.supports_combination", flashmla_sparse_combination},
    {"FlashMLAMegaAttnBackend.supports_combination", flashmla_mega_combination},
    {"TokenspeedMLABackend.supports_combination", tokenspeed_mla_combination},
    {"DeepseekV4FlashInferMLASparseBackend.supports_combination",
     deepseek_v4_flashinfer_combination},
    {"CompositeAttentionBackend.supports_combination", composite_combination},
    {"RocmSegmentedAttentionBackend.supports_combination", rocm_segmented_combination},
    {"AiterMLABackend.validate_configuration", aiter_mla_validation},
});

constexpr auto kPreferredRules = std::to_array<Named<PreferredBlockSizeRule>>({
    {"FlashAttentionBackend.get_preferred_block_size", flash_attn_preferred_block_size},
});

template <class Rule>
Rule find(std::span<const Named<Rule>> rules, std::string_view name) {
  const auto found = std::find_if(rules.begin(), rules.end(),
                                  [&](const Named<Rule>& row) { return row.name == name; });
  return found == rules.end() ? nullptr : found->rule;
}

}  // namespace

FlagRule find_flag_rule(std::string_view name) { return find<FlagRule>(kFlagRules, name); }
HeadSizeRule find_head_size_rule(std::string_view name) {
  return find<HeadSizeRule>(kHeadSizeRules, name);
}
NameRule find_name_rule(std::string_view name) { return find<NameRule>(kNameRules, name); }
BlockSizeRule find_block_size_rule(std::string_view name) {
  return find<BlockSizeRule>(kBlockSizeRules, name);
}
BlockSizesRule find_block_sizes_rule(std::string_view name) {
  return find<BlockSizesRule>(kBlockSizesRules, name);
}
LayoutsRule find_layouts_rule(std::string_view name) {
  return find<LayoutsRule>(kLayoutsRules, name);
}
CombinationRule find_combination_rule(std::string_view name) {
  return find<CombinationRule>(kCombinationRules, name);
}
PreferredBlockSizeRule find_preferred_block_size_rule(std::string_view name) {
  return find<PreferredBlockSizeRule>(kPreferredRules, name);
}

}  // namespace kernelpath::engines::vllm
