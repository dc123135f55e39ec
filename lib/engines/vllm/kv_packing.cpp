// How a backend packs a page since 0.33. Source: customize_spec of v1/attention/backends/*.py.

#include "engines/vllm/kv_packing.h"

#include "base/rounding.h"
#include "engines/vllm/kernel_blocks.h"
#include "engines/vllm/profile.h"

#include <algorithm>
#include <array>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::int64_t kScaleBytes = 4;  // float32
constexpr std::int64_t kKernelPage = 64;
constexpr std::int64_t kStep5Page = 8;
constexpr std::int64_t kOctaveBlock = 64;  // elements of a key with one scale
constexpr std::int64_t kOctaveWideBits = 4;
constexpr std::int64_t kOctaveNarrowBits = 3;
constexpr std::int64_t kUltraQuantGroup = 16;  // elements that share a scale of one byte

bool per_token_head(const KvSpec& spec) { return spec.quant_mode.ends_with("_PER_TOKEN_HEAD"); }

void set_content(KvSpec& spec, std::int64_t bytes) {
  spec.content_bytes = bytes;
  spec.packed = true;
}

// Data of a head and one scale, per side; MLA has one side and still two scales.
void pack_token_scales(const SelectorContext& /*context*/, const BackendClass& /*backend*/,
                       KvSpec& spec) {
  if (spec.packed || !per_token_head(spec)) return;
  std::int64_t elements = spec.head_size + spec.head_size_v;
  if (spec.quant_mode == "INT4_PER_TOKEN_HEAD") {
    elements = spec.head_size / 2 + spec.head_size_v / 2;
  }
  set_content(spec, elements * dtype_bytes(spec.storage_dtype) + 2 * kScaleBytes);
}

// Keys and values in slots of their own.
void pack_nvfp4(const SelectorContext& /*context*/, const BackendClass& /*backend*/, KvSpec& spec) {
  if (spec.packed || spec.quant_mode != "NVFP4") return;
  spec.head_slots = 2 * spec.num_kv_heads;
  set_content(spec, nvfp4_head_bytes(spec.head_size) * dtype_bytes(spec.storage_dtype));
}

// One plane of keys, one of values.
void pack_planes(const SelectorContext& /*context*/, const BackendClass& /*backend*/,
                 KvSpec& spec) {
  if (spec.packed) return;
  spec.head_slots = 2;
  set_content(spec, spec.num_kv_heads * spec.head_size * dtype_bytes(spec.storage_dtype));
}

void pack_planes_if_shuffled(const SelectorContext& context, const BackendClass& backend,
                             KvSpec& spec) {
  if (context.machine.aiter_shuffled_cache) pack_planes(context, backend, spec);
}

void pack_turboquant(const SelectorContext& /*context*/, const BackendClass& /*backend*/,
                     KvSpec& spec) {
  if (spec.packed || !spec.quant_mode.starts_with("TURBOQUANT_")) return;
  std::string name = spec.quant_mode;
  std::ranges::transform(name, name.begin(), [](unsigned char letter) {
    return static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
  });
  set_content(spec, turboquant_slot_bytes(name, spec.head_size));
}

void pack_ultraquant(const SelectorContext& /*context*/, const BackendClass& /*backend*/,
                     KvSpec& spec) {
  if (spec.packed || spec.quant_mode != "ULTRAQUANT_4BIT") return;
  set_content(spec, spec.head_size + spec.head_size / kUltraQuantGroup);
}

// Keys and values of a head in one slot: codes of 4 bits for the rotary part of a key (unless it is
// compact), of 3 bits for its rest, of 3 or 4 bits for a value, then a scale of two bytes for each
// block of a key and one for the value. Source: v1/attention/ops/rocm_octave.py, OctaveFormat.
void pack_octave(const SelectorContext& context, const BackendClass& /*backend*/, KvSpec& spec) {
  if (spec.packed || !spec.quant_mode.starts_with("OCTAVE_")) return;
  const bool compact = spec.quant_mode.ends_with("_COMPACT");
  const std::int64_t value_bits = spec.quant_mode.starts_with("OCTAVE_K3V4") ? 4 : 3;
  const double share = context.settings.model ? context.settings.model->rotary_share : 1.0;
  const auto rotary = static_cast<std::int64_t>(static_cast<double>(spec.head_size) * share);
  const std::int64_t wide = compact ? 0 : rotary;
  const std::int64_t codes = wide * kOctaveWideBits / 8 +
                             (spec.head_size - wide) * kOctaveNarrowBits / 8 +
                             spec.head_size * value_bits / 8;
  const std::int64_t scales = (compact ? 1 : spec.head_size / kOctaveBlock) + 1;
  const std::int64_t step = compact ? 4 : 8;
  set_content(spec, round_up(codes + 2 * scales, step));
}

// ROCM_AITER_UNIFIED_ATTN undoes what its base class packs.
void pack_nothing(const SelectorContext& /*context*/, const BackendClass& /*backend*/,
                  KvSpec& /*spec*/) {}

// Sparse kernels read the cache as flat rows, in pages of so many of them.
void align_rows(KvSpec& spec, std::int64_t rows) {
  spec.stride_alignment = StrideAlignment{.size = rows * spec.content_bytes};
}

void pack_rows(const SelectorContext& /*context*/, const BackendClass& /*backend*/, KvSpec& spec) {
  align_rows(spec, 1);
}

void pack_pages(const SelectorContext& context, const BackendClass& backend, KvSpec& spec) {
  const std::vector<BlockSize> pages = kernel_block_sizes_of(context, backend, &spec);
  align_rows(spec, pages.empty() ? 1 : pages.front().size);
}

void pack_flashmla_sparse(const SelectorContext& context, const BackendClass& /*backend*/,
                          KvSpec& spec) {
  if (spec.quant_mode != "NONE" && !context.machine.family(10)) {
    spec.stride_alignment = StrideAlignment{.size = kKernelPage, .kernel_blocks = true};
    return;
  }
  align_rows(spec, 1);
}

void pack_step5(const SelectorContext& /*context*/, const BackendClass& /*backend*/, KvSpec& spec) {
  spec.stride_alignment = StrideAlignment{.size = kStep5Page, .kernel_blocks = true};
}

// Both children must agree; a difference is the engine's own error, and no pair has one.
void pack_composite(const SelectorContext& context, const BackendClass& backend, KvSpec& spec) {
  if (backend.general != nullptr) pack_spec(context, *backend.general, spec);
}

struct Named {
  std::string_view name;
  PackingRule rule;
};

constexpr auto kRules = std::to_array<Named>({
    {"TritonAttentionBackend.customize_spec", pack_token_scales},
    {"MLACommonBackend.customize_spec", pack_token_scales},
    {"CompositeAttentionBackend.customize_spec", pack_composite},
    {"FlashInferBackend.customize_spec", pack_nvfp4},
    {"MiniMaxM3SparseMSANvfp4Backend.customize_spec", pack_nvfp4},
    {"B12xPagedAttentionBackend.customize_spec", pack_planes},
    {"RocmAttentionBackend.customize_spec", pack_planes},
    {"AiterFlashAttentionBackend.customize_spec", pack_planes_if_shuffled},
    {"RocmAiterUnifiedAttentionBackend.customize_spec", pack_nothing},
    {"TurboQuantAttentionBackend.customize_spec", pack_turboquant},
    {"UltraQuantAttentionBackend.customize_spec", pack_ultraquant},
    {"RocmOctaveAttentionBackend.customize_spec", pack_octave},
    {"FlashMLASparseBackend.customize_spec", pack_flashmla_sparse},
    {"FlashAttnMLASparseBackend.customize_spec", pack_rows},
    {"FlashInferMLASparseSM90Backend.customize_spec", pack_rows},
    {"ROCMAiterMLASparseBackend.customize_spec", pack_rows},
    {"XPUMLASparseBackend.customize_spec", pack_rows},
    {"_FlashInferMLASparseBackendBase.customize_spec", pack_pages},
    {"Step5DSAAttentionBackend.customize_spec", pack_step5},
});

}  // namespace

PackingRule find_packing_rule(std::string_view name) {
  const auto* found = std::ranges::find(kRules, name, &Named::name);
  return found == kRules.end() ? nullptr : found->rule;
}

void pack_spec(const SelectorContext& context, const BackendClass& backend, KvSpec& spec) {
  if (backend.packing != nullptr) backend.packing(context, backend, spec);
}

void customize_spec(const SelectorContext& context, const BackendClass& backend, KvSpec& spec) {
  if (!context.profile.at_least(0, 33) || spec.is_state()) return;
  pack_spec(context, backend, spec);
  const std::vector<BlockSize> sizes = kernel_block_sizes_of(context, backend, &spec);
  const bool fixed = !sizes.empty() && std::ranges::none_of(sizes, &BlockSize::multiple);
  if (spec.stride_alignment || !fixed) return;
  const std::int64_t largest = std::ranges::max_element(sizes, {}, &BlockSize::size)->size;
  spec.stride_alignment = StrideAlignment{.size = largest, .kernel_blocks = true};
}

}  // namespace kernelpath::engines::vllm
