#include "engines/kernelpath/rules.h"

#include "base/assert.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::kernelpath {
namespace {

constexpr std::string_view kVersion = "0.1.0";
constexpr std::string_view kTable = "lib/attention/backend_table.h";
constexpr std::string_view kRequest = "lib/attention/layer_request.cpp";
constexpr std::string_view kLaunch = "lib/engines/kernelpath/launch.cpp";
constexpr std::string_view kLayers = "lib/engines/kernelpath/layers.cpp";
constexpr std::string_view kResolve = "lib/engines/kernelpath/resolve.cpp";
constexpr std::string_view kRanks = "lib/engines/kernelpath/ranks.cpp";
constexpr std::string_view kModels = "lib/registry/own_models.cpp";
constexpr std::string_view kGguf = "lib/config/gguf_words.cpp";
constexpr std::string_view kMemory = "lib/engines/kernelpath/memory_resolution.cpp";

constexpr auto kRules = std::to_array<RuleInfo>({
    {"KP-OPTION", "The runtime has no such option.",
     "It runs tensor and decode context parallelism, n-gram speculation, and weights as they are "
     "stored.",
     "Leave the option out for this engine.", kLaunch, kVersion},
    {"KP-VALUE", "The final value of an option.", "", "", kLaunch, kVersion},
    {"KP-GGUF", "The configuration of a GGUF file.",
     "The file's metadata are read under the names that config.json has for them.",
     "Give the folder with config.json and safetensors files instead.", kGguf, kVersion},
    {"KP-MODEL-CLASS", "The class that serves the architecture.",
     "architectures[0] is looked up; external providers come before built-in classes.", "", kModels,
     kVersion},
    {"KP-MODEL-UNKNOWN", "No class serves the architecture.",
     "Each class is an implementation of one family's layers.",
     "Use another engine, or a provider that maps the architecture to a class that fits it.",
     kModels, kVersion},
    {"KP-MODEL-FOREIGN", "An external provider names a class that this library does not have.",
     "A provider maps an architecture to a class; the class itself is code of this library.",
     "Let the provider name a class of --list architectures.", kModels, kVersion},
    {"KP-LAYER-KIND", "A layer of a kind that the runtime does not have.",
     "It has attention (full, windowed, chunked, index-sparse, latent) and Kimi's delta rule.",
     "Use another engine for this model.", kLayers, kVersion},
    {"KP-LAYER-SIZE", "Sizes of a layer are missing or contradict each other.",
     "A layer is built from its geometry before any weight is read.", "Correct config.json.",
     kLayers, kVersion},
    {"KP-SPECULATIVE-STATE", "Speculation for a model whose layers keep a recurrent state.",
     "A rejected token is undone by forgetting its rows of the cache; a state has no rows.",
     "Leave --speculative out for this model.", kLayers, kVersion},
    {"KP-PARALLEL", "The model cannot be divided among the ranks.",
     "A rank takes whole heads and equal inner widths; KV heads are divided evenly, or each is "
     "kept "
     "by as many ranks; blocks of quantised weights that share a scale are not cut.",
     "Choose a size that divides them.", kLayers, kVersion},
    {"KP-TENSOR-PARALLEL", "What a rank of --tp has.",
     "Sums over ranks are added in the order of the ranks, so that all have the same bits.",
     "Start as many ranks: mpirun -np N llm-run --tp N.", kRanks, kVersion},
    {"KP-CONTEXT-PARALLEL", "What a rank of --dcp has.",
     "Attention over a part of the keys gives an output and a log-sum-exp; merging those of all "
     "parts, with a sink once, is attention over all keys.",
     "Start as many ranks: mpirun -np N llm-run --dcp N.", kRanks, kVersion},
    {"KP-BACKEND", "The attention backend of a group of layers.",
     "The first row of the capability table that claims all that the layers need.", "", kTable,
     kVersion},
    {"KP-MATRIX-KERNEL", "The kernels that multiply with the weights.",
     "Every set of kernels reads every weight format; they differ in the instructions they need.",
     "Say --kernel to choose one.", kResolve, kVersion},
    {"KP-BACKEND-ALIAS", "Another engine's backend name stands for FUSED.",
     "Configurations carry the names of the engine that they were written for.",
     "Write FUSED to say what runs.", kTable, kVersion},
    {"KP-FALLBACK", "Another backend runs in place of the one that was named.",
     "The user said that it may (--fallback warn); without that, a refusal is an error.",
     "Name the backend that runs, or one of the changes that --why-not lists.", kLaunch, kVersion},
    // Refusals of the capability table, with its ids.
    {"KP-BUILD", "This build has no kernels of the backend.",
     "Optional libraries are used where the build found them.",
     "Build with the library, or choose another backend.", kTable, kVersion},
    {"KP-PLATFORM", "The backend has no kernels for this device.",
     "A row of the table is one backend on one platform.", "Choose --device cpu.", kTable,
     kVersion},
    {"KP-FEATURE", "The backend lacks a feature of the layer.",
     "What a backend claims runs on a real kernel in a test; the rest is refused.",
     "Choose another backend.", kTable, kVersion},
    {"KP-CHUNK", "The backend has no chunked attention and sequences may be longer than a chunk.",
     "Up to one chunk, chunked and full attention are the same.",
     "Choose another backend, or a shorter --max-model-len.", kRequest, kVersion},
    {"KP-KV-DTYPE",
     "The backend does not read caches of this type, or rows do not fill its blocks.",
     "Values of nvfp4 share a scale by sixteen.", "Choose another --kv.", kRequest, kVersion},
    {"KP-LAYOUT", "The backend does not read pages of this layout.", "", "Choose the other layout.",
     kRequest, kVersion},
    {"KP-PAGE-SIZE", "The page size is no multiple of what the backend's tiles need.", "",
     "Choose another --page-size.", kRequest, kVersion},
    {"KP-HEAD-DIM", "A head size is outside the backend's range.", "", "Choose another backend.",
     kRequest, kVersion},
    {"KP-GRAPH", "The backend cannot be captured at the level asked for.", "",
     "Run without CUDA graphs.", kRequest, kVersion},
    {"KP-LSE-BASE", "The log-sum-exp is returned in another base than it is merged in.",
     "Numbers of one base read as another give plausible, wrong sums.", "Choose another backend.",
     kRequest, kVersion},
    {"KP-NO-BACKEND", "No attention backend runs these layers here.",
     "Every row of the table was asked; each says why not.",
     "See the steps of the backends above it.", kTable, kVersion},
    // Memory.
    {"KP-WEIGHTS", "Bytes of the weights of one rank.", "Weights stay in their stored type.", "",
     kMemory, kVersion},
    {"KP-WEIGHTS-UNKNOWN", "The weights could not be counted.", "", "", kMemory, kVersion},
    {"KP-WEIGHTS-OVER-MEMORY", "The weights do not fit the device.", "",
     "Choose a device with more memory, or more ranks.", kMemory, kVersion},
    {"KP-KV", "Bytes of the KV cache.", "Every layer keeps its rows for every token.", "", kMemory,
     kVersion},
    {"KP-STATE", "Bytes of a sequence's recurrent state.", "", "", kMemory, kVersion},
});

}  // namespace

std::span<const RuleInfo> rules() { return kRules; }

void append_step(StepDraft draft, std::vector<Step>& steps) {
  const auto* const rule = std::ranges::find(kRules, draft.rule, &RuleInfo::id);
  KERNELPATH_ASSERT(rule != kRules.end());
  steps.push_back(step_of(std::move(draft), *rule, "kernelpath"));
}

}  // namespace kernelpath::engines::kernelpath
