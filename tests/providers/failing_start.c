/* Registers something and then fails: nothing of it may count. */
#include "registry/provider_abi.h"

static int start(const kernelpath_registrar* registrar) {
  (void)registrar->model_class(registrar->context, "LlamaForCausalLM", "HalfLlama");
  return registrar->fail(registrar->context, "no licence for AcmeLlama");
}

const kernelpath_provider* kernelpath_provider_entry(void) {
  static const kernelpath_provider provider = {KERNELPATH_PROVIDER_ABI_VERSION, "acme.failing",
                                               start};
  return &provider;
}
