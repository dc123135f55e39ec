#pragma once

#include "engines/sglang/launch.h"

#include <optional>
#include <string>

namespace kernelpath::engines::sglang {

// What the worker builds after the arguments are resolved.
struct BuiltAttention {
  // The classes, outer ones around inner ones; empty where the engine would need a package that
  // nobody vouches for (the Ascend one, AITER), or where it refuses.
  std::string class_name = {};
  std::string prefill_class = {};
  std::string decode_class = {};
  std::string linear_class = {};  // of the layers without attention
};

// The storage type of the KV cache as torch names it; a refusal where the platform has none.
// `checkpoint_scales`: the loaded model's own word on its cache counts, too.
struct KvStorage {
  std::string torch_dtype = {};
  std::optional<Refusal> refusal = {};
};
KvStorage kv_storage(const Launch& launch, bool checkpoint_scales);

// Runs the factories of the resolved backends. Sets the launch's refusal at stage "build".
// Source: model_executor/model_runner.py, layers/attention/attention_registry.py.
BuiltAttention build_attention(Launch& launch, const std::string& kv_torch_dtype);

}  // namespace kernelpath::engines::sglang
