// MLA has no forward(): this must not compile. With KERNELPATH_CONTROL the right call stands in its
// place, so that a failure has no other cause.
#include "attention/layers.h"

void call(const kernelpath::attention::MlaAttention& layer, kernelpath::attention::Kernels& kernels,
          const kernelpath::attention::StepMetadata& metadata) {
#ifdef KERNELPATH_CONTROL
  layer.forward_mqa(kernels, metadata, {});
#else
  layer.forward(kernels, metadata, {});
#endif
}
