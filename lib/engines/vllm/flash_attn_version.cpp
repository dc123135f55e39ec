#include "engines/vllm/flash_attn_version.h"

#include "engines/vllm/profile.h"

#include <string>

namespace kernelpath::engines::vllm {
namespace {

constexpr int kBlackwell = 10;
constexpr std::int64_t kLargestFa3Head = 256;
constexpr std::int64_t kLargestTmemHead = 128;  // of FA4 on Blackwell, apart from the exceptions

int default_version(const Machine& machine) {
  if (machine.family(9) && flash_attn_supported(machine, 3)) return 3;
  if (machine.family(10) && flash_attn_supported(machine, 4)) return 4;
  return 2;
}

// Some cases that FA3 lacks on Hopper run on FA4.
bool upgrades_to_4(const SelectorContext& context, const FlashAttnQuestion& question) {
  if (question.head_size && *question.head_size > kLargestFa3Head) return true;
  if (question.has_sinks && question.head_size && question.head_size_v &&
      *question.head_size != *question.head_size_v) {
    return true;
  }
  return context.settings.model && context.settings.model->is_diffusion;
}

// What keeps the kernel for head size 256 from being used.
bool hd256_falls_back(const SelectorContext& context, const FlashAttnQuestion& question) {
  if (!question.supports_hd256) return true;
  const SelectorSettings& settings = context.settings;
  if (question.has_sinks || question.requires_softcap) return true;
  if (settings.model && settings.model->has_softcap) return true;
  if (context.profile.is_quantized(settings.run_kv_dtype)) return true;
  if (question.kv_block_size && *question.kv_block_size % kHd256PageSize != 0) return true;
  if (settings.model && settings.model->is_mm_prefix_lm) return true;
  if (settings.model && settings.model->rswa_window) return true;
  return settings.dcp > 1;
}

// Head sizes above 128 do not fit Blackwell's tensor memory, with few exceptions.
bool exceeds_tensor_memory(const SelectorContext& context, const FlashAttnQuestion& question) {
  if (context.machine.capability.major < kBlackwell || !question.head_size) return false;
  const std::int64_t head_size = *question.head_size;
  if (head_size <= kLargestTmemHead) return false;
  if (!context.profile.at_least(0, 33)) return head_size != 192;
  if (head_size == 256) return question.head_size_v.value_or(256) != 256;
  return !(head_size == 192 && question.head_size_v == 128);
}

}  // namespace

bool flash_attn_supported(const Machine& machine, int version) {
  if (machine.platform != hardware::Platform::kCuda) return false;
  switch (version) {
    case 2:
      return machine.packages.flash_attn_2 &&
             machine.capability >= hardware::Capability{.major = 8, .minor = 0};
    case 3:
      return machine.packages.flash_attn_3 && machine.family(9);
    case 4:
      return flash_attn_4_missing(machine).empty();
    default:
      return false;
  }
}

std::string_view flash_attn_4_missing(const Machine& machine) {
  if (!machine.packages.flash_attn_4) {
    return "FA4 is unavailable due to: vllm.vllm_flash_attn.cute.interface not found";
  }
  if (machine.family(9) || machine.family(10) || machine.family(11)) return {};
  return "FA4 is only supported on devices with compute capability 9.x, 10.x, or 11.x";
}

bool uses_hd256_kernel(const Machine& machine, std::optional<std::int64_t> head_size,
                       std::optional<std::int64_t> head_size_v) {
  if (head_size != 256 || head_size_v.value_or(256) != 256) return false;
  return machine.family(10) || machine.family(11);
}

std::optional<int> flash_attn_version(const SelectorContext& context,
                                      const FlashAttnQuestion& question) {
  const Machine& machine = context.machine;
  if (machine.platform != hardware::Platform::kCuda) return std::nullopt;
  int version = default_version(machine);
  if (context.settings.flash_attn_version) {
    version = static_cast<int>(*context.settings.flash_attn_version);
  }
  if (machine.capability.major >= kBlackwell && version == 3) {
    version = flash_attn_supported(machine, 4) ? 4 : 2;
  }
  if (question.requires_alibi && version >= 3) version = 2;
  if (version == 3 && machine.family(9) && flash_attn_supported(machine, 4) &&
      upgrades_to_4(context, question)) {
    version = 4;
  }
  if (context.settings.batch_invariant && version == 4) version = 2;
  if (version == 4 && context.profile.at_least(0, 33) &&
      uses_hd256_kernel(machine, question.head_size, question.head_size_v) &&
      hd256_falls_back(context, question)) {
    version = 2;
  }
  if (version == 4 && exceeds_tensor_memory(context, question)) version = 2;
  if (!flash_attn_supported(machine, version)) return std::nullopt;
  return version;
}

bool flash_attn_takes_kv_dtype(const SelectorContext& context, std::string_view kv_dtype,
                               const FlashAttnQuestion& question) {
  if (kv_dtype == "fp8_e5m2") return false;
  const std::optional<int> version = flash_attn_version(context, question);
  if (context.machine.family(9)) {
    return version == 3 || (version == 4 && question.head_size.value_or(512) == 512);
  }
  return version == 4 && context.machine.family(10);
}

bool flash_attn_supports_mla(const Machine& machine) { return flash_attn_supported(machine, 3); }

}  // namespace kernelpath::engines::vllm
