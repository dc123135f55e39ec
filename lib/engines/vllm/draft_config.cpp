#include "engines/vllm/draft_config.h"

#include "engines/vllm/model_view.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kNextn = "num_nextn_predict_layers";
constexpr std::string_view kMtpHidden = "mtp_num_hidden_layers";
constexpr int kAnyRelease = 1000;

enum class Key : std::uint8_t { kType, kTypePart, kArchitecture };

// One branch of the engine's: a checkpoint of this model_type or first architecture becomes that
// draft. The first row that fits counts.
struct Rewrite {
  Key key;
  std::string_view name;
  std::string_view architecture;  // empty: stays
  std::string_view model_type;    // empty: stays
  std::string_view count = kNextn;
  std::int64_t otherwise = 0;  // where the field is not there; 0: nothing
  std::int64_t fixed = 0;      // 0: the field's
  int since = 0;
  int until = kAnyRelease;  // minor releases
};

using enum Key;
constexpr auto kRewrites = std::to_array<Rewrite>({
    {kType, "deepseek_v3", "DeepSeekMTPModel", "deepseek_mtp"},
    {.key = kType,
     .name = "deepseek_v32",
     .architecture = "DeepSeekMTPModel",
     .model_type = "deepseek_mtp",
     .until = 32},
    {.key = kType,
     .name = "glm_moe_dsa",
     .architecture = "DeepSeekMTPModel",
     .model_type = "deepseek_mtp",
     .until = 32},
    {.key = kType,
     .name = "deepseek_v32",
     .architecture = "DeepseekV32MTPModel",
     .model_type = "deepseek_mtp",
     .since = 33},
    {.key = kType,
     .name = "glm_moe_dsa",
     .architecture = "DeepseekV32MTPModel",
     .model_type = "deepseek_mtp",
     .since = 33},
    {kType, "deepseek_mtp", "DeepSeekMTPModel", "deepseek_mtp"},
    {kType, "deepseek_v4", "DeepSeekV4MTPModel", "deepseek_mtp"},
    {.key = kType,
     .name = "deepseek_v41",
     .architecture = "",
     .model_type = "deepseek_mtp",
     .since = 33},
    {.key = kType,
     .name = "dots3_note",
     .architecture = "Dots3NoteMTPModel",
     .model_type = "dots3_note_mtp",
     .otherwise = 1,
     .since = 33},
    {kType, "pangu_ultra_moe", "OpenPanguMTPModel", "pangu_ultra_moe_mtp"},
    {kType, "pangu_ultra_moe_mtp", "OpenPanguMTPModel", "pangu_ultra_moe_mtp"},
    {.key = kType,
     .name = "kimi_k3",
     .architecture = "KimiK3MTPModel",
     .model_type = "kimi_k3_mtp",
     .since = 33},
    {kArchitecture, "MiMoForCausalLM", "MiMoMTPModel", "mimo_mtp"},
    {kArchitecture, "MiMoV2ForCausalLM", "MiMoV2MTPModel", "mimo_v2_mtp", kNextn, 0, 1},
    {kArchitecture, "MiMoV2OmniForCausalLM", "MiMoV2OmniMTPModel", "mimo_v2_mtp", kNextn, 0, 1},
    {kArchitecture, "MiMoV2FlashForCausalLM", "MiMoV2MTPModel", "mimo_v2_mtp", kNextn, 0, 1},
    {kArchitecture, "Glm4MoeForCausalLM", "Glm4MoeMTPModel", "glm4_moe_mtp"},
    {kArchitecture, "Glm4MoeLiteForCausalLM", "Glm4MoeLiteMTPModel", "glm4_moe_lite_mtp"},
    {kArchitecture, "GlmOcrForConditionalGeneration", "GlmOcrMTPModel", "glm_ocr_mtp"},
    {kType, "ernie4_5_moe", "ErnieMTPModel", "ernie_mtp"},
    {kType, "ernie_mtp", "ErnieMTPModel", "ernie_mtp"},
    {kType, "nemotron_h_mtp", "NemotronHMTPModel", "nemotron_h_mtp", kNextn, 1},
    {kType, "qwen3_next", "Qwen3NextMTP", "qwen3_next_mtp"},
    {kType, "qwen3_next_mtp", "Qwen3NextMTP", "qwen3_next_mtp"},
    {.key = kType,
     .name = "qwen4_exp",
     .architecture = "Qwen4ExpMTP",
     .model_type = "qwen4_exp_mtp",
     .count = kMtpHidden,
     .since = 33},
    {.key = kType,
     .name = "qwen4_exp_text",
     .architecture = "Qwen4ExpMTP",
     .model_type = "qwen4_exp_mtp",
     .count = kMtpHidden,
     .since = 33},
    {.key = kArchitecture,
     .name = "BailingMoeV3ForCausalLM",
     .architecture = "BailingMoeV3MTPModel",
     .model_type = "bailing_hybrid_v3_mtp",
     .since = 33},
    {.key = kArchitecture,
     .name = "BailingMoeV3VLForConditionalGeneration",
     .architecture = "BailingMoeV3MTPModel",
     .model_type = "bailing_hybrid_v3_mtp",
     .since = 33},
    {kType, "bailing_hybrid", "BailingMoeV25MTPModel", "bailing_hybrid_mtp"},
    {kArchitecture, "BailingMoeV2_5ForCausalLM", "BailingMoeV25MTPModel", "bailing_hybrid_mtp"},
    {kType, "exaone_moe", "ExaoneMoeMTP", "exaone_moe_mtp"},
    {kType, "exaone_moe_mtp", "ExaoneMoeMTP", "exaone_moe_mtp"},
    {kTypePart, "exaone4_5", "Exaone4_5_MTP", "exaone4_5_mtp"},
    {kType, "qwen3_5", "Qwen3_5MTP", "qwen3_5_mtp", kMtpHidden},
    {kType, "qwen3_5_moe", "Qwen3_5MoeMTP", "qwen3_5_mtp", kMtpHidden},
    {.key = kType,
     .name = "qwen3_5_text",
     .architecture = "Qwen3_5MTP",
     .model_type = "qwen3_5_mtp",
     .count = kMtpHidden,
     .since = 33},
    {.key = kType,
     .name = "qwen3_5_moe_text",
     .architecture = "Qwen3_5MoeMTP",
     .model_type = "qwen3_5_mtp",
     .count = kMtpHidden,
     .since = 33},
    {kType, "intern_s2_preview", "Qwen3_5MTP", "qwen3_5_mtp", kMtpHidden},
    {.key = kType,
     .name = "interns2_mobius",
     .architecture = "InternS2MobiusMTP",
     .model_type = "qwen3_5_mtp",
     .count = kMtpHidden,
     .since = 33},
    {kType, "longcat_flash", "LongCatFlashMTPModel", "longcat_flash_mtp", kNextn, 1},
    {kType, "step3p5", "Step3p5MTP", "step3p5_mtp", kNextn, 1},
    {kType, "step3p7", "Step3p5MTP", "step3p5_mtp", kNextn, 1},
    {kArchitecture, "Step3p5ForCausalLM", "Step3p5MTP", "step3p5_mtp", kNextn, 1},
    {kArchitecture, "Step3p7ForConditionalGeneration", "Step3p5MTP", "step3p5_mtp", kNextn, 1},
    {.key = kType,
     .name = "step5",
     .architecture = "Step5MTP",
     .model_type = "step5_mtp",
     .otherwise = 1,
     .since = 33},
    {.key = kType,
     .name = "step5_vl",
     .architecture = "Step5MTP",
     .model_type = "step5_mtp",
     .otherwise = 1,
     .since = 33},
    {kType, "hy_v3", "HYV3MTPModel", "hy_v3_mtp"},
    {.key = kType,
     .name = "hy_v4",
     .architecture = "HYV4MTPModel",
     .model_type = "hy_v4_mtp",
     .since = 33},
    {kType, "gemma4_assistant", "Gemma4MTPModel", "gemma4_mtp", kNextn, 0, 1},
    {kType, "gemma4_unified_assistant", "Gemma4MTPModel", "gemma4_mtp", kNextn, 0, 1},
    {kType, "minimax_m3_vl", "MiniMaxM3MTP", "minimax_m3_mtp", "num_mtp_modules", 1},
    {kArchitecture, "MiniMaxM3SparseForConditionalGeneration", "MiniMaxM3MTP", "minimax_m3_mtp",
     "num_mtp_modules", 1},
    {kType, "minimax_m3_mtp", "MiniMaxM3MTP", "minimax_m3_mtp", "num_mtp_modules", 1},
    {kArchitecture, "MiniMaxM3MTP", "MiniMaxM3MTP", "", "num_mtp_modules", 1},
    {.key = kType,
     .name = "glm5_next",
     .architecture = "Glm5NextMTPModel",
     .model_type = "glm5_next_mtp",
     .since = 33},
    {kArchitecture, "MistralLarge3ForCausalLM", "EagleMistralLarge3ForCausalLM", "", ""},
});

bool fits(const Rewrite& row, const DraftConfig& draft, const Profile& profile) {
  if (profile.release.minor < row.since || profile.release.minor > row.until) return false;
  switch (row.key) {
    case kType:
      return draft.model_type == row.name;
    case kTypePart:
      return draft.model_type.find(row.name) != std::string::npos;
    case kArchitecture:
      return !draft.architectures.empty() && draft.architectures.front() == row.name;
  }
  return false;
}

// NemotronH's checkpoints say by a count whether they have such layers.
bool is_nemotron_mtp(const config::ModelConfig& model, const DraftConfig& draft, bool later) {
  const bool omni = std::ranges::any_of(draft.architectures, [&](const std::string& name) {
    return name == "NemotronH_Super_Omni_Reasoning_V3" ||
           (later && name == "NemotronH_Omni_Reasoning_V3");
  });
  const std::string_view type =
      omni ? text_string(model, "model_type") : std::string_view(draft.model_type);
  return (type == "nemotron_h" || type == "nemotron_h_puzzle") &&
         text_integer(model, kNextn).value_or(0) > 0;
}

// Inkling keeps the count in an object of its own.
std::optional<std::int64_t> inkling_depths(const config::ModelConfig& model) {
  const json::Value* section = model.file.find_non_null("mtp_config");
  const json::Value* count =
      section != nullptr && section->is_object() ? section->find_non_null(kNextn) : nullptr;
  return count != nullptr && count->is_integer() ? std::optional(count->as_integer())
                                                 : std::nullopt;
}

std::optional<std::int64_t> count_of(const Rewrite& row, const config::ModelConfig& model,
                                     const Profile& profile) {
  if (row.fixed > 0) return row.fixed;
  if (row.count.empty()) return std::nullopt;
  // Until 0.32 Qwen3.5's count is looked for beside the text configuration only.
  const bool outer_only = row.name.starts_with("qwen3_5") && !profile.at_least(0, 33);
  if (outer_only && !model.text_pointer.empty()) return std::nullopt;
  if (const auto count = text_integer(model, row.count)) return count;
  return row.otherwise > 0 ? std::optional(row.otherwise) : std::nullopt;
}

bool attends(const config::Layer& layer) {
  using enum config::LayerKind;
  return layer.kind != kNone && layer.kind != kMamba && layer.kind != kLinear;
}

// The last layer of a kind, or the last that attends at all.
config::Layer model_layer(const config::ModelConfig& model, bool slides) {
  config::Layer out;
  for (const config::Layer& layer : model.layers) {
    if (!attends(layer)) continue;
    const bool of_kind = (layer.kind == config::LayerKind::kSliding) == slides;
    const bool so_far = (out.kind == config::LayerKind::kSliding) == slides;
    if (of_kind || !so_far || out.num_attention_heads == 0) out = layer;
  }
  out.has_state = false;
  out.shares_kv = false;
  return out;
}

// The entries of layer_types in the text configuration, also behind the decoder's own layers.
std::string_view layer_type(const config::ModelConfig& model, std::int64_t index) {
  const json::Value* section = &model.file;
  if (model.text_pointer == "/text_config") section = model.file.find_non_null("text_config");
  const json::Value* types = section == nullptr ? nullptr : section->find_non_null("layer_types");
  if (types == nullptr || !types->is_array()) return {};
  const auto at = static_cast<std::size_t>(index);
  if (index < 0 || at >= types->items().size() || !types->items()[at].is_string()) return {};
  return types->items()[at].as_string();
}

std::int64_t count_attention(std::string_view pattern) { return std::ranges::count(pattern, '*'); }

std::int64_t layer_count(const config::ModelConfig& model, const DraftConfig& draft,
                         std::int64_t tokens) {
  const std::string& type = draft.model_type;
  if (type == "longcat_flash_mtp" || type == "mimo_v2_mtp") return 1;
  if (type == "nemotron_h_mtp") {
    return count_attention(text_string(model, "mtp_hybrid_override_pattern"));
  }
  if (type == "qwen3_5_mtp" || type == "qwen4_exp_mtp") {
    return text_integer(model, kMtpHidden).value_or(1);
  }
  const std::int64_t stated = draft.predicts.value_or(text_integer(model, kNextn).value_or(1));
  if (type == "hy_v4_mtp") return std::max<std::int64_t>(stated - 1, 1);
  if (type == "inkling_mtp") return std::min(stated, std::max<std::int64_t>(tokens, 1));
  return stated;
}

// Whether the layer number `i` of the draft slides.
bool slides(const config::ModelConfig& model, const DraftConfig& draft, std::int64_t i) {
  const std::string& type = draft.model_type;
  if (type == "mimo_v2_mtp") return true;
  constexpr std::string_view kSliding = "sliding_attention";
  if (type.starts_with("exaone")) return layer_type(model, i) == kSliding;
  const bool continues = type == "step3p5_mtp" || type == "step5_mtp";
  const std::int64_t index = model.num_hidden_layers.value_or(0) + i;
  return continues && layer_type(model, index) == kSliding;
}

std::optional<bool> optional_flag(const json::Value* object, std::string_view name) {
  const json::Value* found =
      object != nullptr && object->is_object() ? object->find_non_null(name) : nullptr;
  if (found == nullptr) return std::nullopt;
  if (found->is_bool()) return found->as_bool();
  return found->is_integer() ? std::optional(found->as_integer() != 0) : std::nullopt;
}

}  // namespace

DraftConfig read_as_draft(const config::ModelConfig& model, const Profile& profile) {
  DraftConfig out{.architectures = model.architectures,
                  .model_type = model.model_type.value_or("")};
  if (is_nemotron_mtp(model, out, profile.at_least(0, 33))) out.model_type = "nemotron_h_mtp";
  const bool inkling = out.model_type == "inkling_mm_model" || out.model_type == "inkling_model";
  if (inkling && profile.at_least(0, 33)) {
    const std::optional<std::int64_t> depths = inkling_depths(model);
    return {.architectures = {"InklingMTPModel"},
            .model_type = "inkling_mtp",
            .is_mtp = true,
            .predicts = depths.value_or(0)};
  }
  const auto* const row = std::ranges::find_if(
      kRewrites, [&](const Rewrite& candidate) { return fits(candidate, out, profile); });
  if (row == kRewrites.end()) return out;
  out.predicts = count_of(*row, model, profile);
  if (!row->architecture.empty()) out.architectures = {std::string(row->architecture)};
  if (!row->model_type.empty()) out.model_type = row->model_type;
  if (row->name == "intern_s2_preview" && text_string(model, "model_type") == "qwen3_5_moe_text") {
    out.architectures = {"Qwen3_5MoeMTP"};
  }
  out.is_mtp = out.model_type.ends_with("_mtp");
  return out;
}

void prefix_architectures(std::string_view method, std::vector<std::string>& architectures) {
  const std::string prefix = method == "eagle3" ? "Eagle3" : method == "eagle" ? "Eagle" : "DFlash";
  for (std::string& name : architectures) {
    const bool has_it = name.starts_with(prefix) || (prefix != "Eagle" && name.ends_with(prefix));
    if (!has_it) name.insert(0, prefix);
  }
}

std::vector<config::Layer> mtp_layers(const config::ModelConfig& model, const DraftConfig& draft,
                                      std::int64_t tokens) {
  if (draft.model_type == "gemma4_mtp") return model.layers;
  std::vector<config::Layer> out;
  const std::int64_t count = layer_count(model, draft, tokens);
  for (std::int64_t i = 0; i < count; ++i) {
    const bool sliding = slides(model, draft, i);
    config::Layer layer = model_layer(model, sliding);
    if (!sliding && layer.kind == config::LayerKind::kSliding) {
      layer.kind = config::LayerKind::kFull;
      layer.window.reset();
    }
    out.push_back(layer);
  }
  return out;
}

DflashConfig dflash_config(const config::ModelConfig& draft, const Profile& profile) {
  const json::Value* section = draft.file.find_non_null("dflash_config");
  const json::Value* types = draft.file.find_non_null("layer_types");
  const bool listed = types != nullptr && types->is_array() && !types->items().empty();
  std::size_t sliding = 0;
  if (listed) {
    sliding = static_cast<std::size_t>(std::ranges::count_if(types->items(), [](const auto& type) {
      return type.is_string() && type.as_string() == "sliding_attention";
    }));
  }
  DflashConfig out;
  const std::size_t all = listed ? types->items().size() : 0;
  out.mixed = sliding > 0 && sliding < all;
  const bool use_swa = optional_flag(section, "use_swa").value_or(false);
  if (!listed || (use_swa && sliding == 0)) out.every_layer = use_swa;
  const json::Value* width = section != nullptr && section->is_object()
                                 ? section->find_non_null("swa_window_size")
                                 : nullptr;
  out.window = width != nullptr && width->is_integer() ? std::optional(width->as_integer())
                                                       : draft.sliding_window.value;
  out.window_missing = out.every_layer.value_or(sliding > 0) && !out.window;
  const std::optional<bool> causal = optional_flag(section, "causal");
  if (!profile.at_least(0, 33)) {
    out.non_causal = !causal.value_or(false);
  } else {
    const std::optional<bool> own = optional_flag(&draft.file, "is_causal");
    const bool by_kind = listed && sliding == all;
    out.non_causal = !own.value_or(causal.value_or(by_kind));
  }
  return out;
}

}  // namespace kernelpath::engines::vllm
