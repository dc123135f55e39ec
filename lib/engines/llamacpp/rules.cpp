#include "engines/llamacpp/rules.h"

#include "base/assert.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr std::string_view kVersion = "0c1e5709";
constexpr std::string_view kConverter = "conversion/base.py";
constexpr std::string_view kModel = "src/llama-model.cpp";
constexpr std::string_view kLoad = "src/llama.cpp";
constexpr std::string_view kContext = "src/llama-context.cpp";
constexpr std::string_view kCache = "src/llama-kv-cache.cpp";
constexpr std::string_view kCuda = "ggml/src/ggml-cuda/fattn.cu";
constexpr std::string_view kCpu = "ggml/src/ggml-cpu/ops.cpp";
constexpr std::string_view kOptions = "common/arg.cpp";
constexpr std::string_view kFit = "common/fit.cpp";

constexpr auto kRules = std::to_array<RuleInfo>({
    {"LCPP-CONVERT", "The converter names the GGUF architecture.",
     "llama.cpp loads GGUF files; a Hugging Face folder is converted first.", "", kConverter,
     kVersion},
    {"LCPP-CONVERT-OVERRIDE", "The converter's class takes another GGUF architecture.",
     "Some classes serve several architectures and look into the config.", "", kConverter,
     kVersion},
    {"LCPP-CONVERT-NO-NAME", "The converter finds no architecture in the config.",
     "It reads architectures of the top or of the text config, or ssm_cfg.",
     "Add the architectures field.", kConverter, kVersion},
    {"LCPP-CONVERT-UNSUPPORTED", "The converter has no class for the architecture.",
     "Its table is a fixed list; there is no fallback.",
     "Use a newer version, or a GGUF file that somebody else converted.", kConverter, kVersion},
    {"LCPP-ARCH-UNKNOWN", "general.architecture is a name that the engine does not know.",
     "Names are compared exactly; there is no fallback class.",
     "Use a version that has the architecture.", kModel, kVersion},
    {"LCPP-ARCH-NO-CLASS", "The name is known, but no class loads it.",
     "A name may outlive or precede its class.", "", kModel, kVersion},
    {"LCPP-ARCH-PROJECTOR", "The file holds a multimodal projector, not a language model.",
     "Projectors are loaded beside the model.", "Give the language model's file.", kLoad, kVersion},
    {"LCPP-HPARAMS", "The metadata misses a key or holds a wrong one.",
     "Each class reads its keys by name and type, and stops at the first that it needs.",
     "Convert the model again with this version's converter.", kModel, kVersion},
    {"LCPP-TENSORS", "The class refuses the model by its metadata while it loads tensors.",
     "Some classes check numbers only then.", "", kModel, kVersion},
    {"LCPP-ABORT", "An assertion of the engine fails: the process ends.",
     "Numbers that no real model has are asserted, not refused.", "Check the file's metadata.",
     kModel, kVersion},
    {"LCPP-CLASS", "The model class by general.architecture.",
     "Every architecture has one class; it reads the keys under its own name.", "", kModel,
     kVersion},
    {"LCPP-WINDOW-IGNORED", "The sliding window is not used.",
     "Only classes that ask for the key have sliding layers; the others attend to everything.",
     "Nothing is lost but memory; text beyond the window may differ.", kModel, kVersion},
    {"LCPP-ARGUMENT", "A value that the user set.",
     "Everything else is at the default of the command-line tools.", "", kOptions, kVersion},
    {"LCPP-NO-OPTION", "The engine has nothing like this option.",
     "There are no pages, ranks or attention backends to choose.", "Leave the option out.",
     kOptions, kVersion},
    {"LCPP-CONTEXT", "The context's sizes.",
     "Cells are counted in multiples of 256, for each sequence or for all.", "", kContext,
     kVersion},
    {"LCPP-CONTEXT-ROUNDED", "The context is not what was asked for.",
     "Every sequence gets the same number of cells, a multiple of 256.",
     "Ask for a multiple of 256 times the number of sequences.", kContext, kVersion},
    {"LCPP-CONTEXT-OVER-TRAINED", "The context is longer than the model was trained for.",
     "The engine warns and goes on.", "Lower --max-model-len, or scale RoPE.", kContext, kVersion},
    {"LCPP-CONTEXT-REFUSED", "The engine makes no context of these parameters.",
     "It checks cache types, flash attention and sizes before anything is allocated.", "", kContext,
     kVersion},
    {"LCPP-SPLIT-TENSOR", "--split-mode tensor is not implemented for the architecture.",
     "Its graph cannot be cut along heads.", "Use --split-mode layer.", kModel, kVersion},
    {"LCPP-SPLIT-ROW", "--split-mode row is not possible on these GPUs.",
     "The CUDA backend has no split buffers since --split-mode tensor replaced them.",
     "Use --split-mode layer or tensor.", kModel, kVersion},
    {"LCPP-MAIN-GPU", "--main-gpu names a GPU that there is not.",
     "--split-mode none uses that one GPU.", "Name one of the GPUs, from 0.", kLoad, kVersion},
    {"LCPP-SPLIT-ALONE", "--split-mode tensor on a single device.",
     "Nothing is split, and the wrapper that splits costs time.", "Use --split-mode layer.",
     kContext, kVersion},
    {"LCPP-FA-ASKED", "Flash attention is on because it was asked for.",
     "It is not probed: what a device cannot do is scheduled on the CPU.", "", kContext, kVersion},
    {"LCPP-FA-OFF", "Flash attention is off because it was asked for.",
     "Scores are then a matrix product, a softmax and another product.", "", kContext, kVersion},
    {"LCPP-FA-GROK", "Flash attention is forced off for Grok.",
     "Its soft cap differs from the operation's.", "", kContext, kVersion},
    {"LCPP-FA-TENSOR-SPLIT", "Flash attention is on because --split-mode tensor needs it.",
     "The cache is cut along heads only in the layout of flash attention.", "", kContext, kVersion},
    {"LCPP-FA-QUANTIZED-V", "Flash attention is on because a quantised V cache needs it.",
     "auto becomes on, so that nothing is probed and nothing falls back later.",
     "Use f16 values where attention would run on the CPU.", kContext, kVersion},
    {"LCPP-FA-PROBED", "Flash attention is on: every layer's device serves the operation.",
     "auto builds the graph of one token a sequence and asks where each operation goes.", "",
     kContext, kVersion},
    {"LCPP-FA-PROBE-FAILED", "Flash attention is off: one layer's device does not serve it.",
     "auto turns it off for all layers; V stays as it was laid out, which costs a copy each step.",
     "Use a cache type or a head size that the device has a kernel for.", kContext, kVersion},
    {"LCPP-FA-ON-CPU", "Attention runs on the CPU though the layers are on a GPU.",
     "Flash attention that was asked for is never probed.",
     "Use -fa auto, or a cache type that the device has a kernel for.", kCuda, kVersion},
    {"LCPP-MEMORY", "Which caches and states the class keeps.",
     "The class decides; a layer may have a cache, a window, an indexer or a state.", "", kModel,
     kVersion},
    {"LCPP-V-PADDED", "V is padded to the widest layer.",
     "Without flash attention V is stored transposed, with one width for all layers.",
     "Turn flash attention on.", kCache, kVersion},
    {"LCPP-ROTATION", "Keys or values are rotated before they are quantised.",
     "A Hadamard rotation lowers the error; LLAMA_ATTN_ROT_DISABLE=1 turns it off.", "", kCache,
     kVersion},
    {"LCPP-KERNEL", "The CUDA kernel of a phase.",
     "Capability, head sizes, types, heads that share K and V, and tokens decide.", "", kCuda,
     kVersion},
    {"LCPP-KERNEL-CONVERTS", "K and V are converted to f16 on every call.",
     "The build has no vector kernel for this pair of types, or the kernel reads f16 only.",
     "Use a pair that the build has, or build with GGML_CUDA_FA_ALL_QUANTS.", kCuda, kVersion},
    {"LCPP-KERNEL-ABORTS", "No variant of the kernel fits: the process would end.",
     "The operation was accepted, but its variants do not cover the number of heads.", "", kCuda,
     kVersion},
    {"LCPP-KERNEL-CPU", "The CPU's kernel.", "Layers without a GPU run there.", "", kCpu, kVersion},
    {"LCPP-DEVICE-UNKNOWN", "The device has a backend whose choices this build does not know.",
     "Only CUDA, HIP and the CPU are described.", "", kModel, kVersion},
    {"LCPP-WEIGHTS", "The weights.",
     "The tensors of a GGUF file, or 16 bits a parameter as the converter writes them.", "",
     kConverter, kVersion},
    {"LCPP-WEIGHTS-UNKNOWN", "The weights cannot be counted from what the config states.",
     "A size is missing.", "Give a GGUF file, or the model's folder.", kConverter, kVersion},
    {"LCPP-OVER-MEMORY", "Weights, cache and states do not fit the device together.",
     "All of them are allocated before the first token.",
     "Quantise the cache or the weights, lower the context, or leave layers on the CPU.", kContext,
     kVersion},
    {"LCPP-FIT", "What the user leaves open shrinks until the model fits the device.",
     "--fit is on by default: it shortens the context to no less than --fit-ctx, then keeps layers "
     "in host memory.",
     "State -c and -ngl, quantise the cache or the weights, or take a larger device.", kFit,
     kVersion},
    {"LCPP-SPREAD", "What one device holds.",
     "Layers go to the GPUs by their shares; each GPU keeps the caches and states of its layers.",
     "", kModel, kVersion},
});

}  // namespace

std::span<const RuleInfo> rule_table() { return kRules; }

void append_step(StepDraft draft, std::vector<Step>& steps) {
  const auto* const rule = std::ranges::find(kRules, draft.rule, &RuleInfo::id);
  KERNELPATH_ASSERT(rule != kRules.end());
  steps.push_back(step_of(std::move(draft), *rule, "llama.cpp"));
}

}  // namespace kernelpath::engines::llamacpp
