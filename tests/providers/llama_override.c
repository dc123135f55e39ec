/* Serves Llama by another class of the library, as a fork of a model would. */
#include "registry/provider_abi.h"

static int start(const kernelpath_registrar* registrar) {
  return registrar->model_class(registrar->context, "LlamaForCausalLM", "MistralForCausalLM");
}

const kernelpath_provider* kernelpath_provider_entry(void) {
  static const kernelpath_provider provider = {KERNELPATH_PROVIDER_ABI_VERSION, "override.models",
                                               start};
  return &provider;
}
