#include "engines/vllm/flashinfer_support.h"

#include "engines/vllm/profile.h"

namespace kernelpath::engines::vllm {

bool supports_trtllm(const SelectorContext& context, AttentionPhase phase) {
  const Machine& machine = context.machine;
  if (machine.platform != hardware::Platform::kCuda) return false;
  if (context.settings.batch_invariant || !machine.packages.flashinfer_kernels) return false;
  // Exactly 9.0, not the family; 12.x came later.
  const bool xqa = machine.capability == hardware::Capability{.major = 9, .minor = 0} ||
                   (context.profile.at_least(0, 33) && machine.family(12));
  if (xqa) return phase == AttentionPhase::kDecode;
  return machine.family(10);
}

bool can_use_trtllm(const SelectorContext& context, std::int64_t num_heads,
                    std::int64_t num_kv_heads, AttentionPhase phase) {
  if (context.settings.use_trtllm_attention == false) return false;
  return supports_trtllm(context, phase) && num_kv_heads > 0 && num_heads % num_kv_heads == 0;
}

}  // namespace kernelpath::engines::vllm
