/* Built for another ABI. Everything after the version is garbage and must not be read. */
#include "registry/provider_abi.h"

const kernelpath_provider* kernelpath_provider_entry(void) {
  static const uint32_t version_only = KERNELPATH_PROVIDER_ABI_VERSION + 41;
  return (const kernelpath_provider*)(const void*)&version_only;
}
