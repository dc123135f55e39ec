#include "engines/vllm/kernel_blocks.h"

#include "engines/vllm/backend_rules.h"
#include "engines/vllm/flash_attn_version.h"
#include "engines/vllm/profile.h"
#include "engines/vllm/validate.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::int64_t kSm90Fp8PageSize = 64;
constexpr std::int64_t kSm90Fp8HeadSize = 512;
constexpr std::int64_t kFlashMlaPage = 64;

bool asks_by(const BackendClass& backend, BlockSizesRule rule) {
  return backend.block_sizes.rule == rule;
}

// The page that a special kernel of FlashAttention 4 insists on for this layer.
std::optional<std::int64_t> flash_attn_page(const SelectorContext& context, const KvSpec& spec) {
  if (context.machine.family(9) && spec.quant_mode == "FP8_PER_TENSOR" &&
      spec.head_size == kSm90Fp8HeadSize &&
      flash_attn_version(context, {.head_size = spec.head_size}) == 4) {
    return kSm90Fp8PageSize;
  }
  const FlashAttnQuestion question = {
      .head_size = spec.head_size, .head_size_v = spec.head_size_v, .supports_hd256 = true};
  if (uses_hd256_kernel(context.machine, spec.head_size, spec.head_size_v) &&
      flash_attn_version(context, question) == 4) {
    return kHd256PageSize;
  }
  return std::nullopt;
}

std::optional<BlockSize> common_size(BlockSize a, BlockSize b) {
  if (a.multiple && b.multiple) return BlockSize{std::lcm(a.size, b.size), true};
  if (a.multiple) return b.size % a.size == 0 ? std::optional(b) : std::nullopt;
  if (b.multiple) return a.size % b.size == 0 ? std::optional(a) : std::nullopt;
  return a == b ? std::optional(a) : std::nullopt;
}

std::vector<BlockSize> composite_sizes(const SelectorContext& context, const BackendClass& backend,
                                       const KvSpec& spec) {
  if (backend.reported_name == "TRITON_FLASHINFER") return kernel_block_sizes(context, backend);
  std::vector<BlockSize> sizes;
  for (const BlockSize general : kernel_block_sizes_of(context, *backend.general, &spec)) {
    for (const BlockSize causal : kernel_block_sizes_of(context, *backend.causal, &spec)) {
      const std::optional<BlockSize> common = common_size(general, causal);
      if (common && std::ranges::find(sizes, *common) == sizes.end()) sizes.push_back(*common);
    }
  }
  return sizes;
}

// Every size is one that the cache's own granularity allows; a multiple needs no listing.
bool all_take(const SelectorContext& context, std::span<const KernelBlockAsker> askers,
              std::int64_t block_size) {
  return std::ranges::all_of(askers, [&](const KernelBlockAsker& asker) {
    const auto sizes = kernel_block_sizes_of(context, *asker.backend, asker.spec);
    return std::ranges::any_of(sizes, [&](const BlockSize& size) {
      return size.multiple ? block_size % size.size == 0 : block_size == size.size;
    });
  });
}

}  // namespace

std::vector<BlockSize> indexer_block_sizes(const SelectorContext& context,
                                           const BackendClass& /*backend*/) {
  if (context.machine.platform != hardware::Platform::kRocm) return {{.size = 64}};
  if (context.profile.at_least(0, 33)) return {{.size = 1}, {.size = 16, .multiple = true}};
  return {{.size = 1}, {.size = 64}};
}

std::vector<BlockSize> pooled_indexer_block_sizes(const SelectorContext& context,
                                                  const BackendClass& /*backend*/) {
  // Counted in stored entries; a layer's spec says how many tokens one stands for.
  if (context.machine.family(12)) return {{.size = 64}};
  return {{.size = 32}, {.size = 64}};
}

std::vector<BlockSize> kernel_block_sizes_of(const SelectorContext& context,
                                             const BackendClass& backend, const KvSpec* spec) {
  if (spec == nullptr || !context.profile.at_least(0, 33)) {
    return kernel_block_sizes(context, backend);
  }
  if (asks_by(backend, flash_attn_block_sizes)) {
    if (const auto page = flash_attn_page(context, *spec)) return {{.size = *page}};
    return {{.size = 16, .multiple = true}};
  }
  if (asks_by(backend, flashmla_sparse_block_sizes) && spec->quant_mode != "NONE" &&
      context.machine.family(10)) {
    return {{.size = kFlashMlaPage}};
  }
  if (asks_by(backend, composite_block_sizes)) return composite_sizes(context, backend, *spec);
  std::vector<BlockSize> sizes = kernel_block_sizes(context, backend);
  if (asks_by(backend, pooled_indexer_block_sizes)) {
    for (BlockSize& size : sizes) size.size *= spec->tokens_per_state;
  }
  return sizes;
}

std::optional<std::int64_t> common_kernel_block(const SelectorContext& context,
                                                std::int64_t block_size,
                                                std::span<const KernelBlockAsker> askers) {
  if (all_take(context, askers, block_size)) return block_size;
  std::set<std::int64_t, std::greater<>> listed;
  for (const KernelBlockAsker& asker : askers) {
    for (const BlockSize& size : kernel_block_sizes_of(context, *asker.backend, asker.spec)) {
      if (!size.multiple && block_size % size.size == 0) listed.insert(size.size);
    }
  }
  for (const std::int64_t size : listed) {
    if (all_take(context, askers, size)) return size;
  }
  return std::nullopt;
}

std::int64_t smallest_kernel_block(const std::vector<BlockSize>& sizes) {
  if (sizes.empty()) return 0;
  return std::ranges::min_element(sizes, {}, &BlockSize::size)->size;
}

}  // namespace kernelpath::engines::vllm
