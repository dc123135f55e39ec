#include "engines/trtllm/rules_engine.h"

#include "base/assert.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::trtllm {
namespace {

constexpr std::string_view kArgs = "tensorrt_llm/llmapi/llm_args.py";
constexpr std::string_view kArgsVersion = "00043967";
constexpr std::string_view kResources = "tensorrt_llm/_torch/pyexecutor/resource_manager.py";
constexpr std::string_view kUnrecorded = "commit not recorded";
constexpr std::string_view kConfig = "tensorrt_llm/_torch/model_config.py";
constexpr std::string_view kConfigVersion = "008e0af8";
constexpr std::string_view kManager = "tensorrt_llm/_torch/attention/backends/fmha/manager.py";

constexpr auto kRules = std::to_array<RuleInfo>({
    {"TRT-DEVICE", "The PyTorch backend runs on NVIDIA GPUs only.",
     "Its attention, GEMM and communication ops are CUDA code.",
     "Choose an NVIDIA device (--list devices).", kConfig, kConfigVersion},
    {"TRT-ARG-FINAL", "The final value of an argument, and who set it.",
     "A model class may set what the user left alone; the user's value always wins.", "", kArgs,
     kArgsVersion},
    {"TRT-SEQ-OVER-MODEL", "max_seq_len is larger than the length that the model states.",
     "Positions behind the model's length were not trained; how the engine treats the larger value "
     "was not read.",
     "Leave max_seq_len out, or give at most the model's length.", kArgs, kArgsVersion},
    {"TRT-ARG-UNREAD", "An option that no argument of this engine stands for has no effect.",
     "The engine's LLM API has no such argument.", "Leave the option out for this engine.", kArgs,
     kArgsVersion},
    {"TRT-KV-DTYPE-SYNC", "An fp8 or nvfp4 cache dtype replaces the checkpoint's KV algorithm.",
     "kv_cache_config.dtype is copied into the quantisation config for these names only.", "",
     kArgs, kArgsVersion},
    {"TRT-KV-DTYPE-UNSYNCED",
     "Another explicit cache dtype leaves the checkpoint's KV algorithm as it is, with a warning.",
     "Only fp8, fp8_ds_mla and nvfp4 are copied into the quantisation config.",
     "Leave the dtype at auto, or ask for fp8 or nvfp4.", kArgs, kArgsVersion},
    {"TRT-KV-DTYPE-CHECKPOINT", "auto takes the cache dtype that the checkpoint states.",
     "The checkpoint's quantisation config holds a KV algorithm.", "", kConfig, kConfigVersion},
    {"TRT-KV-DTYPE-MODEL", "auto takes the dtype of the model.",
     "Neither the user nor the checkpoint states a cache dtype.", "", kConfig, kConfigVersion},
    {"TRT-KV-DTYPE", "The cache dtype is none that the engine knows.",
     "The field is checked against auto, fp8, fp8_ds_mla, nvfp4 and torch's names.",
     "Use auto, fp8, nvfp4, bfloat16 or float16.", kArgs, kArgsVersion},
    {"TRT-LAYER-NO-ATTENTION", "A layer that no attention backend serves.",
     "State-space and linear-attention layers have modules and caches of their own.", "", kConfig,
     kConfigVersion},
    {"TRT-KERNEL-BY-BATCH", "Other batch sizes run another inner kernel.",
     "Libraries refuse small or mixed batches; the choice is cached per bucket of batch sizes.", "",
     kManager, "2c9ce61b"},
    {"TRT-WEIGHTS", "The weights of one rank.",
     "Counted from the checkpoint's files where they are there, else from the geometry.", "",
     kResources, kUnrecorded},
    {"TRT-WEIGHTS-UNKNOWN", "The weights cannot be counted from what the config states.",
     "A size is missing, and no weight file or index is beside the config.",
     "Give the model's folder, with its index or its safetensors files.", kResources, kUnrecorded},
    {"TRT-KV-UNKNOWN", "The KV cache cannot be sized from what the config states.",
     "A size is missing or has no meaning for a cache.", "Check the fields that the reason names.",
     kResources, kUnrecorded},
    {"TRT-KV-POOL-OVER-MEMORY", "The KV pool that the engine budgets does not fit the device.",
     "The budget divides by an estimate that is too small where KV heads are replicated over "
     "ranks.",
     "Lower kv_cache_config.free_gpu_memory_fraction, or set kv_cache_config.max_tokens.",
     kResources, kUnrecorded},
    {"TRT-KV-BATCH-OVER-POOL",
     "The sequences of one batch do not fit the KV pool together at the context length.",
     "The pool holds a fixed number of tokens, and each sequence grows to its full length.",
     "Lower --batch-size or --max-model-len, use a smaller cache dtype, or more ranks.", kResources,
     kUnrecorded},
    {"TRT-WEIGHTS-OVER-MEMORY", "The weights of one rank do not fit the device.",
     "The weights are allocated before anything else.",
     "Use more ranks (--tp, --pp), a device with more memory, or a smaller quantisation.",
     kResources, kUnrecorded},
});

}  // namespace

std::span<const RuleInfo> engine_rules() { return kRules; }

void append_engine_step(StepDraft draft, std::vector<Step>& steps) {
  const auto* rule = std::find_if(kRules.begin(), kRules.end(),
                                  [&](const RuleInfo& row) { return row.id == draft.rule; });
  KERNELPATH_ASSERT(rule != kRules.end());
  steps.push_back(step_of(std::move(draft), *rule, kProject));
}

}  // namespace kernelpath::engines::trtllm
