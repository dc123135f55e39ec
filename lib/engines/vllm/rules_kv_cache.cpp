#include "engines/vllm/rules_kv_cache.h"

#include <array>
#include <string_view>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kPlatform = "vllm/platforms/interface.py";
constexpr std::string_view kConfig = "vllm/config/vllm.py";
constexpr std::string_view kGroups = "vllm/v1/core/kv_cache_utils.py";
constexpr std::string_view kSpecs = "vllm/v1/kv_cache_interface.py";
constexpr std::string_view kWorkerUtils = "vllm/v1/worker/utils.py";
constexpr std::string_view kContextParallel = "vllm/v1/worker/cp_utils.py";
constexpr std::string_view kLayouts = "vllm/v1/attention/backends/utils.py";
constexpr std::string_view kFlashInfer = "vllm/v1/attention/backends/flashinfer.py";
constexpr std::string_view kIndexer = "vllm/v1/attention/backends/mla/indexer.py";
constexpr std::string_view kCompilation = "vllm/config/compilation.py";

// The version of each file is the release's: it is filled in where rules are printed.
constexpr auto kRules = std::to_array<RuleInfo>({
    // --- block sizes
    {"VLLM-KV-BLOCK-PREFERRED", "The block size is the one that the attention backend prefers.",
     "No kernel of the backend reads blocks of the default size.", "", kPlatform, ""},
    {"VLLM-KV-BLOCK-NONE", "The attention backends of the layers share no block size.",
     "Each layer chose its backend on its own, and one size serves them all.",
     "Choose one backend for all layers (--attention-backend).", kPlatform, ""},
    {"VLLM-KV-BLOCK-HYBRID", "The block size grew until an attention page holds a state.",
     "Attention and state-space layers share one pool of pages, so their pages must be equal.",
     "Expect it; a given block size is overridden.", kPlatform, ""},
    {"VLLM-KV-BLOCK-MIXED",
     "The block size grew until a quantized page holds that of an unquantized layer.",
     "Layers that are left out of a quantized cache share its pool of pages.",
     "Leave no layer out, or expect larger blocks.", kPlatform, ""},
    {"VLLM-KV-BLOCK-ALIGNED-REFUSED", "The aligned block size suits not all attention backends.",
     "Alignment follows the first backend only.",
     "Choose one backend for all layers (--attention-backend).", kPlatform, ""},
    {"VLLM-KV-BLOCK-INTERLEAVE", "The block size is no multiple of the interleave of ranks.",
     "Ranks of context parallelism hold runs of tokens that must not cross a block.",
     "Choose an interleave size that divides the block size.", kConfig, ""},
    {"VLLM-KV-BLOCK-BATCHED-TOKENS", "A block is longer than the tokens of a step.",
     "States are aligned to blocks, and a step must be able to end at one.",
     "Raise --max-num-batched-tokens.", kConfig, ""},
    {"VLLM-KV-KERNEL-BLOCK", "No kernel block divides the block size.",
     "A block is split into kernel blocks of a size that every backend of the group reads.",
     "Choose a block size that is a multiple of the kernels'.", kWorkerUtils, ""},
    // --- pages
    {"VLLM-KV-STATE-PADDED", "A state's page is padded to that of attention layers.",
     "Attention and state-space layers share one pool of pages, so their pages must be equal.", "",
     kPlatform, ""},
    {"VLLM-KV-SKIP-SMALLER", "A token of an unquantized layer takes less than a quantized one.",
     "Only the quantized pages grow.", "Choose another cache type, or leave no layer out.",
     kPlatform, ""},
    {"VLLM-KV-PAGE-INDIVISIBLE", "Pages of the layers cannot be made equal.",
     "A page does not divide the largest one, and its backend cannot read a padded page.",
     "Choose another attention backend or another cache type for these layers.", kGroups, ""},
    {"VLLM-KV-PAGE-UNSCALABLE", "Pages of the layers cannot be made equal.",
     "A state's page does not grow with the block size.",
     "Choose another attention backend or another cache type for these layers.", kGroups, ""},
    {"VLLM-KV-WINDOWS-DIFFER", "Layers of one group have windows of different lengths.",
     "Without the hybrid manager all layers share one table of blocks.",
     "Leave the hybrid KV cache manager on.", kSpecs, ""},
    {"VLLM-KV-HYBRID-OFF-MIXED", "Without the hybrid manager the layers have no common format.",
     "Only windows and chunks can be kept as full attention.",
     "Leave the hybrid KV cache manager on.", kGroups, ""},
    {"VLLM-KV-LOCAL-AS-FULL", "Windowed or chunked layers keep every token.",
     "They share the table of blocks of the full layers; only their computation stays local.",
     "Leave the hybrid KV cache manager on to save memory.", kGroups, ""},
    {"VLLM-KV-GROUPS-INCOMPLETE", "The groups of layers leave some out.",
     "Layers repeat in no pattern that the grouping knows.",
     "Choose another attention backend for these layers.", kGroups, ""},
    {"VLLM-KV-LAYOUT-CONFLICT", "No memory layout suits all attention backends.",
     "One layout serves the whole worker.",
     "Choose one backend for all layers (--attention-backend).", kLayouts, ""},
    {"VLLM-KV-LAYOUT-REFUSED", "A backend does not take the layout that was asked for.",
     "VLLM_KV_CACHE_LAYOUT must be one that every backend takes.", "Unset VLLM_KV_CACHE_LAYOUT.",
     kLayouts, ""},
    // --- checks after the model is built
    {"VLLM-DCP-NO-LSE", "A layer's implementation does not return what ranks merge by.",
     "Decode context parallelism merges partial results by the log-sum-exp of each rank.",
     "Choose a backend that returns it, or leave decode context parallelism out.", kContextParallel,
     ""},
    {"VLLM-DCP-INTERLEAVE-SPECULATION",
     "A layer's implementation takes no speculation with an interleave above 1.",
     "Drafted tokens of one request would lie on several ranks.",
     "Set the interleave size to 1, or leave speculation out.", kContextParallel, ""},
    {"VLLM-DCP-WINDOW", "Decode context parallelism has no sliding windows.",
     "The memory estimate of a window counts whole sequences.",
     "Leave decode context parallelism out for this model.", kSpecs, ""},
    {"VLLM-PCP-UNSUPPORTED", "A layer's backend has no prefill context parallelism.",
     "Prefills are split over ranks by the backend itself.",
     "Leave prefill context parallelism out, or choose another backend.", kContextParallel, ""},
    {"VLLM-BUILDER-FLASHINFER-WINDOW", "FLASHINFER fails on Hopper with sliding windows.",
     "Selection does not ask about windows; the metadata builder refuses them.",
     "Leave --attention-backend out: FLASH_ATTN serves this model.", kFlashInfer, ""},
    {"VLLM-BUILDER-INDEXER-INTERLEAVE", "A sparse indexer takes no interleave above 1.",
     "Its code for it was not validated.", "Set the interleave size to 1.", kIndexer, ""},
    // --- CUDA graphs
    {"VLLM-GRAPH-EAGER", "Eager execution turns CUDA graphs off.", "The user asked for it.",
     "Leave --enforce-eager out.", kConfig, ""},
    {"VLLM-GRAPH-DYNAMIC-SPECULATION", "Dynamic speculation keeps piecewise graphs only.",
     "Query lengths change from step to step.", "", kConfig, ""},
    {"VLLM-GRAPH-NOT-COMPILED", "Piecewise CUDA graphs need piecewise compilation.",
     "The pieces are what the compiler leaves between attention calls.",
     "Leave the compilation mode at its default.", kConfig, ""},
    {"VLLM-GRAPH-POOLING", "Pooling models keep piecewise graphs only.",
     "Their batches are prefills of any length.", "", kConfig, ""},
    {"VLLM-GRAPH-ENCODER-DECODER", "Encoder-decoder models keep graphs of decode batches only.",
     "Batches with an encoder's output have no fixed shape.", "", kConfig, ""},
    {"VLLM-GRAPH-CONNECTOR", "The KV connector keeps piecewise graphs only.",
     "It transfers the cache layer by layer, outside of graphs.", "", kConfig, ""},
    {"VLLM-GRAPH-MIXED-BATCH", "The weakest backend has no graphs of mixed batches.",
     "Its kernels choose by query length, which a graph freezes.",
     "Leave cudagraph_mode at its default.", kCompilation, ""},
    {"VLLM-GRAPH-NEVER", "The weakest backend has no full CUDA graphs.",
     "Its metadata depend on the lengths in a batch.", "", kCompilation, ""},
    {"VLLM-GRAPH-SPECULATION", "The weakest backend has graphs of single-token decodes only.",
     "Speculation decodes several tokens of a request at once.",
     "Choose an attention backend with graphs of uniform batches.", kCompilation, ""},
    {"VLLM-GRAPH-FULL-UNSUPPORTED", "Full CUDA graphs are asked for and no backend level allows.",
     "The mode cannot be lowered without compilation.",
     "Set cudagraph_mode to PIECEWISE, with compilation on.", kCompilation, ""},
});

}  // namespace

std::span<const RuleInfo> kv_cache_rules() { return kRules; }

}  // namespace kernelpath::engines::vllm
