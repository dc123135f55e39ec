#include "engines/sglang/rules.h"

#include <array>

namespace kernelpath::engines::sglang {
namespace {

constexpr std::string_view kRegistryFile = "sglang/srt/models/registry.py";
constexpr std::string_view kModelConfigFile = "sglang/srt/configs/model_config.py";
constexpr std::string_view kModelFile = "sglang/srt/arg_groups/model_hook.py";

constexpr auto kRules = std::to_array<RuleInfo>({
    {"SGL-CLASS", "The class that serves the model.",
     "The first architecture of config.json that the registry knows decides.", "", kRegistryFile,
     kRulesVersion},
    {"SGL-CLASS-EMBEDDING", "An embedding checkpoint runs on the embedding class of its family.",
     "Its model_type names it.", "", kRegistryFile, kRulesVersion},
    {"SGL-CLASS-MIXTRAL", "A quantized Mixtral runs on a class of its own.",
     "Its experts are stored apart.", "", kRegistryFile, kRulesVersion},
    {"SGL-CLASS-NO-GATE", "Whether the Transformers library can serve the model is not checked.",
     "It names no class for it.", "", kRegistryFile, kRulesVersion},
    {"SGL-CLASS-TRANSFORMERS", "The Transformers library's own modelling code runs the model.",
     "The engine has no class for the architecture, or --model-impl asks for it.",
     "Expect another speed: kernels of the model itself are not the engine's.", kRegistryFile,
     kRulesVersion},
    {"SGL-CLASS-UNKNOWN", "No class for the architecture.",
     "Neither the registry nor the Transformers library can serve it.",
     "Use a release that has it, or --model-impl.", kRegistryFile, kRulesVersion},
    {"SGL-MODEL-GEMMA-DTYPE", "Gemma runs in bfloat16 where float16 was stated.",
     "Its activations exceed float16.", "", kModelConfigFile, kRulesVersion},
    {"SGL-MODEL-HEAD-DIM", "The configuration class refuses to name one head size.",
     "The layers of the checkpoint differ in it.", "Serve the multimodal checkpoint.",
     kModelConfigFile, kRulesVersion},
    {"SGL-MODEL-LONG-CONTEXT", "The context length is longer than the model's.",
     "Positions beyond it were never trained.",
     "Lower --context-length, or set SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1.",
     kModelConfigFile, kRulesVersion},
    {"SGL-MODEL-MULTIMODAL-OFF", "The model serves text only.",
     "Multimodality of this family is off by default, or the checkpoint has no tower.",
     "Set --enable-multimodal.", kModelConfigFile, kRulesVersion},
    {"SGL-MODEL-QUANT-COMPATIBLE",
     "The quantization asked for stands in place of the checkpoint's.", "The two are compatible.",
     "", kModelConfigFile, kRulesVersion},
    {"SGL-MODEL-QUANT-CONVERTIBLE", "A faster kernel could run this checkpoint.",
     "An explicit --quantization excludes it.", "Leave --quantization out.", kModelConfigFile,
     kRulesVersion},
    {"SGL-MODEL-QUANT-MISMATCH", "The quantization asked for is not the checkpoint's.",
     "The weights are stored in another form.", "Leave --quantization out.", kModelConfigFile,
     kRulesVersion},
    {"SGL-MODEL-QUANT-ROCM", "The quantization is refused on ROCm.", "It has no kernels there.",
     "Use another checkpoint.", kModelConfigFile, kRulesVersion},
    {"SGL-MODEL-QUANT-SLOW", "The quantization is not fully optimized.",
     "Its kernels may be slower than none.", "", kModelConfigFile, kRulesVersion},
    {"SGL-MODEL-QUANT-UNKNOWN", "The checkpoint's quantization is unknown.", "No class reads it.",
     "Use another checkpoint or release.", kModelConfigFile, kRulesVersion},
    {"SGL-ACCEPT-EXAONE", "EXAONE refuses the attention backend.",
     "Its windows are written for some backends.", "Choose one that the message lists.", kModelFile,
     kRulesVersion},
    {"SGL-ACCEPT-GEMMA4", "Gemma 4 refuses the attention backend.",
     "Its layers differ in head size.", "Choose one that the message lists.", kModelFile,
     kRulesVersion},
    {"SGL-ACCEPT-GPT-OSS", "gpt-oss refuses the attention backend.",
     "Attention sinks are written for some backends.", "Choose one that the message lists.",
     kModelFile, kRulesVersion},
    {"SGL-ACCEPT-LFM2", "LFM2 refuses Triton.",
     "Its first layer may have no attention, from which Triton takes its shapes.",
     "Choose flashinfer.", kModelFile, kRulesVersion},
    {"SGL-ACCEPT-LLAMA4", "Llama 4 refuses the attention backend.",
     "Its chunked layers are written for some backends.", "Choose one that the message lists.",
     kModelFile, kRulesVersion},
    {"SGL-ACCEPT-OLMO2", "OLMo 3 refuses FlashInfer.",
     "The engine says that it degrades these models much.", "Choose another backend.", kModelFile,
     kRulesVersion},
    {"SGL-AITER-FUSION", "AITER's fused all-reduce is on.", "The model's class can use it.", "",
     kModelFile, kRulesVersion},
    {"SGL-ALL-REDUCE-FUSION", "FlashInfer's fused all-reduce is on.",
     "The model's class and the device can use it.", "", kModelFile, kRulesVersion},
    {"SGL-ALL-REDUCE-FUSION-OFF", "FlashInfer's fused all-reduce is off.", "An option says so.", "",
     kModelFile, kRulesVersion},
    {"SGL-KIMI-LINEAR", "Kimi's linear layers decode on Triton.",
     "The other kernels need another type of state.", "", kModelFile, kRulesVersion},
    {"SGL-MLA-CP", "MLA with prefill context parallelism sets what it needs.",
     "It is verified for one arrangement of ranks.", "", kModelFile, kRulesVersion},
    {"SGL-MLA-PIECEWISE", "Prefill runs MLA in its absorbed form.",
     "The prefill graph asks for it.", "", kModelFile, kRulesVersion},
});

}  // namespace

std::span<const RuleInfo> model_rules() { return kRules; }

}  // namespace kernelpath::engines::sglang
