#pragma once

#include "engines/vllm/backend_table.h"
#include "engines/vllm/selector_input.h"

#include <string_view>

// The tests of backends that look at the machine, the packages or the configuration, and so cannot
// be read as data. A table names each by the class and the method that it restates.
namespace kernelpath::engines::vllm {

// Null pointer for a name that this build does not know.
FlagRule find_flag_rule(std::string_view name);
HeadSizeRule find_head_size_rule(std::string_view name);
NameRule find_name_rule(std::string_view name);
BlockSizeRule find_block_size_rule(std::string_view name);
BlockSizesRule find_block_sizes_rule(std::string_view name);
LayoutsRule find_layouts_rule(std::string_view name);
CombinationRule find_combination_rule(std::string_view name);
PreferredBlockSizeRule find_preferred_block_size_rule(std::string_view name);

// --- flash_attn_rules.cpp: FLASH_ATTN, its composite's child, STEP5_DSA -----------------------

bool flash_attn_head_size(const SelectorContext&, const BackendClass&, std::int64_t head_size);
bool flash_attn_kv_dtype(const SelectorContext&, const BackendClass&, std::string_view kv_dtype);
bool flash_attn_sink(const SelectorContext&, const BackendClass&);
bool flash_attn_mm_prefix(const SelectorContext&, const BackendClass&);
bool flash_attn_per_head_scales(const SelectorContext&, const BackendClass&);
std::vector<BlockSize> flash_attn_block_sizes(const SelectorContext&, const BackendClass&);
std::int64_t flash_attn_preferred_block_size(const SelectorContext&, const BackendClass&,
                                             std::int64_t default_size);
void flash_attn_combination(const SelectorContext&, const BackendClass&, const SelectorConfig&,
                            Verdict&);
bool composite_child_capability(const SelectorContext&, const BackendClass&);
void composite_child_combination(const SelectorContext&, const BackendClass&, const SelectorConfig&,
                                 Verdict&);
void step5_combination(const SelectorContext&, const BackendClass&, const SelectorConfig&,
                       Verdict&);

// --- flashinfer_rules.cpp: FLASHINFER, B12X ----------------------------------------------------

bool flashinfer_kv_dtype(const SelectorContext&, const BackendClass&, std::string_view kv_dtype);
bool flashinfer_sink(const SelectorContext&, const BackendClass&);
bool flashinfer_query_lengths_mismatch(const SelectorContext&, const BackendClass&);
std::vector<BlockSize> flashinfer_block_sizes(const SelectorContext&, const BackendClass&);
std::optional<std::vector<std::string>> flashinfer_layouts(const SelectorContext&,
                                                           const BackendClass&);
void flashinfer_combination(const SelectorContext&, const BackendClass&, const SelectorConfig&,
                            Verdict&);
void b12x_combination(const SelectorContext&, const BackendClass&, const SelectorConfig&, Verdict&);

// --- mla_rules.cpp -----------------------------------------------------------------------------

void flash_attn_mla_combination(const SelectorContext&, const BackendClass&, const SelectorConfig&,
                                Verdict&);
void flash_attn_mla_sparse_combination(const SelectorContext&, const BackendClass&,
                                       const SelectorConfig&, Verdict&);
void flash_attn_mla_sparse_fa4_combination(const SelectorContext&, const BackendClass&,
                                           const SelectorConfig&, Verdict&);
void flashinfer_mla_combination(const SelectorContext&, const BackendClass&, const SelectorConfig&,
                                Verdict&);
void flashinfer_mla_sparse_combination(const SelectorContext&, const BackendClass&,
                                       const SelectorConfig&, Verdict&);
void flashinfer_mla_sparse_sm90_combination(const SelectorContext&, const BackendClass&,
                                            const SelectorConfig&, Verdict&);
void flashinfer_mla_sparse_sm120_combination(const SelectorContext&, const BackendClass&,
                                             const SelectorConfig&, Verdict&);
void flashmla_combination(const SelectorContext&, const BackendClass&, const SelectorConfig&,
                          Verdict&);
void flashmla_sparse_combination(const SelectorContext&, const BackendClass&, const SelectorConfig&,
                                 Verdict&);
void flashmla_mega_combination(const SelectorContext&, const BackendClass&, const SelectorConfig&,
                               Verdict&);
void tokenspeed_mla_combination(const SelectorContext&, const BackendClass&, const SelectorConfig&,
                                Verdict&);
void deepseek_v4_flashinfer_combination(const SelectorContext&, const BackendClass&,
                                        const SelectorConfig&, Verdict&);
std::vector<BlockSize> flashmla_sparse_block_sizes(const SelectorContext&, const BackendClass&);
std::vector<BlockSize> deepseek_v41_block_sizes(const SelectorContext&, const BackendClass&);

// --- kernel_blocks.cpp: caches of indexers ------------------------------------------------------

std::vector<BlockSize> indexer_block_sizes(const SelectorContext&, const BackendClass&);
std::vector<BlockSize> pooled_indexer_block_sizes(const SelectorContext&, const BackendClass&);

// --- composite_rules.cpp -----------------------------------------------------------------------

bool composite_dtype(const SelectorContext&, const BackendClass&, std::string_view dtype);
bool composite_kv_dtype(const SelectorContext&, const BackendClass&, std::string_view kv_dtype);
bool composite_head_size(const SelectorContext&, const BackendClass&, std::int64_t head_size);
bool composite_capability(const SelectorContext&, const BackendClass&);
bool composite_mm_prefix(const SelectorContext&, const BackendClass&);
bool composite_sliding_window(const SelectorContext&, const BackendClass&);
bool composite_rswa(const SelectorContext&, const BackendClass&);
std::vector<BlockSize> composite_block_sizes(const SelectorContext&, const BackendClass&);
bool composite_block_size(const SelectorContext&, const BackendClass&, std::int64_t block_size);
std::optional<std::vector<std::string>> composite_layouts(const SelectorContext&,
                                                          const BackendClass&);
void composite_combination(const SelectorContext&, const BackendClass&, const SelectorConfig&,
                           Verdict&);

// --- platform_rules.cpp: AMD GPUs and CPUs -----------------------------------------------------

bool aiter_flash_attn_capability(const SelectorContext&, const BackendClass&);
bool octave_capability(const SelectorContext&, const BackendClass&);
bool aiter_mla_sparse_sink(const SelectorContext&, const BackendClass&);
bool aiter_mla_non_causal(const SelectorContext&, const BackendClass&);
bool cpu_kv_dtype(const SelectorContext&, const BackendClass&, std::string_view kv_dtype);
void rocm_segmented_combination(const SelectorContext&, const BackendClass&, const SelectorConfig&,
                                Verdict&);
void aiter_mla_validation(const SelectorContext&, const BackendClass&, const SelectorConfig&,
                          Verdict&);
std::optional<std::vector<std::string>> aiter_flash_attn_layouts(const SelectorContext&,
                                                                 const BackendClass&);
std::optional<std::vector<std::string>> aiter_unified_layouts(const SelectorContext&,
                                                              const BackendClass&);
std::optional<std::vector<std::string>> minimax_m3_layouts(const SelectorContext&,
                                                           const BackendClass&);
std::optional<std::vector<std::string>> octave_layouts(const SelectorContext&, const BackendClass&);

}  // namespace kernelpath::engines::vllm
