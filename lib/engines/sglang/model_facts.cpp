#include "engines/sglang/model_facts.h"

#include "engines/sglang/model_reader.h"
#include "engines/sglang/rule_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace kernelpath::engines::sglang {
namespace {

// Renames that configuration classes make before any rule sees the name.
struct Rename {
  std::string_view model_type;  // empty: any
  std::string_view from;        // empty: any
  std::string_view to;
};
constexpr std::array kRenames = {
    Rename{"olmo3", "", "Olmo2ForCausalLM"},
    Rename{"", "DeepseekV41ForCausalLM", "DeepseekV4ForCausalLM"},
    Rename{"deepseek_vl_v2", "", "DeepseekVL2ForCausalLM"},
    Rename{"dots_vlm", "", "DotsVLMForCausalLM"},
    Rename{"longcat_flash", "", "LongcatFlashForCausalLM"},
    Rename{"", "LongcatCausalLM", "LongcatFlashForCausalLM"},
    Rename{"", "LongcatFlashNgramForCausalLM", "LongcatFlashForCausalLM"},
    Rename{"multi_modality", "", "MultiModalityCausalLM"},
};

constexpr std::array<std::string_view, 5> kContextFields = {"max_sequence_length", "seq_length",
                                                            "max_seq_len", "model_max_length",
                                                            "max_position_embeddings"};
constexpr std::int64_t kDefaultContext = 2048;
constexpr std::int64_t kEmbeddingGemma2Context = 8192;

void rename_architectures(ModelReader& reader) {
  ModelFacts& facts = reader.out.facts;
  facts.architectures = reader.config.architectures();
  if (facts.architectures.empty()) facts.architectures.emplace_back();
  const std::string& auto_map_class =
      string_of(reader.config.stated("auto_map") == nullptr
                    ? nullptr
                    : reader.config.stated("auto_map")->find("AutoModel"));
  for (const Rename& rename : kRenames) {
    const bool type_fits =
        rename.model_type.empty() || rename.model_type == reader.config.model_type();
    const bool name_fits = rename.from.empty() || rename.from == facts.architecture();
    if (!type_fits || !name_fits || facts.architecture() == rename.to) continue;
    facts.stated_architecture = facts.architecture();
    facts.architectures = {std::string(rename.to)};
    return;
  }
  if (auto_map_class == "modeling_deepseekocr.DeepseekOCRForCausalLM" ||
      auto_map_class == "modeling_deepseekocr2.DeepseekOCR2ForCausalLM") {
    facts.stated_architecture = facts.architecture();
    facts.architectures = {"DeepseekOCRForCausalLM"};
  }
}

std::string stated_dtype(const HfConfig& config) {
  for (const std::string_view name : {"dtype", "torch_dtype"}) {
    std::string own = config.text_string(name);
    if (!own.empty()) return own;
  }
  for (const std::string_view name : {"dtype", "torch_dtype"}) {
    std::string outer = config.top_string(name);
    if (!outer.empty()) return outer;
  }
  return "float32";
}

std::string normal_dtype(std::string_view name) {
  if (name == "half") return "float16";
  if (name == "float") return "float32";
  return std::string(name);
}

void read_dtype(ModelReader& reader) {
  const std::string& asked = reader.options.dtype;
  if (asked != "auto") {
    reader.out.facts.dtype = normal_dtype(asked);
    return;
  }
  const std::string& architecture = reader.out.facts.architecture();
  const bool llava = architecture.starts_with("Llava") && architecture.ends_with("ForCausalLM");
  std::string dtype = llava ? "float16" : normal_dtype(stated_dtype(reader.config));
  if (dtype != "float32" && dtype != "float16" && dtype != "bfloat16") dtype = "float32";
  if (dtype == "float32") {
    const std::string& type = reader.config.text_model_type();
    const bool gemma = type.starts_with("gemma");
    if (gemma) {
      const std::string version = type == "gemma" ? "" : type.substr(5, 1);
      reader.out.messages.push_back(
          {.warning = false,
           .rule = std::string(kModelGemmaDtype),
           .text = fmt::format("For Gemma {}, we downcast float32 to bfloat16 instead of float16 "
                               "by default. Please specify `dtype` if you want to use float16.",
                               version)});
    }
    dtype = gemma ? "bfloat16" : "float16";
  }
  reader.out.facts.dtype = dtype;
}

double rope_factor(const HfConfig& config) {
  const json::Value* rope = config.text("rope_scaling");
  if (rope == nullptr || !rope->is_object()) rope = config.text("rope_parameters");
  if (rope == nullptr || !rope->is_object() || rope->members().empty()) return 1.0;
  if (rope->find("original_max_position_embeddings") != nullptr) return 1.0;
  if (string_of(rope->find("rope_type")) == "llama3") return 1.0;
  const json::Value* factor = rope->find_non_null("factor");
  return factor != nullptr && factor->is_number() ? factor->as_double() : 1.0;
}

std::int64_t derived_context(const HfConfig& config) {
  for (const std::string_view name : kContextFields) {
    const json::Value* value = config.text(name);
    if (value == nullptr || !value->is_number()) continue;
    const double length = rope_factor(config) * value->as_double();
    if (std::abs(length) > 9e15) return std::int64_t{1} << 53;
    return static_cast<std::int64_t>(length);
  }
  return kDefaultContext;
}

void read_context(ModelReader& reader) {
  const std::int64_t derived = derived_context(reader.config);
  ModelFacts& facts = reader.out.facts;
  facts.derived_context_len = derived;
  facts.context_len =
      reader.has("EmbeddingGemma2Model") ? std::min(derived, kEmbeddingGemma2Context) : derived;
  if (!reader.options.context_length) return;
  const std::int64_t asked = *reader.options.context_length;
  facts.context_len = asked;
  if (asked <= derived) return;
  const std::string text = fmt::format(
      "Warning: {} context_length ({}) is greater than the derived context_length ({}). This may "
      "lead to incorrect model outputs or CUDA errors. Note that the derived context_length may "
      "differ from max_position_embeddings in the model's config.",
      reader.options.draft ? "Target model's" : "User-specified", asked, derived);
  if (reader.options.allow_longer_context) {
    reader.out.messages.push_back(
        {.warning = true, .rule = std::string(kModelLongContext), .text = text});
    return;
  }
  reader.refuse("ValueError", std::string(kModelLongContext),
                text +
                    " To allow overriding this maximum, set the env var "
                    "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1");
}

void refuse_ambiguous(ModelReader& reader) {
  reader.refuse("AmbiguousGlobalPerLayerAttributeError", std::string(kModelHeadDim),
                std::string(kAmbiguousHeadDim));
}

// Multimodal input is off by default for some architectures, and the engine says so.
bool multimodal_enabled(ModelReader& reader) {
  if (reader.options.enable_multimodal) return *reader.options.enable_multimodal;
  if (reader.profile.in_group("multimodal_off_by_default", reader.out.facts.architecture()) &&
      !reader.options.transformers_implementation) {
    reader.out.messages.push_back(
        {.warning = false,
         .rule = std::string(kModelMultimodalOff),
         .text =
             fmt::format("Multimodal is disabled for {}. To enable it, set --enable-multimodal.",
                         reader.config.model_type())});
    return false;
  }
  const bool towers = reader.config.stated("vision_config") != nullptr &&
                      reader.config.stated("audio_config") != nullptr;
  if (reader.has("MiMoV2ForCausalLM") && !towers) {
    reader.out.messages.push_back(
        {.warning = false,
         .rule = std::string(kModelMultimodalOff),
         .text = "Multimodal is disabled for this MiMoV2 checkpoint: vision_config/audio_config "
                 "not found in the model config (likely a text-only MiMoV2 variant)."});
    return false;
  }
  return true;
}

void read_modalities(ModelReader& reader, bool enabled) {
  ModelFacts& facts = reader.out.facts;
  const HfConfig& config = reader.config;
  const bool lm_only = reader.options.language_model_only || config.top_true("language_model_only");
  const bool towers =
      config.stated("vision_config") != nullptr || config.stated("audio_config") != nullptr;
  const bool sub_config = config.nested() || (reader.options.transformers_implementation && towers);
  const bool v41_vision = config.model_type() == "deepseek_v41" &&
                          integer_of(config.top("vision_n_layers")).value_or(0) > 0;
  facts.is_multimodal =
      enabled && !lm_only && (reader.any_in("multimodal") || sub_config || v41_vision);
  facts.multimodal_breakable_graph = enabled && reader.any_in("multimodal_breakable_graph");
  facts.multimodal_chunked_prefill = enabled && !reader.any_in("no_chunked_prefill");
  facts.is_encoder_decoder = reader.any_in("encoder_decoder");
  facts.is_local_attention = reader.has("Llama4ForConditionalGeneration");
  facts.is_embedding_gemma =
      config.text_model_type() == "gemma3_text" && config.text_true("use_bidirectional_attention");
  facts.is_generation =
      !facts.is_embedding_gemma && !reader.any_in("not_generative") && !reader.options.is_embedding;
}

}  // namespace

std::string_view attention_arch_name(AttentionArch arch) {
  constexpr std::array<std::string_view, 3> kNames = {"MHA", "MLA", "SSM"};
  return kNames.at(static_cast<std::size_t>(arch));
}

std::string_view linear_kind_name(LinearKind kind) {
  constexpr std::array<std::string_view, 7> kNames = {
      "", "hybrid_gdn", "mamba2", "kimi_linear", "glm5_next", "hybrid_lightning", "registered"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::int64_t ModelFacts::kv_heads_per_rank(std::int64_t tensor_parallel) const {
  return std::max<std::int64_t>(1, num_kv_heads / std::max<std::int64_t>(1, tensor_parallel));
}

bool ModelReader::has(std::string_view architecture) const {
  return contains(out.facts.architectures, architecture);
}

bool ModelReader::any_in(std::string_view group) const {
  return std::any_of(out.facts.architectures.begin(), out.facts.architectures.end(),
                     [&](const std::string& name) { return profile.in_group(group, name); });
}

void ModelReader::refuse(std::string type, std::string rule, std::string text) {
  if (!out.refusal) {
    out.refusal =
        ModelRefusal{.type = std::move(type), .rule = std::move(rule), .text = std::move(text)};
  }
}

void rename_draft(ModelReader& reader) {
  if (!reader.options.draft) return;
  ModelFacts& facts = reader.out.facts;
  const bool bundles_dspark = reader.config.top("dspark_config") != nullptr ||
                              reader.config.top("dspark_block_size") != nullptr;
  if (facts.is("DeepseekV4ForCausalLM") && bundles_dspark &&
      (reader.options.speculative_algorithm.empty() ||
       reader.options.speculative_algorithm == "DSPARK")) {
    facts.architectures.front() = "DeepseekV4ForCausalLMDSpark";
    return;
  }
  const auto found = reader.profile.draft_rewrites.find(facts.architecture());
  if (found != reader.profile.draft_rewrites.end()) facts.architectures.front() = found->second;
}

ModelReading read_model(const Profile& profile, const Platform& platform, const json::Value& config,
                        const json::Value& quant_config, const ModelOptions& options) {
  const HfConfig hf(profile, config);
  ModelReader reader{.profile = profile,
                     .platform = platform,
                     .config = hf,
                     .quant_config = quant_config,
                     .options = options};
  ModelFacts& facts = reader.out.facts;
  facts.model_type = hf.model_type();
  facts.text_model_type = hf.text_model_type();
  if (has_ambiguous_head_dim(hf)) refuse_ambiguous(reader);
  rename_architectures(reader);
  const bool multimodal = multimodal_enabled(reader);
  rename_draft(reader);
  read_quantization_fields(reader);
  read_modalities(reader, multimodal);
  read_dtype(reader);
  read_context(reader);
  read_architecture_flags(reader);
  read_shapes(reader);
  read_hybrid(reader);
  if (!reader.out.refusal) read_quantization(reader);
  return std::move(reader.out);
}

}  // namespace kernelpath::engines::sglang
