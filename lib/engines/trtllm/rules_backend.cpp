#include "engines/trtllm/rules_backend.h"

#include "base/assert.h"

#include <algorithm>
#include <array>

namespace kernelpath::engines::trtllm {
namespace {

constexpr std::string_view kUtils = "tensorrt_llm/_torch/attention/backends/utils.py";
constexpr std::string_view kUtilsVersion = "2a3c95e3";
constexpr std::string_view kSparse = "tensorrt_llm/_torch/attention/backends/sparse/registry.py";
constexpr std::string_view kSparseVersion = "f8ad1603";
constexpr std::string_view kModule = "tensorrt_llm/_torch/attention/attention.py";
constexpr std::string_view kModuleVersion = "047098b7";
constexpr std::string_view kLlama = "tensorrt_llm/_torch/models/modeling_llama.py";
constexpr std::string_view kUnrecorded = "commit not recorded";
constexpr std::string_view kConfig = "tensorrt_llm/_torch/model_config.py";
constexpr std::string_view kConfigVersion = "008e0af8";
constexpr std::string_view kManager = "tensorrt_llm/_torch/attention/backends/fmha/manager.py";
constexpr std::string_view kManagerVersion = "2c9ce61b";
constexpr std::string_view kRegistry = "tensorrt_llm/_torch/attention/backends/fmha/registry.py";
constexpr std::string_view kRegistryVersion = "241e6ec8";
constexpr std::string_view kGen =
    "tensorrt_llm/_torch/attention/backends/fmha/flashinfer_trtllm_gen.py";
constexpr std::string_view kGenVersion = "05412d19";
constexpr std::string_view kDsl = "tensorrt_llm/_torch/attention/backends/fmha/cute_dsl_mla.py";
constexpr std::string_view kDslVersion = "0361ae4a";
constexpr std::string_view kFallback = "tensorrt_llm/_torch/attention/backends/fmha/fallback.py";
constexpr std::string_view kFallbackVersion = "017aa0ca";
constexpr std::string_view kMask =
    "tensorrt_llm/_torch/attention/backends/fmha/triton_custom_mask.py";
constexpr std::string_view kTrtllm = "tensorrt_llm/_torch/attention/backends/trtllm.py";
constexpr std::string_view kTrtllmVersion = "017aa0ca";
constexpr std::string_view kFlashInfer = "tensorrt_llm/_torch/attention/backends/flashinfer.py";
constexpr std::string_view kFlashInferVersion = "0c005f8d";
constexpr std::string_view kResources = "tensorrt_llm/_torch/pyexecutor/resource_manager.py";
constexpr std::string_view kModeling = "tensorrt_llm/_torch/models/modeling_utils.py";
constexpr std::string_view kPrefix = "TRT-";

constexpr auto kRules = std::to_array<RuleInfo>({
    // Dispatch.
    {"TRT-ATTN-CLASS", "Name and sparse algorithm choose the attention backend class.",
     "The class is looked up by the upper-cased name, then by the sparse algorithm.", "", kUtils,
     kUtilsVersion},
    {"TRT-ATTN-FALLBACK",
     "An unknown backend name, or FLASHINFER without its package, becomes TRTLLM with a warning.",
     "attn_backend is an unchecked string; the last line of dispatch returns the TRTLLM class.",
     "Write VANILLA, TRTLLM or FLASHINFER, and install flashinfer for the last.", kUtils,
     kUtilsVersion},
    {"TRT-ATTN-SPARSE-DROPPED", "The fallback drops sparse attention without a word.",
     "The fallback line returns the dense class before sparse parameters are looked at.",
     "Use a backend that serves the algorithm (TRTLLM serves most).", kUtils, kUtilsVersion},
    {"TRT-SPARSE-UNSUPPORTED-VANILLA", "VANILLA does not serve this sparse algorithm.",
     "VANILLA has rocket and minimax_m3 only.", "Use the backend TRTLLM.", kSparse, kSparseVersion},
    {"TRT-SPARSE-UNSUPPORTED-TRTLLM", "TRTLLM does not serve this sparse algorithm.",
     "The algorithm is in none of the branches of TRTLLM's table.",
     "Check the spelling of sparse_attention_config.algorithm.", kSparse, kSparseVersion},
    {"TRT-SPARSE-UNSUPPORTED-FLASHINFER", "FLASHINFER does not serve this sparse algorithm.",
     "FLASHINFER has minimax_m3 only.", "Use the backend TRTLLM.", kSparse, kSparseVersion},
    {"TRT-SPARSE-NEEDS-KNOWN-BACKEND",
     "Sparse attention refuses an unknown or missing backend instead of falling back.",
     "A developer branch raises where the stored version drops sparse attention.",
     "Use the backend TRTLLM.", kUtils, "2ef79ea1"},
    {"TRT-MSA-UNAVAILABLE", "The MSA implementation of minimax_m3 is not available.",
     "Its kernels need SM100 and their package; the check comes before the first launch.",
     "Leave the implementation at triton.", kSparse, kSparseVersion},
    {"TRT-CSA2-UNSUPPORTED-SM", "csa2 has no kernels for this device.",
     "Kernels exist for SM90, SM100 to SM109, SM120 and SM121.", "Use one of these devices.",
     kSparse, kSparseVersion},
    {"TRT-CSA2-COMPUTE", "The device chooses the kernels of csa2.",
     "SM90 runs FlashMLA, SM100 to SM109 trtllm-gen, SM120 and SM121 FlashInfer.", "", kSparse,
     kSparseVersion},
    {"TRT-SPARSE-CACHE", "The sparse algorithm chooses the KV cache manager.",
     "Indexers and compressed rows need caches of their own.", "", kSparse, kSparseVersion},
    {"TRT-QSA-NEEDS-V2", "qsa needs version 2 of the KV cache manager.",
     "Only the hybrid version 2 manager holds its pages.",
     "Set kv_cache_config.use_kv_cache_manager_v2=true.", kSparse, kSparseVersion},
    {"TRT-SPARSE-UNSUPPORTED-CACHE", "No KV cache manager serves this sparse algorithm.",
     "glm_kpool and unknown algorithms have no branch.", "Use another algorithm.", kSparse,
     kSparseVersion},
    // Construction of the module and of its backend instance.
    {"TRT-CHUNKED-ATTENTION-UNSUPPORTED", "Only TRTLLM has chunked attention.",
     "The check compares names before dispatch, so an unknown name fails here only with a chunk.",
     "Use TRTLLM, or a max_seq_len that needs no chunks.", kUtils, kUtilsVersion},
    {"TRT-MLA-UNSUPPORTED", "The backend class does not support MLA.",
     "The class method support_mla answers no.", "Use TRTLLM, FLASHINFER or VANILLA without it.",
     kUtils, kUtilsVersion},
    {"TRT-MLA-GEOMETRY", "An MLA dimension is not positive.",
     "All five dimensions are asserted when the layer is built.",
     "Check the named field of config.json.", kUtils, kUtilsVersion},
    {"TRT-MLA-GEOMETRY-NULL", "An MLA dimension is null.",
     "Python cannot compare null with a number, so a TypeError ends construction.",
     "Give the named field a value.", kUtils, kUtilsVersion},
    {"TRT-FLASHINFER-MLA-KERNEL",
     "A FlashInfer MLA kernel is named on another backend than TRTLLM.",
     "Only the TRTLLM class takes the selector.", "Use the backend TRTLLM.", kUtils, "2ef79ea1"},
    {"TRT-CP-NOT-HELIX", "Context parallelism of attention must be of type HELIX.",
     "The module asserts the type.", "Set the context-parallel type to HELIX.", kModule,
     kModuleVersion},
    {"TRT-HEADS-INDIVISIBLE", "Attention heads do not divide by the ranks.",
     "Heads are split evenly over tensor and context parallel ranks.",
     "Choose a tp that divides num_attention_heads.", kModule, kModuleVersion},
    {"TRT-KV-HEADS-REPLICATED", "More tensor-parallel ranks than KV heads: heads are replicated.",
     "KV heads per rank are rounded up, never down to zero.", "", kModule, kModuleVersion},
    {"TRT-SKIP-CORRECTION-OFF", "skip_correction_threshold becomes 0.",
     "Skipping the softmax correction exists for MLA on SM100 and SM103 only.", "", kTrtllm,
     kTrtllmVersion},
    // Rewrites.
    {"TRT-ROPE-FUSED", "RoPE is applied inside the attention kernel.",
     "Unset fusion takes what the backend class supports.", "", kModule, kModuleVersion},
    {"TRT-ROPE-UNFUSED", "RoPE is not applied inside the attention kernel.",
     "Fusion is off or the class has none; a separate module applies positions, if there are any.",
     "", kModule, kModuleVersion},
    {"TRT-ROPE-OFF-KV-EVICTION", "KV cache compression turns RoPE fusion off.",
     "Evicting entries changes the physical length, so the kernel cannot know positions.", "",
     kModule, kModuleVersion},
    {"TRT-ROPE-OFF-BACKEND", "RoPE fusion was asked for, and the backend class has none.",
     "The class method support_fused_rope answers no.", "", kModule, kModuleVersion},
    {"TRT-L4-KEEP", "Llama 4 keeps its attention chunk size.",
     "No gate of chunked attention closes.", "", kLlama, kUnrecorded},
    {"TRT-L4-BACKEND", "Llama 4 loses chunked attention: the backend is not exactly TRTLLM.",
     "The gate compares the raw string, so 'trtllm' counts as another backend.",
     "Write TRTLLM in capitals.", kLlama, kUnrecorded},
    {"TRT-L4-PREBLACKWELL-SPEC",
     "Llama 4 loses chunked attention with speculative decoding up to SM90.",
     "The kernels up to SM90 cannot combine both.", "Use SM100, or no speculative decoding.",
     kLlama, kUnrecorded},
    {"TRT-L4-SHORT-SEQ", "Llama 4 needs no chunks: max_seq_len is shorter than one chunk.",
     "Every sequence fits into the first chunk.", "", kLlama, kUnrecorded},
    {"TRT-L4-SEQ-CAP", "Llama 4 infers max_seq_len 8192 without TRTLLM.",
     "Without chunked attention longer prompts would be computed wrongly.",
     "Use the backend TRTLLM.", kLlama, kUnrecorded},
    {"TRT-L4-UNCAPPED", "Llama 4 keeps its full length without chunked attention.",
     "The length test ignores case, the chunk test does not: 'trtllm' falls between them.",
     "Write TRTLLM in capitals.", kLlama, kUnrecorded},
    {"TRT-MLA-HEAD-DIM", "MLA decodes with kv_lora_rank + qk_rope_head_dim as head_dim.",
     "The latent and the rotary part of a token are one cached vector with one KV head.", "",
     kConfig, kConfigVersion},
    {"TRT-FLASH-MLA", "FlashMLA serves MLA of head_dim 576 on compute capability 9.0.",
     "Its kernels exist for this width on Hopper only, and the flag compares the raw name.", "",
     kConfig, kConfigVersion},
    // Inner kernels of TRTLLM.
    {"TRT-FMHA-SELECTED", "The first FMHA library that accepts serves the request.",
     "The list is asked in order; phases may be served by two libraries.", "", kManager,
     kManagerVersion},
    {"TRT-FMHA-UNAVAILABLE", "An FMHA library cannot serve this layer at all.",
     "Availability is decided once a layer: device, packages, MLA, sparse attention.",
     "See what the library needs (--list fmha-libraries).", kManager, kManagerVersion},
    {"TRT-NO-FMHA", "No enabled FMHA library serves the request.",
     "Every library of the list is unavailable or refuses.",
     "Check TLLM_FMHA_LIBS and the KV cache dtype for this device.", kManager, kManagerVersion},
    {"TRT-MLA-MIXED-CALL", "An MLA call must be context-only or generation-only.",
     "The two phases run on different tensors and kernels.", "", kManager, kManagerVersion},
    {"TRT-PAGED-CONTEXT-REFUSED",
     "Cached pages cannot be read in the context phase: this build lacks the fused kernel.",
     "The unfused path builds K and V from the current chunk and would drop the cached prefix.",
     "Turn off block reuse, chunked prefill and speculative decoding, or use FLASHINFER.",
     kFallback, kUnrecorded},
    {"TRT-FMHA-ENV-MIXED", "TLLM_FMHA_LIBS mixes +/- entries with plain names.",
     "It is either an exact list or a change of the default list.",
     "Give all entries a sign, or none.", kRegistry, kRegistryVersion},
    {"TRT-FMHA-ENV-EMPTY", "TLLM_FMHA_LIBS has a sign without a library name.",
     "Every entry names a library.", "Name the library after the sign.", kRegistry,
     kRegistryVersion},
    {"TRT-FMHA-ENV-UNKNOWN", "TLLM_FMHA_LIBS names an unknown library.",
     "Names are compared exactly.", "See --list fmha-libraries.", kRegistry, kRegistryVersion},
    {"TRT-FMHA-SMALL-BF16-CONTEXT",
     "A context batch of 1 to 4 BF16 requests is faster on the fallback.",
     "The host work of this path costs time to first token.", "", kGen, kGenVersion},
    {"TRT-FMHA-HELIX", "Helix parallelism is not served.", "The kernels return no partial sums.",
     "", kGen, kGenVersion},
    {"TRT-FMHA-SPARSE", "Sparse attention is not served.",
     "The kernels attend to the whole paged cache.", "", kGen, kGenVersion},
    {"TRT-FMHA-REL-BIAS", "A relative attention bias is not served.", "The kernels take no bias.",
     "", kGen, kGenVersion},
    {"TRT-FMHA-SPEC-TREE", "A tree mask of speculative decoding is not served.",
     "The kernels are causal along one chain of tokens.", "", kGen, kGenVersion},
    {"TRT-FMHA-MLA-CONTEXT", "MLA context is not served.",
     "Context MLA runs on another kernel family.", "", kGen, kGenVersion},
    {"TRT-FMHA-NON-PAGED", "A cache without pages is not served.",
     "The kernels read K and V through block tables.", "", kGen, kGenVersion},
    {"TRT-FMHA-NEEDS-FUSED-QKV", "Separate Q, K and V are not served.",
     "Preprocessing takes one packed QKV tensor.", "", kGen, kGenVersion},
    {"TRT-FMHA-INPUT-DTYPE", "The dtype of the query is not served.",
     "Queries are FP16, BF16 or FP8.", "", kGen, kGenVersion},
    {"TRT-FMHA-KV-DTYPE", "The dtype of the KV cache is not served.",
     "The kernels exist for a fixed set of cache dtypes.", "", kGen, kGenVersion},
    {"TRT-FMHA-OUTPUT-DTYPE", "The dtype of the output is not served.",
     "Outputs are FP16, BF16 or FP8.", "", kGen, kGenVersion},
    {"TRT-FMHA-CTX-HEAD-DIM", "No context kernels for head_dim 72, 80 and 96.",
     "The library does not ship them.", "", kGen, kGenVersion},
    {"TRT-FMHA-CTX-CUSTOM-MASK", "A custom mask in the context phase is not served.",
     "The kernels are causal or full.", "", kGen, kGenVersion},
    {"TRT-FMHA-CTX-ALIBI", "ALiBi in the context phase is not served.",
     "The kernels take no position bias.", "", kGen, kGenVersion},
    {"TRT-FMHA-CTX-DTYPES", "No context kernel for this triple of query, cache and output dtypes.",
     "16-bit goes with the same 16-bit cache; FP8 queries with FP8 or NVFP4 caches.", "", kGen,
     kGenVersion},
    {"TRT-FMHA-GEN-BEAM", "Beam search is not served in the generation phase.",
     "The kernels take one beam.", "", kGen, kGenVersion},
    {"TRT-FMHA-GEN-BLOCK", "Blocks of fewer than 8 tokens are not served in generation.",
     "A tile spans at least 8 tokens of a page.", "Use tokens_per_block 32.", kGen, kGenVersion},
    {"TRT-FMHA-GEN-GQA-RATIO", "More than 32 heads share one KV head.",
     "The generation kernels group at most 32 heads.", "", kGen, kGenVersion},
    {"TRT-FMHA-GEN-ALIBI", "ALiBi in the generation phase is not served.",
     "The kernels take no position bias.", "", kGen, kGenVersion},
    {"TRT-FMHA-GEN-DTYPES",
     "No generation kernel for this triple of query, cache and output dtypes.",
     "As in the context phase, and 16-bit queries also read FP8 caches.", "", kGen, kGenVersion},
    {"TRT-FMHA-MLA-DIMS", "No MLA kernel of these head sizes.",
     "Kernels exist for 576 with 512 and for 320 with 256.", "", kGen, kGenVersion},
    {"TRT-FMHA-MLA-SLOWER-32", "MLA of 576 with 32-token blocks is slower than the fallback.",
     "Measured by the engine's authors.", "Use tokens_per_block 64.", kGen, kGenVersion},
    {"TRT-FMHA-TOKENS-PER-BLOCK", "Blocks are not of 16, 32 or 64 tokens.",
     "The kernels are compiled for these page sizes.", "Use tokens_per_block 32.", kGen,
     kGenVersion},
    {"TRT-FMHA-PHASE", "The library does not serve this phase.",
     "cute_dsl_mla decodes only; triton_custom_mask serves context only.", "", kDsl, kDslVersion},
    {"TRT-FMHA-MIXED-BATCH", "The batch also holds context requests.",
     "Host overhead; 96 heads are let in because the next library cannot serve them.", "", kDsl,
     kDslVersion},
    {"TRT-FMHA-BEAM", "Beam search is not served.", "The kernel takes one beam.", "", kDsl,
     kDslVersion},
    {"TRT-FMHA-TREE", "A custom or tree mask is not served.",
     "The kernel applies the causal mask of one chain only.", "", kDsl, kDslVersion},
    {"TRT-FMHA-HELIX-QUERY", "Helix is served for one query token a request only.",
     "Partial sums are kept for one token.", "", kDsl, kDslVersion},
    {"TRT-FMHA-PERF-HEADS", "With a 16-bit cache only 6, 12, 16 or 96 heads win.",
     "A measured gate, not a limit of the kernel.", "", kDsl, kDslVersion},
    {"TRT-FMHA-PERF-SHAPE", "This number of heads and query tokens does not win with an FP8 cache.",
     "A measured gate, not a limit of the kernel.", "", kDsl, kDslVersion},
    {"TRT-FMHA-PERF-BATCH", "The batch is below the size from which the kernel wins.",
     "A measured gate, not a limit of the kernel.", "", kDsl, kDslVersion},
    {"TRT-FMHA-NO-CUSTOM-MASK", "The request has no custom mask.",
     "The library exists for custom masks.", "", kMask, kFallbackVersion},
    {"TRT-FMHA-FP8-QUERY", "The fallback takes no FP8 query.",
     "It quantises the query itself where it needs to.", "", kFallback, kFallbackVersion},
    {"TRT-FMHA-NO-CACHE-UPDATE", "The fallback cannot leave the cache alone on self attention.",
     "Its kernel appends K and V.", "", kFallback, kFallbackVersion},
    // Inner kernels of FLASHINFER.
    {"TRT-FI-PREFILL", "The wrapper and kernel of FLASHINFER's context phase.",
     "The configured name with a KV cache manager; cuDNN over ragged tensors without one.", "",
     kFlashInfer, kFlashInferVersion},
    {"TRT-FI-DECODE", "The kernel of FLASHINFER's generation phase.",
     "fa2 is kept on compute capability 9.0 and becomes auto elsewhere; other names are kept.", "",
     kFlashInfer, kFlashInferVersion},
    {"TRT-FI-CUSTOM-MASK-CAUSAL", "A layer with shared K and V loses its custom mask.",
     "trtllm-gen has no custom mask, and the Triton kernel needs the layer's own K and V.", "",
     kFlashInfer, kFlashInferVersion},
    {"TRT-FI-FP8-QUERY", "trtllm-gen reads an FP8 cache with an FP8 query.",
     "Its kernels exist for equal 8-bit types.", "", kFlashInfer, kFlashInferVersion},
    {"TRT-FI-FP8-WITHOUT-CACHE", "An FP8 cache without a KV cache manager is not implemented.",
     "The ragged path reads K and V as they come.", "", kFlashInfer, kFlashInferVersion},
    {"TRT-FI-MULTI-ITEM-CUDA-GRAPH", "Multi-item scoring with CUDA graphs is not implemented.",
     "Item positions change with every batch.", "Turn CUDA graphs off.", kFlashInfer,
     kFlashInferVersion},
    {"TRT-FI-MULTI-ITEM-PAGED", "Multi-item scoring runs without a KV cache manager only.",
     "It scores in one pass.", "", kFlashInfer, kFlashInferVersion},
    // KV cache.
    {"TRT-KV-BYTES", "Bytes of one token in the KV cache of one rank.",
     "Layers of the stage × KV heads of the rank × head_dim × 2, or the latent width for MLA.", "",
     kResources, kUnrecorded},
    {"TRT-KV-ESTIMATE-DIFFERS", "The budget's bytes per token differ from what the pool uses.",
     "The estimate divides by tp after multiplying and averages lists; the pool rounds up by "
     "layer.",
     "Lower kv_cache_config.free_gpu_memory_fraction if the pool does not fit.", kResources,
     kUnrecorded},
    {"TRT-NVFP4-INDIVISIBLE", "The cache of a token does not divide into NVFP4's groups of 16.",
     "One scale stands for 16 elements; the engine asserts it.", "Use another KV cache dtype.",
     kResources, kUnrecorded},
    {"TRT-KV-MLA-RANK-NULL", "kv_lora_rank is there and null.",
     "The mere presence of the field makes the stored version treat the model as MLA.",
     "Remove the field.", kResources, kUnrecorded},
    {"TRT-KV-HEADS-LIST-LENGTH", "The list of KV heads has another length than the layers.",
     "The cache manager asserts one entry a layer.", "Check num_key_value_heads.", kResources,
     kUnrecorded},
    {"TRT-KV-FRACTION", "free_gpu_memory_fraction must be below 1 here.",
     "Argument validation allows 1, the cache manager asserts less.", "Use 0.9.", kResources,
     kUnrecorded},
    {"TRT-KV-POOL", "The KV pool of a rank.",
     "(total − peak + probe) × fraction, divided by the estimate, in whole blocks.", "", kResources,
     kUnrecorded},
    {"TRT-KV-MAX-TOKENS", "max_tokens limits the KV pool.", "The smaller of both counts.", "",
     kResources, kUnrecorded},
    {"TRT-KV-WINDOWS", "Several window sizes share the pool.",
     "Each window has a pool of its own; shares are equal by default.", "", kResources,
     kUnrecorded},
    // ModelConfig.
    {"TRT-CFG-NOT-GENERATIVE", "The model does not generate text.",
     "Its architecture is in the list of encoders and reward models, or only its encoder runs.", "",
     kConfig, kConfigVersion},
    {"TRT-CFG-ENCODER-DECODER", "The model is an encoder-decoder.", "The config says so.", "",
     kConfig, kConfigVersion},
    {"TRT-CFG-DTYPE", "No dtype in the config: BF16.", "The engine assumes BF16.", "", kConfig,
     kConfigVersion},
    {"TRT-CFG-MOE-TOKENS", "moe_max_num_tokens follows max_num_tokens.",
     "With attention data parallelism every rank's tokens meet in the experts.", "", kConfig,
     kConfigVersion},
    {"TRT-CFG-ALLREDUCE-UNKNOWN", "An unknown all-reduce strategy becomes AUTO.",
     "The table is asked with AUTO as default.", "Check the spelling.", kConfig, kConfigVersion},
    {"TRT-CFG-DSA", "DeepSeek-V3.2 and GLM-5 always run sparse attention (dsa).",
     "Their checkpoints carry an indexer; the config is built from it.", "", kConfig,
     kConfigVersion},
    {"TRT-CFG-DEEPSEEK-V4", "DeepSeek-V4 always runs its own sparse attention.",
     "Window and compression ratios come from the checkpoint unless the user sets them.", "",
     kConfig, kConfigVersion},
    {"TRT-CFG-CSA2", "DeepSeek-V4.1 runs csa2 unless another sparse config is given.",
     "Its model_type chooses it; the geometry is resolved once.", "", kConfig,
     "article of 2026-11-01"},
    {"TRT-CFG-SPARSE", "Sparse attention as the user asks for it.",
     "The model has no automatic sparse config.", "", kConfig, kConfigVersion},
    {"TRT-DSA-NO-INDEXER", "The checkpoint lacks the indexer's fields.",
     "The architecture reads them without a default.",
     "Use a complete config.json, or set the fields in sparse_attention_config.", kConfig,
     kConfigVersion},
    {"TRT-V4-NO-COMPRESS-RATIOS", "DeepSeek-V4 without compress_ratios.",
     "A default would silently change what attention sees.",
     "Set compress_ratios in config.json or in sparse_attention_config.", kConfig, kConfigVersion},
    {"TRT-CFG-MAX-SEQ-LEN", "max_seq_len is inferred from the config.",
     "max_position_embeddings, times the rope factor unless the rope type already counts it.", "",
     kModeling, kUnrecorded},
    {"TRT-MODEL-DEFAULT", "A default of the model class fills a field that the user did not set.",
     "The loader merges them deeply under the user's values, for the outer class only.", "",
     kModeling, kUnrecorded},
    {"TRT-MODEL-DEFAULT-OVERRIDDEN", "The user's value stays over a default of the model class.",
     "Defaults fill unset fields only.", "", kModeling, kUnrecorded},
});

std::string_view without_detail(std::string_view id) { return id.substr(0, id.find(':')); }

}  // namespace

std::span<const RuleInfo> backend_rules() { return kRules; }

const RuleInfo* find_backend_rule(std::string_view id) {
  id = without_detail(id);
  if (id.substr(0, kPrefix.size()) == kPrefix) id.remove_prefix(kPrefix.size());
  // The engine's recorded answers call the fallback by another name.
  if (id == "FALLBACK-TRTLLM") id = "ATTN-FALLBACK";
  const auto* row = std::find_if(kRules.begin(), kRules.end(), [&](const RuleInfo& rule) {
    return rule.id.substr(kPrefix.size()) == id;
  });
  return row == kRules.end() ? nullptr : row;
}

void append_step(StepDraft draft, std::vector<Step>& steps) {
  const RuleInfo* rule = find_backend_rule(draft.rule);
  KERNELPATH_ASSERT(rule != nullptr);
  steps.push_back(step_of(std::move(draft), *rule, kProject));
}

void append_error_step(const EngineError& error, Stage stage, std::string candidate,
                       std::vector<Step>& steps) {
  const RuleInfo* rule = find_backend_rule(error.code);
  KERNELPATH_ASSERT(rule != nullptr);
  append_step({.rule = rule->id,
               .stage = stage,
               .verdict = Verdict::kRejected,
               .severity = Severity::kError,
               .candidate = std::move(candidate),
               .reason = error.message},
              steps);
}

}  // namespace kernelpath::engines::trtllm
