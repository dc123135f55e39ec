#pragma once

#include "config/model_config.h"
#include "engines/resolution.h"
#include "engines/trtllm/arguments.h"
#include "engines/trtllm/fmha_libraries.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::trtllm {

// The dtype of the KV cache, and who decided it.
struct KvDtypeDecision {
  DataType type = DataType::kBf16;
  std::string asked;  // kv_cache_config.dtype, lower case
  std::string rule;   // TRT-KV-DTYPE-…
  std::string reason;
  std::optional<EngineError> error;
};

// The values of kv_cache_config.dtype, lower case.
std::span<const std::string_view> kv_dtype_names();

// kv_cache_config.dtype, then the checkpoint's KV algorithm, then the dtype of the model.
// Source: llmapi/llm_args.py, 00043967 (field check, sync); _torch/model_config.py, 008e0af8.
KvDtypeDecision kv_cache_dtype(const config::ModelConfig& model, const Arguments& arguments,
                               DataType model_dtype);
void append_steps(const KvDtypeDecision& decision, std::vector<Step>& steps);

}  // namespace kernelpath::engines::trtllm
