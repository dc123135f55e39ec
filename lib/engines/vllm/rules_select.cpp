#include "engines/vllm/rules_select.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kBackendBase = "vllm/v1/attention/backend.py";
constexpr std::string_view kSelector = "vllm/platforms/cuda.py";
constexpr std::string_view kEnum = "vllm/v1/attention/backends/registry.py";
constexpr std::string_view kAttentionConfig = "vllm/config/attention.py";
constexpr std::string_view kPrefillBase = "vllm/v1/attention/backends/mla/prefill/base.py";
constexpr std::string_view kPrefillSelector = "vllm/v1/attention/backends/mla/prefill/selector.py";
constexpr std::string_view kRegistry = "vllm/model_executor/models/registry.py";
constexpr std::string_view kModelConfig = "vllm/config/model.py";
constexpr std::string_view kArgs = "vllm/engine/arg_utils.py";
constexpr std::string_view kCacheConfig = "vllm/config/cache.py";
constexpr std::string_view kWorker = "vllm/v1/worker/gpu_worker.py";
constexpr std::string_view kOwnTest = "A backend's class answers this before any layer is built.";

// The version of each file is the release's: it is filled in where rules are printed.
constexpr auto kRules = std::to_array<RuleInfo>({
    // --- arguments
    {"VLLM-ARG-FINAL", "The final value of an argument, and who set it.",
     "Hooks of a model's class and later stages overwrite what the user or the default said.", "",
     kArgs, ""},
    {"VLLM-ARG-REFUSED", "The engine refuses the value of an argument while it reads it.",
     "Names and types are checked before a model or a GPU is looked at.",
     "Correct the value; --list settings has the arguments with their choices.", kArgs, ""},
    {"VLLM-ARG-UNREAD", "An option that no argument of this engine stands for has no effect.",
     "The engine has no such argument.", "Leave the option out for this engine.", kArgs, ""},
    {"VLLM-ARG-EP", "The size of an expert-parallel group is not an argument.",
     "The experts are spread over all ranks of tensor and data parallelism.",
     "Set --tp and --dp so that their product is the size.", kArgs, ""},
    // --- model class
    {"VLLM-CLASS", "The class that serves the model.",
     "The first architecture of config.json that the registry knows decides.", "", kRegistry, ""},
    {"VLLM-CLASS-NORMALISED", "The architecture's ending was replaced by one the registry knows.",
     "Endings such as ForTokenClassification stand for an adapter around the base class.", "",
     kRegistry, ""},
    {"VLLM-CLASS-TRANSFORMERS", "The Transformers library's own modelling code runs the model.",
     "No class of vLLM is registered for the architecture, or model_impl asks for it.",
     "Check that the speed is what you expect: kernels of the model itself are not vLLM's.",
     kRegistry, ""},
    {"VLLM-CLASS-PACKAGE", "The class needs a package that the release does not bring.",
     "Its module imports the package.", "Install the package.", kRegistry, ""},
    {"VLLM-UNKNOWN-ARCH", "No class for the architecture.",
     "Neither the registry nor the Transformers library can serve it.",
     "Use a release that has it, or register it from a plugin.", kRegistry, ""},
    {"VLLM-REMOVED-ARCH", "An earlier release had a class for the architecture.",
     "Models that nobody maintained were removed.", "Use the release that the message names.",
     kRegistry, ""},
    {"VLLM-OUT-OF-TREE-ARCH", "A plugin serves the architecture.",
     "The class moved out of the engine.", "Install the plugin that the message names.", kRegistry,
     ""},
    {"VLLM-TRANSFORMERS-NO-CLASS", "model_impl=transformers finds no class.",
     "The Transformers library has no model of this name.", "Leave model_impl at auto.",
     kModelConfig, ""},
    {"VLLM-TRANSFORMERS-INCOMPATIBLE", "The Transformers class cannot run inside the engine.",
     "Its attention does not go through the interface that backends plug into.",
     "Leave model_impl at auto.", kModelConfig, ""},
    {"VLLM-DEVICE", "The engine has no platform for the device.",
     "Its platforms in this build are CUDA, ROCm and CPU.",
     "Choose another device (--list devices).", "vllm/platforms/__init__.py", ""},
    // --- what a backend is asked, in the engine's order
    {"VLLM-SEL-HEAD-SIZE", "The backend has no kernel for the head size.", kOwnTest,
     "Leave the choice to the engine.", kBackendBase, ""},
    {"VLLM-SEL-DTYPE", "The backend does not compute in the model's dtype.", kOwnTest,
     "Use --dtype bfloat16 or float16.", kBackendBase, ""},
    {"VLLM-SEL-KV-DTYPE", "The backend cannot read a KV cache of this type here.", kOwnTest,
     "Choose another --kv-cache-dtype, or leave the backend to the engine.", kBackendBase, ""},
    {"VLLM-SEL-BLOCK-SIZE", "The block size is no multiple of one of the kernel's.",
     "Kernels read whole pages of a few sizes.",
     "Leave --page-size out: the engine then takes a size that the backend has.", kBackendBase, ""},
    {"VLLM-SEL-MM-PREFIX", "The backend cannot attend an image prefix in both directions.",
     kOwnTest, "Leave the choice to the engine.", kBackendBase, ""},
    {"VLLM-SEL-MLA",
     "The backend is for multi-head latent attention and the layer is not, or the "
     "other way round.",
     "The caches of the two differ.", "Ask for a backend of the layer's kind.", kBackendBase, ""},
    {"VLLM-SEL-SINKS", "The backend has no attention sinks on this device.", kOwnTest,
     "Leave the choice to the engine.", kBackendBase, ""},
    {"VLLM-SEL-SPARSE",
     "The backend is for sparse attention and the layer is not, or the other way "
     "round.",
     "A sparse kernel reads the tokens that an indexer chose.",
     "Ask for a backend of the layer's kind.", kBackendBase, ""},
    {"VLLM-SEL-PER-HEAD-SCALES", "The backend has no KV scale per head.", kOwnTest,
     "Use a checkpoint with one scale per tensor.", kBackendBase, ""},
    {"VLLM-SEL-CAPABILITY", "The backend's kernels are not built for this compute capability.",
     kOwnTest, "Choose another device, or leave the choice to the engine.", kBackendBase, ""},
    {"VLLM-SEL-ATTN-TYPE", "The backend does not serve this kind of attention.",
     "Encoder and cross attention have no causal mask.", "Leave the choice to the engine.",
     kBackendBase, ""},
    {"VLLM-SEL-SLIDING-WINDOW", "The backend has no sliding window.", kOwnTest,
     "Leave the choice to the engine.", kBackendBase, ""},
    {"VLLM-SEL-RSWA", "The backend has no recurrent sliding-window attention.", kOwnTest,
     "Leave the choice to the engine.", kBackendBase, ""},
    {"VLLM-SEL-NON-CAUSAL", "The backend's kernels are causal only.", kOwnTest,
     "Leave the choice to the engine.", kBackendBase, ""},
    {"VLLM-SEL-NON-CAUSAL-DCP",
     "The backend has no non-causal latent attention over decode-context-parallel ranks.", kOwnTest,
     "Leave out --dcp.", kBackendBase, ""},
    {"VLLM-SEL-BATCH-INVARIANCE", "The backend's results depend on the batch.", kOwnTest,
     "Leave the choice to the engine, or VLLM_BATCH_INVARIANT unset.", kBackendBase, ""},
    {"VLLM-SEL-KV-CONNECTOR", "The backend's cache cannot be handed to a KV connector.", kOwnTest,
     "Leave the choice to the engine.", kBackendBase, ""},
    {"VLLM-SEL-PCP", "The backend has no prefill context parallelism.", kOwnTest, "Leave out --cp.",
     kBackendBase, ""},
    {"VLLM-SEL-DCP", "The backend has no decode context parallelism.",
     "Shards are merged by their log-sum-exp, which its kernel has to return.",
     "Leave out --dcp, or the choice to the engine.", kBackendBase, ""},
    {"VLLM-SEL-ADAPTIVE-VERIFICATION",
     "The backend reads query lengths on the host, which adaptive verification changes.", kOwnTest,
     "Leave the choice to the engine.", kBackendBase, ""},
    {"VLLM-SEL-COMBINATION", "The backend refuses this combination of values.",
     "Each value alone is served; its kernels do not serve all of them together.",
     "See the reason; --why-not names changes that were tried.", kBackendBase, ""},
    {"VLLM-SEL-IMPORT", "The backend's module cannot be imported.",
     "It imports a package that is not installed.", "Install the package.", kSelector, ""},
    {"VLLM-SEL-LAYOUT", "The backend shares no cache layout with the packed cache of the run.",
     "All layers of a worker keep their cache in one layout.", "Leave the choice to the engine.",
     "vllm/platforms/rocm.py", ""},
    // --- the choice
    {"VLLM-SEL-CHOSEN", "The backend that serves the layers.",
     "The first candidate of the order without a reason against it, or the one asked for.", "",
     kSelector, ""},
    {"VLLM-SEL-LATER", "A backend that would serve the layers as well, later in the order.",
     "The engine examines the whole order and takes the first.", "", kSelector, ""},
    {"VLLM-SEL-PRECLUDED", "A better backend was ruled out by --page-size alone.",
     "The size is a question to every candidate where the user gives it.",
     "Leave --page-size out: the engine then takes a size that the backend has.", kSelector, ""},
    {"VLLM-BACKEND-UNKNOWN", "The engine has no backend of this name.",
     "The name is checked while the attention configuration is built.",
     "--list backends has the names.", kAttentionConfig, ""},
    {"VLLM-BACKEND-NOT-REGISTERED", "The name is a placeholder that a plugin has to register.",
     "The enum holds it without a class.",
     "Register a class: --set vllm.register_backend.NAME=module.Class.", kEnum, ""},
    {"VLLM-SEL-PLUGIN", "A plugin's class stands behind the name.",
     "The last registration of a name counts.", "", kEnum, ""},
    {"VLLM-BACKEND-INVALID", "The backend that was asked for cannot serve the layers.",
     "The engine never falls back from a backend that the user named.",
     "Leave the choice to the engine, or see --why-not.", kSelector, ""},
    {"VLLM-BACKEND-NONE-VALID", "No backend can serve the layers.",
     "Every candidate of the order has a reason against it.",
     "See the reasons; change what most of them name.", kSelector, ""},
    {"VLLM-BACKEND-ENGINE-FAULT", "The engine raises while it examines a candidate.",
     "A rule reads a field that the model does not have.", "Ask for another backend by name.",
     kSelector, ""},
    {"VLLM-BACKEND-PLATFORM", "The platform cannot serve such a layer at all.",
     "It has one backend for each kind of layer.", "Choose another device.",
     "vllm/platforms/cpu.py", ""},
    // --- prefill of multi-head latent attention
    {"VLLM-PREFILL-CHOSEN", "The backend that runs the prefill of latent attention.",
     "The first candidate of the order without a reason against it, or the one asked for.", "",
     kPrefillSelector, ""},
    {"VLLM-PREFILL-CAPABILITY", "The prefill backend is not built for this compute capability.",
     kOwnTest, "Leave the choice to the engine.", kPrefillBase, ""},
    {"VLLM-PREFILL-DTYPE", "The prefill backend does not compute in the model's dtype.", kOwnTest,
     "Use --dtype bfloat16 or float16.", kPrefillBase, ""},
    {"VLLM-PREFILL-PACKAGE", "The prefill backend's package is not installed.", kOwnTest,
     "Install the package.", kPrefillBase, ""},
    {"VLLM-PREFILL-DIMS", "The prefill backend has no kernel for the model's dimensions.", kOwnTest,
     "Leave the choice to the engine.", kPrefillBase, ""},
    {"VLLM-PREFILL-BATCH-INVARIANCE", "The prefill backend's results depend on the batch.",
     kOwnTest, "Leave VLLM_BATCH_INVARIANT unset.", kPrefillBase, ""},
    {"VLLM-PREFILL-REFUSED", "No prefill backend, or not the one asked for, can run.",
     "Latent attention has a backend of its own for long queries.", "See the reasons.",
     kPrefillSelector, ""},
    {"VLLM-PREFILL-ABSENT", "The layer runs without a backend for long queries.",
     "Its implementation reads the sparse cache in prefill as well.", "", kPrefillSelector, ""},
    // --- what was found out later
    {"VLLM-SEL-DROPPED", "The backend that was asked for was dropped without an error.",
     "The platform has one backend for such layers, or the model's class chose another.",
     "Leave the choice to the engine.", kSelector, ""},
    {"VLLM-UNKNOWN-TO-US", "Something of this class could not be derived from the configuration.",
     "Its layers are built by code that is not restated here.",
     "Compare with the engine's start-up log.", kRegistry, ""},
    {"VLLM-STATE-BACKEND", "A layer that keeps a state instead of a cache, and its backend.",
     "State-space and linear attention have metadata builders of their own.", "",
     "vllm/model_executor/layers/mamba/abstract.py", ""},
    {"VLLM-DEEP-GEMM", "Sparse attention's indexer needs DeepGEMM on CUDA.",
     "Its logits are a DeepGEMM kernel; the layer refuses to be built without it.",
     "Install deep-gemm.", "vllm/model_executor/layers/sparse_attn_indexer.py", ""},
    // --- memory
    {"VLLM-WEIGHTS", "The weights of one rank.",
     "Counted from the checkpoint's files where they are there, else from the geometry.", "",
     kWorker, ""},
    {"VLLM-WEIGHTS-UNKNOWN", "The weights cannot be counted from what the config states.",
     "A size is missing, and no weight file or index is beside the config.",
     "Give the model's folder, with its index or its safetensors files.", kWorker, ""},
    {"VLLM-WEIGHTS-OVER-MEMORY", "The weights of one rank do not fit the device.",
     "The weights are loaded before anything else.",
     "Use more ranks (--tp, --pp), a device with more memory, or a smaller quantisation.", kWorker,
     ""},
    {"VLLM-KV-POOL", "The blocks of the KV cache that fit beside the weights.",
     "gpu_memory_utilization of the device's memory, less what a profiling run takes.", "", kWorker,
     ""},
    {"VLLM-KV-NO-ROOM", "No block of the KV cache fits beside the weights.",
     "gpu_memory_utilization leaves nothing after the weights.",
     "Use more ranks, a larger device, or raise gpu_memory_utilization.", kCacheConfig, ""},
    {"VLLM-KV-LENGTH-OVER-POOL", "One sequence of max_model_len does not fit the KV cache.",
     "The engine refuses to start: a request could never finish.",
     "Lower --max-model-len, or raise gpu_memory_utilization.", "vllm/v1/core/kv_cache_utils.py",
     ""},
    {"VLLM-KV-BATCH-OVER-POOL",
     "The sequences of one batch do not fit the KV cache together at the context length.",
     "Sequences that do not fit wait, or are preempted and computed again.",
     "Lower --batch-size or --max-model-len, or use a smaller cache dtype or more ranks.",
     "vllm/v1/core/kv_cache_utils.py", ""},
});

struct ReasonRule {
  std::string_view begins;
  std::string_view rule;
};

constexpr auto kReasons = std::to_array<ReasonRule>({
    {"head_size not supported", "VLLM-SEL-HEAD-SIZE"},
    {"dtype not supported", "VLLM-SEL-DTYPE"},
    {"kv_cache_dtype not supported", "VLLM-SEL-KV-DTYPE"},
    {"block_size not supported", "VLLM-SEL-BLOCK-SIZE"},
    {"partial multimodal token", "VLLM-SEL-MM-PREFIX"},
    {"MLA not supported", "VLLM-SEL-MLA"},
    {"non-MLA not supported", "VLLM-SEL-MLA"},
    {"attention sinks not supported", "VLLM-SEL-SINKS"},
    {"sink not supported", "VLLM-SEL-SINKS"},
    {"sparse not supported", "VLLM-SEL-SPARSE"},
    {"non-sparse not supported", "VLLM-SEL-SPARSE"},
    {"per-head quant scales", "VLLM-SEL-PER-HEAD-SCALES"},
    {"compute capability", "VLLM-SEL-CAPABILITY"},
    {"attention type", "VLLM-SEL-ATTN-TYPE"},
    {"sliding window", "VLLM-SEL-SLIDING-WINDOW"},
    {"R-SWA", "VLLM-SEL-RSWA"},
    {"non-causal attention not supported", "VLLM-SEL-NON-CAUSAL"},
    {"non-causal MLA attention with DCP", "VLLM-SEL-NON-CAUSAL-DCP"},
    {"batch invariance", "VLLM-SEL-BATCH-INVARIANCE"},
    {"KV connector", "VLLM-SEL-KV-CONNECTOR"},
    {"PCP not supported", "VLLM-SEL-PCP"},
    {"DCP not supported", "VLLM-SEL-DCP"},
    {"device-cpu query lens mismatch", "VLLM-SEL-ADAPTIVE-VERIFICATION"},
    {"ImportError", "VLLM-SEL-IMPORT"},
    {"ModuleNotFoundError", "VLLM-SEL-IMPORT"},
    {"OSError", "VLLM-SEL-IMPORT"},
    {"no KV cache layout in common", "VLLM-SEL-LAYOUT"},
    {"ValueError", "VLLM-BACKEND-NOT-REGISTERED"},
});

constexpr auto kPrefillReasons = std::to_array<ReasonRule>({
    {"compute capability", "VLLM-PREFILL-CAPABILITY"},
    {"dtype ", "VLLM-PREFILL-DTYPE"},
    {"batch invariance", "VLLM-PREFILL-BATCH-INVARIANCE"},
    {"Model does not have", "VLLM-PREFILL-DIMS"},
});

template <std::size_t N>
std::string_view rule_in(const std::array<ReasonRule, N>& rows, std::string_view reason,
                         std::string_view otherwise) {
  const auto* found = std::find_if(rows.begin(), rows.end(), [&](const ReasonRule& row) {
    return reason.starts_with(row.begins);
  });
  return found == rows.end() ? otherwise : found->rule;
}

}  // namespace

std::span<const RuleInfo> select_rules() { return kRules; }

std::string_view rule_of_reason(std::string_view reason) {
  return rule_in(kReasons, reason, "VLLM-SEL-COMBINATION");
}

std::string_view rule_of_prefill_reason(std::string_view reason) {
  return rule_in(kPrefillReasons, reason, "VLLM-PREFILL-PACKAGE");
}

void StepWriter::add(StepDraft draft) {
  const auto rule = std::find_if(rules_.begin(), rules_.end(),
                                 [&](const RuleInfo& row) { return row.id == draft.rule; });
  const RuleInfo without_file = {draft.rule, {}, {}, {}, {}, {}};
  Step step = step_of(std::move(draft), rule == rules_.end() ? without_file : *rule, "vLLM");
  step.source.version = "v" + profile_.version;
  steps_.push_back(std::move(step));
}

std::string file_of_class(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return {};
  std::string file(path.substr(0, dot));
  std::replace(file.begin(), file.end(), '.', '/');
  return file + ".py";
}

}  // namespace kernelpath::engines::vllm
