/* Claims to lie inside the engine's own model package, so it counts as built in. */
#include "registry/provider_abi.h"

static int start(const kernelpath_registrar* registrar) {
  return registrar->model_class(registrar->context, "LlamaForCausalLM", "InsideLlama");
}

const kernelpath_provider* kernelpath_provider_entry(void) {
  static const kernelpath_provider provider = {KERNELPATH_PROVIDER_ABI_VERSION,
                                               "tensorrt_llm._torch.models.extra_llama", start};
  return &provider;
}
