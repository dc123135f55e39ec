#include "engines/vllm/rules_run.h"

#include <array>
#include <string_view>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kModel = "vllm/config/model.py";
constexpr std::string_view kTorch = "vllm/utils/torch_utils.py";
constexpr std::string_view kAttention = "vllm/model_executor/layers/attention/attention.py";
constexpr std::string_view kArguments = "vllm/engine/arg_utils.py";
constexpr std::string_view kHooks = "vllm/model_executor/models/config.py";
constexpr std::string_view kConfig = "vllm/config/vllm.py";
constexpr std::string_view kFlex = "vllm/v1/attention/backends/flex_attention.py";
constexpr std::string_view kLatent = "vllm/model_executor/layers/attention/mla_attention.py";
constexpr std::string_view kDeepseekV4 = "vllm/models/deepseek_v4/attention.py";
constexpr std::string_view kMiniMax = "vllm/models/minimax_m3/common/sparse_attention.py";
constexpr std::string_view kHyV4 = "vllm/models/hy_v4/nvidia/attention.py";
constexpr std::string_view kTransformers = "vllm/model_executor/models/transformers/base.py";
constexpr std::string_view kOctave = "vllm/v1/attention/backends/rocm_octave_attn.py";
constexpr std::string_view kParallel = "vllm/config/parallel.py";
constexpr std::string_view kFlashMlaSparse = "vllm/v1/attention/backends/mla/flashmla_sparse.py";

// The version of each file is the release's: it is filled in where rules are printed.
constexpr auto kRules = std::to_array<RuleInfo>({
    // --- types
    {"VLLM-DTYPE-UNKNOWN", "The dtype is none that the engine knows.",
     "Its name is looked up in a table of torch types.", "Use auto, bfloat16, float16 or float32.",
     kModel, ""},
    {"VLLM-DTYPE-FLOAT16", "The model's class does not run in float16.",
     "Its activations overflow the type.", "Use --dtype bfloat16 or float32.", kModel, ""},
    {"VLLM-DTYPE-DEVICE",
     "The checkpoint's dtype is not for this device or model; another one is taken.",
     "The platform lists the types that it computes in.", "Say --dtype to choose it yourself.",
     kModel, ""},
    {"VLLM-DTYPE-DOWNCAST", "A float32 checkpoint runs in a 16-bit type.",
     "auto never keeps float32 where a shorter type will do.", "Say --dtype float32 to keep it.",
     kModel, ""},
    {"VLLM-QUANT-DEPRECATED", "The checkpoint's quantization method is deprecated, and refused.",
     "The release names methods that it is about to drop.",
     "Set --allow-deprecated-quantization, or take a checkpoint in another format.", kModel, ""},
    {"VLLM-KV-DTYPE-CHECKPOINT", "auto takes the cache dtype that the checkpoint states.",
     "ModelOpt checkpoints carry the type that their scales were calibrated for.", "", kTorch, ""},
    {"VLLM-KV-DTYPE-SCHEME", "A checkpoint's kv_cache_scheme makes the cache fp8.",
     "compressed-tensors checkpoints state it; the shared configuration is overwritten.", "",
     kAttention, ""},
    {"VLLM-KV-E5M2-SCALES", "fp8_e5m2 does not go with a checkpoint that carries fp8 scales.",
     "The scales are for the other fp8 format.", "Use --kv-cache-dtype fp8.", kAttention, ""},
    {"VLLM-BATCH-MM-FLOOR", "A step takes at least the tokens of one image.",
     "The tokens of an image attend to each other, so that none may be cut; how many there are, "
     "the model's processor says.",
     "Set max_num_batched_tokens.", kArguments, ""},
    {"VLLM-MAX-LEN", "max_model_len is larger than the model's.",
     "Positions behind the model's length were not trained.",
     "Lower it, or set VLLM_ALLOW_LONG_MAX_MODEL_LEN=1.", kModel, ""},
    {"VLLM-TURBOQUANT-FA", "TurboQuant sets FlashAttention 2.",
     "Its kernels do not go with later versions.", "", kArguments, ""},
    {"VLLM-TURBOQUANT-SKIP", "TurboQuant leaves the first and last two layers unquantized.",
     "They lose most by it.", "", kArguments, ""},
    {"VLLM-TURBOQUANT-HYBRID", "TurboQuant finds no attention layers in a hybrid model.",
     "Its list of layers is read from the configuration.", "Use another --kv-cache-dtype.",
     kArguments, ""},
    // --- states
    {"VLLM-MAMBA-MODE", "With prefix caching the states of a model are cached as well.",
     "A prefix can only be reused with the state behind it.", "", kHooks, ""},
    {"VLLM-MAMBA-MODE-OFF", "Without prefix caching no state is cached.",
     "The mode means nothing then.", "Set enable_prefix_caching, or leave the mode out.", kHooks,
     ""},
    {"VLLM-MAMBA-BLOCK-REFUSED", "mamba_block_size needs prefix caching.",
     "Without it a state's block is the whole sequence.", "Set enable_prefix_caching.", kConfig,
     ""},
    {"VLLM-HMA-OFF", "All layers keep their cache like full attention.",
     "A feature of the run does not go with the hybrid cache manager.",
     "Expect a larger cache a sequence.", kConfig, ""},
    {"VLLM-HMA-REFUSED", "The hybrid cache manager was asked for where it cannot be.",
     "A feature of the run does not go with it.", "Leave disable_hybrid_kv_cache_manager out.",
     kConfig, ""},
    // --- attention configuration
    {"VLLM-BACKEND-TWICE", "A backend is given in two ways.",
     "attention_backend is short for a field of attention_config.", "Give one of the two.",
     kArguments, ""},
    {"VLLM-BATCH-INVARIANT-PREFIX", "Batch invariance turns prefix caching off with this backend.",
     "Its results depend on where a sequence is cut.", "Choose another backend.", kAttention, ""},
    {"VLLM-ALIBI-SQRT", "The backend has no square root of ALiBi slopes.",
     "Only some kernels apply it.", "Leave the choice to the engine.", kAttention, ""},
    {"VLLM-OCTAVE-SIZES", "ROCM_OCTAVE has kernels for heads of 256 with 64 rotary elements only.",
     "The selector does not ask for the model's rotary part.", "Use another --kv-cache-dtype.",
     kOctave, ""},
    {"VLLM-CHUNK-LOOKBACK", "Chunks that see the one before run on TRITON_ATTN only.",
     "No other kernel has their mask, and the selector does not ask for it.",
     "Use --attention-backend TRITON_ATTN.", kAttention, ""},
    {"VLLM-FLEX-REFUSED", "FLEX_ATTENTION has no soft cap, no ALiBi, no shared cache.",
     "Its implementation refuses such a layer.", "Leave the choice to the engine.", kFlex, ""},
    {"VLLM-LAYERS-SHARED", "Layers read the cache of an earlier layer.", "The model says which.",
     "", kAttention, ""},
    {"VLLM-MLA-NVFP4", "Latent attention has no nvfp4 cache.", "No kernel reads it.",
     "Use --kv-cache-dtype fp8 or auto.", kConfig, ""},
    {"VLLM-MLA-PACKED", "The backend keeps its cache in the packed fp8 format.",
     "Its kernels read no other.", "Expect other bytes a token than the type's name says.", kLatent,
     ""},
    {"VLLM-MINIMAX-M3-NVFP4", "MiniMax M3 has no nvfp4 cache here.",
     "Only its kernels for data-centre Blackwell read it.", "Use --kv-cache-dtype fp8.", kMiniMax,
     ""},
    {"VLLM-HYV4-SINK", "HY V4's layers run on FlashMLA with their sinks.",
     "The selected backend applies none.", "", kHyV4, ""},
    {"VLLM-LAYER-NO-INTERFACE", "The Transformers wrapper cannot serve the layer.",
     "It keeps a state, and does not go through the library's attention interface.",
     "Use a model with a class of the engine's own.", kTransformers, ""},
    {"VLLM-DSV4-CHOSEN", "DeepSeek V4 picks its attention itself.",
     "Its layers do not ask the selector.", "", kDeepseekV4, ""},
    {"VLLM-DSV4-BACKEND", "The backend is none of DeepSeek V4's.",
     "Its layers have classes of their own.",
     "Use FLASHINFER_MLA_SPARSE_DSV4 or leave the choice to the class.", kDeepseekV4, ""},
    {"VLLM-DSV4-DTYPE", "DeepSeek V4's packed layout needs an fp8 cache.",
     "Its kernels read no other.", "Use --kv-cache-dtype fp8.", kDeepseekV4, ""},
    // --- parallelism
    {"VLLM-TP-HEADS", "Query heads do not divide over the tensor-parallel ranks.",
     "Each rank gets as many heads.", "Choose --tp so that it divides the heads.", kModel, ""},
    {"VLLM-DCP-TP", "--tp is no multiple of --dcp.",
     "Decode context parallelism uses ranks of the tensor-parallel group.",
     "Choose --dcp so that it divides --tp.", kParallel, ""},
    {"VLLM-DCP-KV-HEADS", "There are as many KV heads as tensor-parallel ranks, or more.",
     "Only ranks that would hold a copy of a head can share its tokens.",
     "Raise --tp above the number of KV heads, or leave --dcp out.", kModel, ""},
    {"VLLM-DCP-SIZE", "--dcp is larger than the copies of a KV head.",
     "Only ranks that would hold a copy of a head can share its tokens.", "Lower --dcp.", kModel,
     ""},
    {"VLLM-DCP-QUERIES", "Query heads of a KV head do not divide by --dcp.",
     "The ranks exchange query heads.", "Choose another --dcp.", kModel, ""},
    {"VLLM-DCP-FLASHMLA-SPARSE",
     "FLASHMLA_SPARSE has no decode context parallelism with a 16-bit cache.",
     "Its 16-bit path returns no log-sum-exp.", "Use --kv-cache-dtype fp8.", kFlashMlaSparse, ""},
    // --- hooks of model classes
    {"VLLM-HOOK-BIDIRECTIONAL", "The class has no causal mask: its layers are encoder-only.",
     "It embeds whole texts.", "", kHooks, ""},
    {"VLLM-HOOK-POOLING", "The pooling type of the configuration is not supported.",
     "The class knows a few names.", "Correct pool_type.", kHooks, ""},
    {"VLLM-HOOK-DSA-BF16", "A bfloat16 cache of DeepSeek V3.2 is auto.",
     "It is the model's own type.", "", kHooks, ""},
    {"VLLM-HOOK-INDEX-TOPK", "DeepSeek V3.2's class needs index_topk.",
     "Its indexer keeps so many tokens.", "Check the configuration.", kHooks, ""},
    {"VLLM-HOOK-GLM-FP8", "The class makes the cache fp8 on data-centre Blackwell.",
     "Its sparse kernels are fastest there.", "Say --kv-cache-dtype bfloat16 to keep it.", kHooks,
     ""},
    {"VLLM-HOOK-GEMMA4-FA4", "Gemma 4 takes FlashAttention 4 where it can.",
     "It serves both of the model's head sizes.", "", kHooks, ""},
    {"VLLM-HOOK-GEMMA4-TRITON", "Gemma 4 takes TRITON_ATTN without FlashAttention 4.",
     "No other backend serves both of the model's head sizes.", "", kHooks, ""},
    {"VLLM-HOOK-GEMMA4-PER-LAYER", "Gemma 4 takes FlashAttention 3 or 4 layer by layer.",
     "An fp8 cache is read by version 3 up to its head size.", "", kHooks, ""},
    {"VLLM-HOOK-EMBEDDING-GEMMA", "The class asks for TRITON_ATTN.",
     "Its attention is bidirectional within a window.", "", kHooks, ""},
    {"VLLM-HOOK-DIFFUSION-FLASHINFER", "A diffusion model does not run on FLASHINFER.",
     "Causal and bidirectional requests stand in one batch.", "Use FLASH_ATTN or TRITON_ATTN.",
     kHooks, ""},
    {"VLLM-HOOK-DIFFUSION-NON-CAUSAL", "A diffusion model asks for non-causal attention.",
     "Causal and bidirectional requests stand in one batch.", "", kHooks, ""},
    {"VLLM-HOOK-OCR-BACKEND", "Unlimited-OCR picks its backend.",
     "Few kernels have its recurrent windows.", "", kHooks, ""},
    {"VLLM-HOOK-OCR-FA4", "Unlimited-OCR's FLASH_ATTN is version 4.",
     "Only that one has its recurrent windows.", "Use TRITON_ATTN where it is missing.", kHooks,
     ""},
    {"VLLM-HOOK-OCR-OTHER", "Unlimited-OCR does not run on this backend.",
     "It has no recurrent windows.", "Use FLASH_ATTN, TRITON_ATTN or FLEX_ATTENTION.", kHooks, ""},
    {"VLLM-HOOK-OCR-PREFIX", "Unlimited-OCR turns prefix caching off.",
     "A cached token depends on more than its prefix.", "", kHooks, ""},
    {"VLLM-HOOK-SSM-DTYPE", "The class sets the type of its state cache.",
     "Its states lose too much in the model's type.", "", kHooks, ""},
    {"VLLM-HOOK-LONGCAT-NGRAM", "The class sets no compilation and full graphs.",
     "Its n-gram embedding is not compiled.", "", kHooks, ""},
});

}  // namespace

std::span<const RuleInfo> run_rules() { return kRules; }

}  // namespace kernelpath::engines::vllm
