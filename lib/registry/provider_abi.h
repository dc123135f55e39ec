/*
 * kernelpath provider SDK: the C interface between kernelpath and an external model provider.
 *
 * A provider is a shared object (NAME.so) in a folder given with --custom-module-dirs. It tells
 * which classes serve which architectures, as a Python module of a custom model would do by its
 * decorators. It exports one function:
 *
 *   static int start(const kernelpath_registrar* registrar) {
 *     return registrar->model_class(registrar->context, "AcmeForCausalLM", "AcmeModel");
 *   }
 *   const kernelpath_provider* kernelpath_provider_entry(void) {
 *     static const kernelpath_provider provider = {KERNELPATH_PROVIDER_ABI_VERSION, "acme.models",
 *                                                  start};
 *     return &provider;
 *   }
 *
 * Build it with: cc -shared -fPIC -I KERNELPATH/lib/registry -o acme.so acme.c
 *
 * This header is plain C and needs no other header of kernelpath. Within one ABI version nothing
 * here changes; `abi_version` stays the first member of kernelpath_provider and the entry point
 * keeps its name and signature in all versions, so that kernelpath can tell the versions apart.
 */
/* C's own forms and names. NOLINTBEGIN(modernize-*,readability-identifier-naming) */
#ifndef KERNELPATH_REGISTRY_PROVIDER_ABI_H_
#define KERNELPATH_REGISTRY_PROVIDER_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KERNELPATH_PROVIDER_ABI_VERSION UINT32_C(1)

/* Longest name that kernelpath takes, in bytes without the final zero. */
#define KERNELPATH_PROVIDER_MAX_NAME 255

/*
 * What a provider may call while its start runs, and only then. Strings are UTF-8, end with a zero,
 * and are copied. Every call returns 0, or another value if kernelpath refuses it (a null, empty or
 * too long name); the refusal is kernelpath's error, whatever start returns afterwards.
 */
typedef struct kernelpath_registrar {
  void* context; /* first argument of each call */

  /* The class that serves an architecture. Order counts: the last external provider wins. */
  int (*model_class)(void* context, const char* architecture, const char* class_name);

  /*
   * The vision encoder of a class, for every architecture that the class has registered so far.
   * `base_class` may be null.
   */
  int (*vision_encoder)(void* context, const char* class_name, const char* encoder_class,
                        const char* base_class);

  /* The builder of the draft model for a speculative mode ("EAGLE3_ONE_MODEL"). */
  int (*draft_builder)(void* context, const char* mode, const char* builder);

  /* States why start is about to fail. Always returns 1, so that start can return it. */
  int (*fail)(void* context, const char* message);
} kernelpath_registrar;

typedef struct kernelpath_provider {
  uint32_t abi_version; /* KERNELPATH_PROVIDER_ABI_VERSION of the header it was built with */

  /*
   * Full name of the module that the provider stands for ("acme.models"). A name inside the
   * engine's own model package counts as built in: it fills empty slots and overwrites nothing.
   */
  const char* module;

  /* Registers everything; 0 for success. */
  int (*start)(const kernelpath_registrar* registrar);
} kernelpath_provider;

/* The one symbol that a provider exports. The result must stay valid until the process ends. */
typedef const kernelpath_provider* (*kernelpath_provider_entry_function)(void);

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const kernelpath_provider*
kernelpath_provider_entry(void);

#ifdef __cplusplus
}
#endif

#endif /* KERNELPATH_REGISTRY_PROVIDER_ABI_H_ */
/* NOLINTEND(modernize-*,readability-identifier-naming) */
