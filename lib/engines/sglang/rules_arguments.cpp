#include "engines/sglang/rules.h"

#include <array>

namespace kernelpath::engines::sglang {
namespace {

constexpr std::string_view kServerArgsFile = "sglang/srt/server_args.py";
constexpr std::string_view kPlatformFile = "sglang/srt/arg_groups/platform_hook.py";
constexpr std::string_view kParallelFile = "sglang/srt/arg_groups/parallel_hook.py";
constexpr std::string_view kResolutionsFile = "sglang/srt/arg_groups/resolution_hooks.py";
constexpr std::string_view kMegaMoeFile = "sglang/srt/arg_groups/mega_moe_hook.py";
constexpr std::string_view kPdDisaggregationFile =
    "sglang/srt/arg_groups/pd_disaggregation_hook.py";
constexpr std::string_view kValidationFile = "sglang/srt/arg_groups/validation_hook.py";
constexpr std::string_view kKvCacheFile = "sglang/srt/arg_groups/kv_cache_hook.py";
constexpr std::string_view kCudaGraphFile = "sglang/srt/arg_groups/cuda_graph_hook.py";
constexpr std::string_view kMemoryFile = "sglang/srt/arg_groups/memory_hook.py";

constexpr auto kRules = std::to_array<RuleInfo>({
    {"SGL-ARG-FINAL", "The final value of an argument, and who set it.",
     "Rules of the engine overwrite what the user or the default said.", "", kServerArgsFile,
     kRulesVersion},
    {"SGL-ARG-REFUSED", "A value is no value of the argument.",
     "Names, types and choices are checked before a model is looked at.",
     "Correct the value; --list settings has the arguments with their choices.", kServerArgsFile,
     kRulesVersion},
    {"SGL-ARG-UNREAD", "An option that no argument of this engine stands for has no effect.",
     "The engine has no such argument.", "Leave the option out for this engine.", kServerArgsFile,
     kRulesVersion},
    {"SGL-NO-CONFIG", "The model has no config.json.",
     "The engine reads no other description of a model.", "Give the folder of the checkpoint.",
     kServerArgsFile, kRulesVersion},
    {"SGL-DEVICE", "The engine has no platform for the device.",
     "Its platforms are CUDA, ROCm, CPU and others that this program does not follow.",
     "Use a device of NVIDIA or AMD, or a CPU.", kServerArgsFile, kRulesVersion},
    {"SGL-CLI-CHOICE", "The command line refuses a value.",
     "The option takes a fixed list of values.", "Take one of the values that the message lists.",
     kServerArgsFile, kRulesVersion},
    {"SGL-CLI-REMOVED", "The command line refuses the piecewise CUDA graph.",
     "The release removed it.", "Use breakable, full or disabled.", kServerArgsFile, kRulesVersion},
    {"SGL-DEVICE-DEFAULT", "The device is that of the machine.", "Nobody named one.", "",
     kServerArgsFile, kRulesVersion},
    {"SGL-CPU-BACKENDS", "A CPU takes the AMX attention and PyTorch's sampling.",
     "The kernels of other backends need a GPU.", "", kPlatformFile, kRulesVersion},
    {"SGL-DCP-BACKEND", "Decode context parallelism chose how ranks exchange partial results.",
     "The choice depends on the fabric and on the model.", "", kParallelFile, kRulesVersion},
    {"SGL-DCP-SIZE", "Decode context parallelism is refused.",
     "Its size does not divide the tensor-parallel ranks, or another option excludes it.",
     "Change --dcp-size, or leave the other option out.", kParallelFile, kRulesVersion},
    {"SGL-DEPRECATED-ALL-REDUCE",
     "An old switch of FlashInfer's all-reduce became an option with a value.",
     "The switch is deprecated.", "Use --flashinfer-allreduce-fusion-backend=auto.",
     kResolutionsFile, kRulesVersion},
    {"SGL-DEPRECATED-BACKEND", "An old name of an attention backend was replaced.",
     "The backend was renamed.", "Use the new name.", kResolutionsFile, kRulesVersion},
    {"SGL-DP-ATTENTION-ALIAS",
     "--enable-dp-attention became the size of attention data parallelism.",
     "The size is what the engine reads.", "", kResolutionsFile, kRulesVersion},
    {"SGL-DRAFT-QUANTIZATION", "The draft takes the target's quantization, or none.",
     "Nobody stated one for the draft.", "", kResolutionsFile, kRulesVersion},
    {"SGL-MEGA-MOE-ALIAS", "The MegaMoE runner became an all-to-all backend.",
     "It is selected there since it was renamed.", "", kMegaMoeFile, kRulesVersion},
    {"SGL-MEGA-MOE-DEVICE", "MegaMoE is refused on this device.",
     "Its kernels are written for SM90 and SM100.", "Choose another --moe-a2a-backend.",
     kMegaMoeFile, kRulesVersion},
    {"SGL-MEGA-MOE-OVERLAP", "MegaMoE excludes two-batch and single-batch overlap.",
     "Its kernel cannot be taken apart for them.", "Leave the overlap out.", kMegaMoeFile,
     kRulesVersion},
    {"SGL-PD-DECODE-CACHE", "A decode server runs without the radix cache.",
     "Its requests arrive with their cache.", "", kPdDisaggregationFile, kRulesVersion},
    {"SGL-PD-DEVICES", "No InfiniBand devices are named for the transfer.",
     "Mooncake looks for them by itself.", "", kValidationFile, kRulesVersion},
    {"SGL-PD-TRANSFER", "The transfer backend cannot serve the role.",
     "Not every one can split a cache, and a fake one has nothing to send.",
     "Choose another --disaggregation-transfer-backend.", kPdDisaggregationFile, kRulesVersion},
    {"SGL-PREFILL-ONLY-ARGUMENTS", "Serving without a KV cache is refused with these options.",
     "They need a cache, or a decode phase.", "Leave one of the two out.", kKvCacheFile,
     kRulesVersion},
    {"SGL-QUANT-OPT-OUT", "The checkpoint's quantization is switched off.",
     "--quantization unquant says so.", "", kResolutionsFile, kRulesVersion},
    {"SGL-GRAPH-CONFIG", "The CUDA-graph backends as the options state them.",
     "The single options and the whole configuration are merged.", "", kCudaGraphFile,
     kRulesVersion},
    {"SGL-GRAPH-DEEP-EP", "Bucket sizes of the prefill graph are rounded to multiples of 8.",
     "DeepEP's kernels ask for it.", "", kCudaGraphFile, kRulesVersion},
    {"SGL-GRAPH-FULL-PREFILL", "A full prefill graph is experimental.",
     "It captures attention, too.", "Use breakable in production.", kCudaGraphFile, kRulesVersion},
    {"SGL-GRAPH-INCOMPATIBLE", "The prefill CUDA graph is off.",
     "The breakable graph is incompatible with a feature or with the model.",
     "Leave the feature out, or live without the graph.", kCudaGraphFile, kRulesVersion},
    {"SGL-GRAPH-INKLING", "Inkling names its prefill graph itself.",
     "The family's rule comes before the options.", "", kCudaGraphFile, kRulesVersion},
    {"SGL-GRAPH-PIPELINE", "The prefill CUDA graph is off with pipeline parallelism.",
     "Stages are not captured by default.", "Set --cuda-graph-backend-prefill=breakable.",
     kCudaGraphFile, kRulesVersion},
    {"SGL-GRAPH-ROLE", "A prefill or decode server captures only the phase that it serves.",
     "The other phase never runs.", "", kCudaGraphFile, kRulesVersion},
    {"SGL-GRAPH-TRTLLM-MLA", "The prefill CUDA graph is off for DeepSeek-V3 on trtllm_mla.",
     "Its prefill kernel runs faster outside a graph.",
     "Set --cuda-graph-backend-prefill=breakable.", kCudaGraphFile, kRulesVersion},
    {"SGL-GRAPH-VISION", "The decode graph covers as many requests as may run.",
     "Vision-language models of this family run many small requests.", "", kCudaGraphFile,
     kRulesVersion},
    {"SGL-MEMORY-CHUNK", "The chunk of a prefill follows from the device's memory.",
     "Nobody stated --chunked-prefill-size.", "", kMemoryFile, kRulesVersion},
    {"SGL-MEMORY-FRACTION", "The share of the device for weights and cache.",
     "Nobody stated --mem-fraction-static: the engine leaves room for activations, CUDA graphs, "
     "all-to-all buffers and a vision tower.",
     "State --mem-fraction-static to move it.", kMemoryFile, kRulesVersion},
    {"SGL-CP-ATTENTION-DP",
     "Context parallelism is refused together with data parallelism of attention.",
     "Both would split the same ranks.", "Choose one of them.", kParallelFile, kRulesVersion},
    {"SGL-CP-SIZES", "The sizes of prefill context parallelism are refused.",
     "The model's attention cannot be split so, or the sizes do not divide.",
     "Change --attn-cp-size, or leave --enable-prefill-cp out.", kParallelFile, kRulesVersion},
    {"SGL-CP-STRATEGY", "The strategy of prefill context parallelism is refused.",
     "The model's attention has one strategy.", "Use the strategy that the message names.",
     kParallelFile, kRulesVersion},
    {"SGL-DP-CHUNK", "The prefill chunk was divided by the data-parallel ranks.",
     "Each rank prefills its own requests.", "", kParallelFile, kRulesVersion},
    {"SGL-DP-LM-HEAD", "The output projection cannot be data parallel.",
     "That needs attention data parallelism.", "Set --attn-dp-size.", kParallelFile, kRulesVersion},
    {"SGL-DP-SIZES", "The sizes of data parallelism are refused.",
     "The ranks must divide into groups of attention.",
     "Make --tp-size a multiple of --attn-dp-size.", kParallelFile, kRulesVersion},
    {"SGL-PIPELINE-OVERLAP", "The overlap schedule is off with pipeline parallelism.",
     "The two schedules exclude each other.", "", kParallelFile, kRulesVersion},
});

}  // namespace

std::span<const RuleInfo> arguments_rules() { return kRules; }

}  // namespace kernelpath::engines::sglang
