#pragma once

#include "engines/resolution.h"
#include "json/value.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::engines::trtllm {

// One argument default that a model class returns: the field's dotted path, and its value as the
// engine would print it. Source: model classes' default overrides (several files).
struct ModelDefault {
  std::string_view architecture;
  std::string_view path;   // "kv_cache_config.enable_block_reuse"
  std::string_view value;  // "false", "64", "FLASHINFER"
  std::string_view file;   // below tensorrt_llm/_torch/models/
};

std::span<const ModelDefault> model_defaults();

// One argument after the merge.
struct MergedDefault {
  std::string path;
  std::string value;
  bool from_model = false;  // false: the user set the field, and the user's value stays
  std::string model_value;
  std::string file;
};

// The defaults of the *outer* class for `architecture`, merged under what the user set (dotted
// path, value). A wrapper class has none of its inner model's defaults unless it delegates.
std::vector<MergedDefault> merge_model_defaults(
    std::string_view architecture, std::span<const std::pair<std::string, std::string>> user);
void append_steps(std::span<const MergedDefault> merged, std::vector<Step>& steps);

// Deep merge: an object of `defaults` fills what `user` does not set (null counts as not set); any
// other value of the user's wins whole. Source: _torch/models/modeling_utils.py.
json::Value deep_merge(const json::Value& user, const json::Value& defaults);

// attn_backend after the merge, and the inner FlashInfer kernel that the model pins.
struct BackendNameDecision {
  std::string name;  // as it goes into dispatch, in the spelling it was given
  bool from_model_default = false;
};
BackendNameDecision effective_backend_name(std::string_view architecture,
                                           const std::string* user_backend);

// The inner kernel of `architecture` on the FLASHINFER backend: "fa2", or what its layers set after
// construction. Source: _torch/models/modeling_gemma4.py.
std::string_view flashinfer_kernel_of(std::string_view architecture);

}  // namespace kernelpath::engines::trtllm
