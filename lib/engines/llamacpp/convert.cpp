#include "engines/llamacpp/convert.h"

#include "engines/llamacpp/convert_metadata.h"
#include "json/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace kernelpath::engines::llamacpp {
namespace {

// Top-level names that win over the language model's own.
constexpr auto kTopWins = std::to_array<std::string_view>(
    {"StepVLForConditionalGeneration", "Sarashina2VisionForCausalLM",
     "Exaone4_5_ForConditionalGeneration", "Step3p7ForConditionalGeneration",
     "KimiK3ForConditionalGeneration"});

std::string nested_architecture(const config::ModelConfig& model) {
  if (model.text_pointer.empty()) return {};
  const json::Value* text = json::resolve_pointer(model.file, model.text_pointer);
  const json::Value* names = text == nullptr ? nullptr : text->find_non_null("architectures");
  if (names == nullptr || !names->is_array() || names->items().empty()) return {};
  const json::Value& first = names->items().front();
  return first.is_string() ? first.as_string() : std::string();
}

std::string state_space_architecture(const config::ModelConfig& model) {
  const json::Value* ssm = model.file.find_non_null("ssm_cfg");
  if (ssm == nullptr) return {};
  const json::Value* layer = ssm->find_non_null("layer");
  const bool named = layer != nullptr && layer->is_string();
  return (named ? layer->as_string() : std::string("Mamba")) + "ForCausalLM";
}

std::string deciding_architecture(const config::ModelConfig& model) {
  std::string top =
      model.architectures.empty() ? state_space_architecture(model) : model.architectures.front();
  if (std::ranges::find(kTopWins, std::string_view(top)) != kTopWins.end()) return top;
  std::string nested = nested_architecture(model);
  return nested.empty() ? top : nested;
}

// --- what a converter's class changes of the name ------------------------------------------------

bool has_integer(const config::ModelConfig& model, std::string_view name) {
  return std::ranges::any_of(model.text_integers, [&](const auto& member) {
    return member.first == name && member.second != 0;
  });
}

bool has_text_field(const config::ModelConfig& model, std::string_view name) {
  const auto& fields = model.present_text_fields;
  return std::ranges::find(fields, name) != fields.end();
}

bool has_any_state(const config::ModelConfig& model) {
  return std::ranges::any_of(model.layers, &config::Layer::has_state);
}

std::string granite_hybrid(const config::ModelConfig& model) {
  if (has_any_state(model)) return {};
  const bool moe =
      has_integer(model, "num_experts_per_tok") || has_integer(model, "num_experts_per_token");
  return moe ? "granitemoe" : "granite";
}

std::string deepseek2(const config::ModelConfig& model) {
  constexpr auto kOcr = std::to_array<std::string_view>(
      {"DeepseekOCRForCausalLM", "DeepseekOCR2ForCausalLM", "UnlimitedOCRForCausalLM"});
  if (model.architectures.empty()) return {};
  const bool ocr =
      std::ranges::find(kOcr, std::string_view(model.architectures.front())) != kOcr.end();
  return ocr ? "deepseek2-ocr" : "";
}

std::string llama(const config::ModelConfig& model) {
  const bool draft = model.draft.has_draft_vocab_size && model.num_hidden_layers.value_or(0) == 1;
  return draft ? "eagle3" : "";
}

std::string nomic_bert(const config::ModelConfig& model) {
  return has_integer(model, "moe_every_n_layers") ? "nomic-bert-moe" : "";
}

std::string xlm_roberta(const config::ModelConfig& model) {
  return has_text_field(model, "lora_adaptations") ? "jina-bert-v3" : "";
}

std::string nemotron_h(const config::ModelConfig& model) {
  return has_text_field(model, "num_experts_per_tok") ? "nemotron_h_moe" : "";
}

struct Override {
  std::string_view converter;
  std::string (*change)(const config::ModelConfig&);  // the other name, or empty
  std::string_view reason;
};

constexpr auto kOverrides = std::to_array<Override>({
    {"DeepseekV2Model", deepseek2, "an OCR model's language model"},
    {"GraniteHybridModel", granite_hybrid, "no layer is a state-space layer"},
    {"LlamaModel", llama, "one layer and a draft_vocab_size: an EAGLE-3 draft"},
    {"NemotronHModel", nemotron_h, "num_experts_per_tok is there"},
    {"NomicBertModel", nomic_bert, "moe_every_n_layers is there"},
    {"XLMRobertaModel", xlm_roberta, "lora_adaptations is there"},
});

void apply_override(const config::ModelConfig& model, Conversion& out) {
  const auto* const row =
      std::ranges::find(kOverrides, std::string_view(out.row->converter), &Override::converter);
  if (row == kOverrides.end()) return;
  std::string name = row->change(model);
  if (name.empty()) return;
  out.gguf = std::move(name);
  out.override_reason = row->reason;
}

}  // namespace

Conversion convert_config(const Profile& profile, const config::ModelConfig& model) {
  Conversion out;
  out.architecture = deciding_architecture(model);
  if (out.architecture.empty()) {
    out.error = "Failed to detect model architecture";
    return out;
  }
  out.row = profile.find_converter(out.architecture);
  if (out.row == nullptr) {
    out.error = fmt::format("Model {} is not supported", out.architecture);
    return out;
  }
  out.gguf = out.row->gguf;
  apply_override(model, out);
  out.metadata = write_metadata(profile, model, out.gguf);
  return out;
}

}  // namespace kernelpath::engines::llamacpp
