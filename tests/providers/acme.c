/* The sample provider: a module with a class, a multimodal class with its encoder, and a drafter.
 */
#include "registry/provider_abi.h"

static int start(const kernelpath_registrar* registrar) {
  void* context = registrar->context;
  int status = registrar->model_class(context, "LlamaForCausalLM", "AcmeLlama");
  if (status != 0) return status;
  status = registrar->model_class(context, "AcmeVLForConditionalGeneration", "AcmeVL");
  if (status != 0) return status;
  status = registrar->vision_encoder(context, "AcmeVL", "AcmeVisionModel", "AcmeVisionBase");
  if (status != 0) return status;
  return registrar->draft_builder(context, "DFLASH", "acme_dflash");
}

const kernelpath_provider* kernelpath_provider_entry(void) {
  static const kernelpath_provider provider = {KERNELPATH_PROVIDER_ABI_VERSION, "acme.models",
                                               start};
  return &provider;
}
