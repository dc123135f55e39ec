/* Ignores that its registration was refused and reports success. */
#include "registry/provider_abi.h"

#include <stddef.h>

static int start(const kernelpath_registrar* registrar) {
  (void)registrar->model_class(registrar->context, "LlamaForCausalLM", NULL);
  return 0;
}

const kernelpath_provider* kernelpath_provider_entry(void) {
  static const kernelpath_provider provider = {KERNELPATH_PROVIDER_ABI_VERSION, "acme.null", start};
  return &provider;
}
