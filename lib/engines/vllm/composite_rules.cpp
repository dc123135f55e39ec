// Composites: image-mask batches on one backend, causal ones on another.
// Source: v1/attention/backends/composite.py, triton_flash_attn.py, triton_flashinfer.py.

#include "base/assert.h"
#include "engines/vllm/backend_rules.h"
#include "engines/vllm/profile.h"
#include "engines/vllm/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace kernelpath::engines::vllm {
namespace {

// TRITON_FLASHINFER is for data-centre Blackwell, with FlashInfer's largest kernel block;
// TRITON_FLASH_ATTN leaves both to its children. Both list their head sizes.
constexpr std::string_view kTritonFlashInfer = "TRITON_FLASHINFER";
constexpr std::int64_t kTritonFlashInferBlock = 64;

template <class Ask>
bool both(const BackendClass& backend, Ask ask) {
  KERNELPATH_ASSERT(backend.general != nullptr && backend.causal != nullptr);
  return ask(*backend.general) && ask(*backend.causal);
}

bool both_say_yes(const SelectorContext& context, const BackendClass& backend, Question question) {
  return both(backend, [&](const BackendClass& child) { return asks(context, child, question); });
}

std::optional<BlockSize> common_block(BlockSize a, BlockSize b) {
  if (a.multiple && b.multiple) return BlockSize{std::lcm(a.size, b.size), true};
  if (a.multiple) return b.size % a.size == 0 ? std::optional(b) : std::nullopt;
  if (b.multiple) return a.size % b.size == 0 ? std::optional(a) : std::nullopt;
  return a == b ? std::optional(a) : std::nullopt;
}

}  // namespace

bool composite_dtype(const SelectorContext& context, const BackendClass& backend,
                     std::string_view dtype) {
  return both(backend,
              [&](const BackendClass& child) { return takes_dtype(context, child, dtype); });
}

bool composite_kv_dtype(const SelectorContext& context, const BackendClass& backend,
                        std::string_view kv_dtype) {
  return both(backend,
              [&](const BackendClass& child) { return takes_kv_dtype(context, child, kv_dtype); });
}

bool composite_head_size(const SelectorContext& context, const BackendClass& backend,
                         std::int64_t head_size) {
  const auto& listed = backend.head_sizes_listed;
  if (!listed.empty() && std::find(listed.begin(), listed.end(), head_size) == listed.end()) {
    return false;
  }
  return both(backend, [&](const BackendClass& child) {
    return takes_head_size(context, child, head_size);
  });
}

bool composite_capability(const SelectorContext& context, const BackendClass& backend) {
  if (backend.reported_name == kTritonFlashInfer && !context.machine.family(10)) return false;
  return both(backend, [&](const BackendClass& child) { return takes_capability(context, child); });
}

bool composite_mm_prefix(const SelectorContext& context, const BackendClass& backend) {
  // The causal child never sees a batch with an image mask.
  return asks(context, *backend.general, Question::kMmPrefix);
}

bool composite_sliding_window(const SelectorContext& context, const BackendClass& backend) {
  return both_say_yes(context, backend, Question::kSlidingWindow);
}

bool composite_rswa(const SelectorContext& context, const BackendClass& backend) {
  return both_say_yes(context, backend, Question::kRswa);
}

std::vector<BlockSize> composite_block_sizes(const SelectorContext& context,
                                             const BackendClass& backend) {
  std::vector<BlockSize> sizes;
  if (backend.reported_name == kTritonFlashInfer) {
    const bool taken = both(backend, [&](const BackendClass& child) {
      return takes_block_size(context, child, kTritonFlashInferBlock);
    });
    if (taken) sizes.push_back({.size = kTritonFlashInferBlock});
    return sizes;
  }
  for (const BlockSize general : kernel_block_sizes(context, *backend.general)) {
    for (const BlockSize causal : kernel_block_sizes(context, *backend.causal)) {
      const auto common = common_block(general, causal);
      if (common && std::find(sizes.begin(), sizes.end(), *common) == sizes.end()) {
        sizes.push_back(*common);
      }
    }
  }
  return sizes;
}

bool composite_block_size(const SelectorContext& context, const BackendClass& backend,
                          std::int64_t block_size) {
  const std::vector<BlockSize> sizes = composite_block_sizes(context, backend);
  return std::any_of(sizes.begin(), sizes.end(),
                     [&](const BlockSize& size) { return block_size % size.size == 0; });
}

std::optional<std::vector<std::string>> composite_layouts(const SelectorContext& context,
                                                          const BackendClass& backend) {
  const std::array<const BackendClass*, 2> children = {backend.general, backend.causal};
  return common_layouts(context, children);
}

void composite_combination(const SelectorContext& context, const BackendClass& backend,
                           const SelectorConfig& config, Verdict& verdict) {
  for (const BackendClass* child : {backend.general, backend.causal}) {
    if (child->combination == nullptr) continue;
    SelectorConfig asked = config;
    asked.use_mm_prefix = config.use_mm_prefix && child == backend.general;
    Verdict own;
    child->combination(context, *child, asked, own);
    if (own.admitted()) continue;
    verdict.fault_type = own.fault_type;
    verdict.fault_text = own.fault_text;
    for (const std::string& reason : own.reasons) {
      verdict.reasons.push_back(fmt::format("{}: {}", child->reported_name, reason));
    }
    return;
  }
}

}  // namespace kernelpath::engines::vllm
