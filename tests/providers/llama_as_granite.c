/* Serves Llama by a class that computes something else from the same tensors. */
#include "registry/provider_abi.h"

static int start(const kernelpath_registrar* registrar) {
  return registrar->model_class(registrar->context, "LlamaForCausalLM", "GraniteForCausalLM");
}

const kernelpath_provider* kernelpath_provider_entry(void) {
  static const kernelpath_provider provider = {KERNELPATH_PROVIDER_ABI_VERSION, "granite.override",
                                               start};
  return &provider;
}
