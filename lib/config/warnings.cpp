#include "config/warnings.h"

#include "base/text.h"

#include <algorithm>
#include <array>

namespace kernelpath::config {
namespace {

constexpr std::array<WarningInfo, 25> kWarnings = {{
    {"CONFIG-ARCH-CONFLICT",
     "architectures[0] is a class of another family than model_type says; engines differ in which "
     "of the two they follow."},
    {"CONFIG-ARCH-MISSING",
     "The file names no architecture; the class that model_type stands for is shown instead. "
     "Engines that read architectures alone refuse the file."},
    {"CONFIG-ARCH-MULTIPLE",
     "The file names more than one architecture; an engine takes the first that it knows, "
     "TensorRT-LLM only the first."},
    {"CONFIG-CHUNK-UNUSED",
     "attention_chunk_size is stated, but no layer of this family attends in chunks."},
    {"CONFIG-CODE-ELSEWHERE",
     "auto_map names code of another repository. Tools that trust remote code would fetch and run "
     "it; kernelpath never does."},
    {"CONFIG-CODE-FIELD",
     "A field that has made other tools import or fetch code; kernelpath ignores it."},
    {"CONFIG-DTYPE-CONFLICT", "dtype and torch_dtype differ; the newer name, dtype, counts."},
    {"CONFIG-FLOAT-INTEGER",
     "A number with a fraction or an exponent stands where an integer is needed; its value is "
     "exact "
     "and was taken."},
    {"CONFIG-GEOMETRY-DEFAULT",
     "The file states neither layers nor width nor heads; the family's defaults count."},
    {"CONFIG-HEAD-DIM",
     "head_dim is missing and hidden_size is not a multiple of the heads; the family has another "
     "rule."},
    {"CONFIG-KV-SCALES",
     "An FP8 KV cache is stated, but no tensor holds its scales; engines will use 1.0."},
    {"CONFIG-KV-SCHEME",
     "kv_cache_scheme is a string where an object is usual; it was read as the type."},
    {"CONFIG-LAYER-COUNT",
     "num_hidden_layers differs from the length of the list of layers; this family takes the "
     "list."},
    {"CONFIG-NO-LIMIT", "A length beyond 64 bits is read as \"no limit\"."},
    {"CONFIG-QUANT-CONFLICT",
     "config.json and the quantisation file beside it disagree; TensorRT-LLM believes the file "
     "beside it, vLLM and SGLang believe config.json."},
    {"CONFIG-QUANT-METHOD",
     "quantization_config has no quant_method; another field tells the method, or nothing does."},
    {"CONFIG-REMOTE-CODE",
     "The architecture is no class of transformers: auto_map names code that comes with the model. "
     "Nothing of it was run; an engine needs its own class or permission to run it."},
    {"CONFIG-ROPE-BOTH",
     "Both rope_parameters and rope_scaling are given; the newer one, rope_parameters, counts."},
    {"CONFIG-ROPE-TYPE-CONFLICT", "rope_type and type differ; the newer name, rope_type, counts."},
    {"CONFIG-TEXT-CONFLICT",
     "The top of the file and its language model state different sizes; the language model "
     "counts."},
    {"CONFIG-WINDOW-LARGE",
     "The sliding window is wider than the longest context, so it cuts nothing off."},
    {"CONFIG-WINDOW-LAYERS",
     "max_window_layers is more than the number of layers, so no layer has the sliding window."},
    {"CONFIG-WINDOW-MISSING",
     "Layers are said to slide, but there is no window; they are read as full attention."},
    {"CONFIG-WINDOW-UNUSED", "sliding_window is stated, but models of this family read none."},
    {"INPUT-LINK-OUTSIDE",
     "The file is a symbolic link to a place outside the model's folder; --strict refuses it."},
}};

}  // namespace

std::span<const WarningInfo> warning_table() { return kWarnings; }

const WarningInfo* find_warning_info(std::string_view code) {
  const auto* const found =
      std::find_if(kWarnings.begin(), kWarnings.end(),
                   [&](const WarningInfo& row) { return equal_ignoring_case(row.code, code); });
  return found == kWarnings.end() ? nullptr : &*found;
}

}  // namespace kernelpath::config
