// A provider in C++ that lets an exception through the C interface.
#include "registry/provider_abi.h"

#include <stdexcept>

static int start(const kernelpath_registrar*) { throw std::runtime_error("acme exploded"); }

const kernelpath_provider* kernelpath_provider_entry(void) {
  static const kernelpath_provider provider = {KERNELPATH_PROVIDER_ABI_VERSION, "acme.throwing",
                                               start};
  return &provider;
}
