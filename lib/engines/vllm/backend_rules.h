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

bool flash_attn_head_size(const SelectorContext& context, const BackendClass& backend,
                          std::int64_t head_size);
bool flash_attn_kv_dtype(const SelectorContext& context, const BackendClass& backend,
                         std::string_view kv_dtype);
bool flash_attn_sink(const SelectorContext& context, const BackendClass& backend);
bool flash_attn_mm_prefix(const SelectorContext& context, const BackendClass& backend);
bool flash_attn_per_head_scales(const SelectorContext& context, const BackendClass& backend);
std::vector<BlockSize> flash_attn_block_sizes(const SelectorContext& context,
                                              const BackendClass& backend);
std::int64_t flash_attn_preferred_block_size(const SelectorContext& context,
                                             const BackendClass& backend,
                                             std::int64_t default_size);
void flash_attn_combination(const SelectorContext& context, const BackendClass& backend,
                            const SelectorConfig& config, Verdict& verdict);
bool composite_child_capability(const SelectorContext& context, const BackendClass& backend);
void composite_child_combination(const SelectorContext& context, const BackendClass& backend,
                                 const SelectorConfig& config, Verdict& verdict);
void step5_combination(const SelectorContext& context, const BackendClass& backend,
                       const SelectorConfig& config, Verdict& verdict);

// --- flashinfer_rules.cpp: FLASHINFER, B12X ----------------------------------------------------

bool flashinfer_kv_dtype(const SelectorContext& context, const BackendClass& backend,
                         std::string_view kv_dtype);
bool flashinfer_sink(const SelectorContext& context, const BackendClass& backend);
bool flashinfer_query_lengths_mismatch(const SelectorContext& context, const BackendClass& backend);
std::vector<BlockSize> flashinfer_block_sizes(const SelectorContext& context,
                                              const BackendClass& backend);
std::optional<std::vector<std::string>> flashinfer_layouts(const SelectorContext& context,
                                                           const BackendClass& backend);
void flashinfer_combination(const SelectorContext& context, const BackendClass& backend,
                            const SelectorConfig& config, Verdict& verdict);
void b12x_combination(const SelectorContext& context, const BackendClass& backend,
                      const SelectorConfig& config, Verdict& verdict);

// --- mla_rules.cpp -----------------------------------------------------------------------------

void flash_attn_mla_combination(const SelectorContext& context, const BackendClass& backend,
                                const SelectorConfig& config, Verdict& verdict);
void flash_attn_mla_sparse_combination(const SelectorContext& context, const BackendClass& backend,
                                       const SelectorConfig& config, Verdict& verdict);
void flash_attn_mla_sparse_fa4_combination(const SelectorContext& context,
                                           const BackendClass& backend,
                                           const SelectorConfig& config, Verdict& verdict);
void flashinfer_mla_combination(const SelectorContext& context, const BackendClass& backend,
                                const SelectorConfig& config, Verdict& verdict);
void flashinfer_mla_sparse_combination(const SelectorContext& context, const BackendClass& backend,
                                       const SelectorConfig& config, Verdict& verdict);
void flashinfer_mla_sparse_sm90_combination(const SelectorContext& context,
                                            const BackendClass& backend,
                                            const SelectorConfig& config, Verdict& verdict);
void flashinfer_mla_sparse_sm120_combination(const SelectorContext& context,
                                             const BackendClass& backend,
                                             const SelectorConfig& config, Verdict& verdict);
void flashmla_combination(const SelectorContext& context, const BackendClass& backend,
                          const SelectorConfig& config, Verdict& verdict);
void flashmla_sparse_combination(const SelectorContext& context, const BackendClass& backend,
                                 const SelectorConfig& config, Verdict& verdict);
void flashmla_mega_combination(const SelectorContext& context, const BackendClass& backend,
                               const SelectorConfig& config, Verdict& verdict);
void tokenspeed_mla_combination(const SelectorContext& context, const BackendClass& backend,
                                const SelectorConfig& config, Verdict& verdict);
void deepseek_v4_flashinfer_combination(const SelectorContext& context, const BackendClass& backend,
                                        const SelectorConfig& config, Verdict& verdict);
std::vector<BlockSize> flashmla_sparse_block_sizes(const SelectorContext& context,
                                                   const BackendClass& backend);
std::vector<BlockSize> deepseek_v41_block_sizes(const SelectorContext& context,
                                                const BackendClass& backend);

// --- kernel_blocks.cpp: caches of indexers ------------------------------------------------------

std::vector<BlockSize> indexer_block_sizes(const SelectorContext& context,
                                           const BackendClass& backend);
std::vector<BlockSize> pooled_indexer_block_sizes(const SelectorContext& context,
                                                  const BackendClass& backend);

// --- composite_rules.cpp -----------------------------------------------------------------------

bool composite_dtype(const SelectorContext& context, const BackendClass& backend,
                     std::string_view dtype);
bool composite_kv_dtype(const SelectorContext& context, const BackendClass& backend,
                        std::string_view kv_dtype);
bool composite_head_size(const SelectorContext& context, const BackendClass& backend,
                         std::int64_t head_size);
bool composite_capability(const SelectorContext& context, const BackendClass& backend);
bool composite_mm_prefix(const SelectorContext& context, const BackendClass& backend);
bool composite_sliding_window(const SelectorContext& context, const BackendClass& backend);
bool composite_rswa(const SelectorContext& context, const BackendClass& backend);
std::vector<BlockSize> composite_block_sizes(const SelectorContext& context,
                                             const BackendClass& backend);
bool composite_block_size(const SelectorContext& context, const BackendClass& backend,
                          std::int64_t block_size);
std::optional<std::vector<std::string>> composite_layouts(const SelectorContext& context,
                                                          const BackendClass& backend);
void composite_combination(const SelectorContext& context, const BackendClass& backend,
                           const SelectorConfig& config, Verdict& verdict);

// --- platform_rules.cpp: AMD GPUs and CPUs -----------------------------------------------------

bool aiter_flash_attn_capability(const SelectorContext& context, const BackendClass& backend);
bool octave_capability(const SelectorContext& context, const BackendClass& backend);
bool aiter_mla_sparse_sink(const SelectorContext& context, const BackendClass& backend);
bool aiter_mla_non_causal(const SelectorContext& context, const BackendClass& backend);
bool cpu_kv_dtype(const SelectorContext& context, const BackendClass& backend,
                  std::string_view kv_dtype);
void rocm_segmented_combination(const SelectorContext& context, const BackendClass& backend,
                                const SelectorConfig& config, Verdict& verdict);
void aiter_mla_validation(const SelectorContext& context, const BackendClass& backend,
                          const SelectorConfig& config, Verdict& verdict);
std::optional<std::vector<std::string>> aiter_flash_attn_layouts(const SelectorContext& context,
                                                                 const BackendClass& backend);
std::optional<std::vector<std::string>> aiter_unified_layouts(const SelectorContext& context,
                                                              const BackendClass& backend);
std::optional<std::vector<std::string>> minimax_m3_layouts(const SelectorContext& context,
                                                           const BackendClass& backend);
std::optional<std::vector<std::string>> octave_layouts(const SelectorContext& context,
                                                       const BackendClass& backend);

}  // namespace kernelpath::engines::vllm
