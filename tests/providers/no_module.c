/* Does not say which module it stands for. */
#include "registry/provider_abi.h"

static int start(const kernelpath_registrar* registrar) {
  (void)registrar;
  return 0;
}

const kernelpath_provider* kernelpath_provider_entry(void) {
  static const kernelpath_provider provider = {KERNELPATH_PROVIDER_ABI_VERSION, "", start};
  return &provider;
}
