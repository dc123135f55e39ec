#include "engines/sglang/model_reader.h"

#include <algorithm>
#include <array>

// Source: configs/model_config.py (is_hybrid_swa_model, get_hybrid_layer_ids),
// configs/hybrid_arch.py and the configuration classes that it names.
namespace kernelpath::engines::sglang {
namespace {

using Layers = std::vector<std::int64_t>;

template <class Predicate>
Layers layers_where(std::int64_t count, Predicate&& holds) {
  Layers found;
  for (std::int64_t i = 0; i < count; ++i) {
    if (holds(i)) found.push_back(i);
  }
  return found;
}

Layers layers_named(const std::vector<std::string>& types, std::string_view name) {
  Layers found;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] == name) found.push_back(static_cast<std::int64_t>(i));
  }
  return found;
}

std::vector<std::int64_t> integers_of(const json::Value* value) {
  std::vector<std::int64_t> out;
  if (value == nullptr || !value->is_array()) return out;
  for (const json::Value& item : value->items()) out.push_back(integer_of(&item).value_or(0));
  return out;
}

bool is_hybrid_swa(const ModelReader& reader) {
  const HfConfig& config = reader.config;
  if (reader.any_in("hybrid_swa")) {
    if (reader.has("BeamForCausalLM")) {
      return contains(config.text_strings("layer_types"), "sliding_attention");
    }
    if (reader.has("LagunaForCausalLM")) return config.text_true("sliding_window");
    return true;
  }
  return config.text_true("is_hybrid_swa");
}

// hybrid_layer_pattern: 1 is a sliding layer, 0 a full one.
bool read_pattern(ModelReader& reader) {
  const Layers pattern = integers_of(reader.config.text("hybrid_layer_pattern"));
  if (pattern.empty()) return false;
  ModelFacts& facts = reader.out.facts;
  const auto count =
      std::min<std::int64_t>(facts.num_hidden_layers, static_cast<std::int64_t>(pattern.size()));
  const auto at = [&](std::int64_t i) { return pattern[static_cast<std::size_t>(i)]; };
  facts.swa_layers = layers_where(count, [&](std::int64_t i) { return at(i) == 1; });
  facts.full_layers = layers_where(count, [&](std::int64_t i) { return at(i) == 0; });
  return true;
}

void read_local_ids(ModelReader& reader) {
  ModelFacts& facts = reader.out.facts;
  const Layers local = integers_of(reader.config.text("local_layer_ids"));
  const auto is_local = [&](std::int64_t i) {
    return std::find(local.begin(), local.end(), i) != local.end();
  };
  facts.swa_layers = layers_where(facts.num_hidden_layers, is_local);
  facts.full_layers =
      layers_where(facts.num_hidden_layers, [&](std::int64_t i) { return !is_local(i); });
}

void read_layer_types(ModelReader& reader) {
  ModelFacts& facts = reader.out.facts;
  const std::vector<std::string> types = reader.config.text_strings("layer_types");
  facts.swa_layers = layers_named(types, "sliding_attention");
  facts.full_layers = layers_named(types, "full_attention");
}

bool uses_layer_types(const ModelReader& reader) {
  constexpr std::array<std::string_view, 14> kNames = {"Dots3NoteForCausalLM",
                                                       "Dots3NoteForCausalLMNextN",
                                                       "Step3p5ForCausalLM",
                                                       "Step3p7ForConditionalGeneration",
                                                       "BeamForCausalLM",
                                                       "Gemma4ForCausalLM",
                                                       "Gemma4ForConditionalGeneration",
                                                       "EmbeddingGemma2Model",
                                                       "Gemma4UnifiedForConditionalGeneration",
                                                       "DiffusionGemmaForBlockDiffusion",
                                                       "LagunaForCausalLM",
                                                       "MellumForCausalLM",
                                                       "MuseGlimmerForCausalLM",
                                                       "MuseGlimmerForConditionalGeneration"};
  return reader.any_in("attention_sinks") || reader.has("MuseSparkForConditionalGeneration") ||
         std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view name) { return reader.has(name); });
}

void read_swa_layers(ModelReader& reader) {
  ModelFacts& facts = reader.out.facts;
  const std::int64_t count = facts.num_hidden_layers;
  constexpr std::int64_t kLlama4Interval = 4;
  if (reader.has("Llama4ForConditionalGeneration")) {
    const auto full = [](std::int64_t i) { return (i + 1) % kLlama4Interval == 0; };
    facts.full_layers = layers_where(count, full);
    facts.swa_layers = layers_where(count, [&](std::int64_t i) { return !full(i); });
  } else if (reader.has("MiMoV2MTP") || reader.has("Step3p5MTP")) {
    facts.swa_layers = Layers{0};
    facts.full_layers = Layers{};
  } else if (uses_layer_types(reader)) {
    read_layer_types(reader);
  } else if (reader.has("InklingForConditionalGeneration")) {
    read_local_ids(reader);
  } else if (reader.has("UnlimitedOCRForCausalLM")) {
    facts.swa_layers = layers_where(count, [](std::int64_t) { return true; });
    facts.full_layers = Layers{};
  } else {
    read_pattern(reader);
  }
}

bool detect_sinks(const ModelReader& reader) {
  const HfConfig& config = reader.config;
  if (reader.any_in("attention_sinks")) return true;
  if (reader.has("MiMoV2ForCausalLM") || reader.has("MiMoV2FlashForCausalLM") ||
      reader.has("MiMoV2MTP")) {
    return config.text_true("add_swa_attention_sink_bias") ||
           config.text_true("add_full_attention_sink_bias");
  }
  return config.text_true("learnable_sink");
}

// --- linear attention ----------------------------------------------------------------------------

bool type_is(const ModelReader& reader, std::initializer_list<std::string_view> types) {
  const std::string& top = reader.out.facts.model_type;
  const std::string& text = reader.out.facts.text_model_type;
  return std::any_of(types.begin(), types.end(),
                     [&](std::string_view type) { return type == top || type == text; });
}

bool kda_in(const HfConfig& config) {
  const json::Value* linear = config.text("linear_attn_config");
  if (linear != nullptr && python_true(linear->find("kda_layers"))) return true;
  return contains(config.text_strings("layer_types"), "linear_attention") &&
         config.text("linear_num_heads") != nullptr && config.text("linear_head_dim") != nullptr;
}

Layers kimi_full_layers(const ModelReader& reader) {
  const json::Value* linear = reader.config.text("linear_attn_config");
  const Layers kda = integers_of(linear == nullptr ? nullptr : linear->find("kda_layers"));
  return layers_where(reader.out.facts.num_hidden_layers, [&](std::int64_t i) {
    return std::find(kda.begin(), kda.end(), i + 1) == kda.end();  // the list counts from 1
  });
}

Layers every_nth(const ModelReader& reader, std::string_view field, std::int64_t otherwise) {
  const std::int64_t every =
      std::max<std::int64_t>(1, reader.config.text_integer(field).value_or(otherwise));
  return layers_where(reader.out.facts.num_hidden_layers,
                      [&](std::int64_t i) { return (i + 1) % every == 0; });
}

Layers bailing_full_layers(const ModelReader& reader) {
  const json::Value* size = reader.config.text("layer_group_size");
  if (size == nullptr || !size->is_array()) return every_nth(reader, "layer_group_size", 1);
  const Layers schedule = integers_of(size);
  return layers_where(static_cast<std::int64_t>(schedule.size()),
                      [&](std::int64_t i) { return schedule[static_cast<std::size_t>(i)] != 1; });
}

Layers nemotron_full_layers(const ModelReader& reader) {
  const std::string pattern = reader.config.text_string("hybrid_override_pattern");
  if (!pattern.empty()) {
    return layers_where(static_cast<std::int64_t>(pattern.size()), [&](std::int64_t i) {
      return pattern[static_cast<std::size_t>(i)] == '*';
    });
  }
  return layers_named(reader.config.text_strings("layers_block_type"), "attention");
}

void take_linear(ModelReader& reader, LinearKind kind, Layers full) {
  reader.out.facts.linear_kind = kind;
  reader.out.facts.full_attention_layers = std::move(full);
}

bool read_mamba2(ModelReader& reader) {
  const HfConfig& config = reader.config;
  ModelFacts& facts = reader.out.facts;
  if (type_is(reader, {"falcon_h1"})) {
    take_linear(reader, LinearKind::kMamba2,
                layers_where(facts.num_hidden_layers, [](std::int64_t) { return true; }));
  } else if (type_is(reader, {"nemotron_h", "nemotron_h_puzzle"})) {
    take_linear(reader, LinearKind::kMamba2, nemotron_full_layers(reader));
  } else if (type_is(reader, {"lfm2", "lfm2_moe", "lfm2_vl"})) {
    facts.short_conv = true;
    take_linear(reader, LinearKind::kMamba2,
                layers_named(config.text_strings("layer_types"), "full_attention"));
  } else if (type_is(reader, {"zaya"})) {
    facts.short_conv = true;
    take_linear(reader, LinearKind::kMamba2,
                layers_where(facts.num_hidden_layers, [](std::int64_t i) { return i % 2 == 0; }));
  } else if (type_is(reader, {"mamba", "mamba2", "falcon_mamba"})) {
    take_linear(reader, LinearKind::kMamba2, {});
  } else if (type_is(reader, {"granitemoehybrid"}) &&
             contains(config.text_strings("layer_types"), "mamba")) {
    take_linear(reader, LinearKind::kMamba2,
                layers_named(config.text_strings("layer_types"), "attention"));
  } else {
    return false;
  }
  return true;
}

bool read_gdn(ModelReader& reader) {
  if (type_is(reader, {"jet_nemotron", "jet_vlm"})) {
    const auto types = reader.config.text_strings("layer_types");
    Layers full = layers_named(types, "attn");
    const Layers sliding = layers_named(types, "swa");
    full.insert(full.end(), sliding.begin(), sliding.end());
    std::sort(full.begin(), full.end());
    take_linear(reader, LinearKind::kGdn, std::move(full));
    return true;
  }
  if (!type_is(reader,
               {"qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text",
                "qwen4_exp", "qwen4_exp_text", "intern_s2_preview", "interns2_mobius_text"})) {
    return false;
  }
  take_linear(reader, LinearKind::kGdn, every_nth(reader, "full_attention_interval", 4));
  return true;
}

void read_linear(ModelReader& reader) {
  const HfConfig& config = reader.config;
  if (read_mamba2(reader) || read_gdn(reader)) return;
  const bool bailing = type_is(reader, {"bailing_hybrid"});
  const bool bailing_kda = bailing && config.text("short_conv_kernel_size") != nullptr;
  const json::Value* linear = config.text("linear_attn_config");
  if (bailing_kda) {
    take_linear(reader, LinearKind::kKimi, bailing_full_layers(reader));
  } else if (bailing) {
    take_linear(reader, LinearKind::kLightning, bailing_full_layers(reader));
  } else if (type_is(reader, {"kimi_linear", "kimi_k3", "kimi_k3_text"}) && linear != nullptr) {
    take_linear(reader, LinearKind::kKimi, kimi_full_layers(reader));
  } else if (type_is(reader, {"glm5_next"}) && !reader.options.draft) {
    take_linear(reader, LinearKind::kGlm5, kimi_full_layers(reader));
  } else if (type_is(reader, {"minicpm_sala"}) && reader.out.facts.has_minicpm_lightning) {
    take_linear(reader, LinearKind::kLightning,
                layers_named(config.text_strings("mixer_types"), "minicpm4"));
  }
}

void read_minicpm(ModelReader& reader) {
  const std::vector<std::string> mixers = reader.config.text_strings("mixer_types");
  ModelFacts& facts = reader.out.facts;
  facts.has_minicpm_sparse =
      reader.config.text("sparse_config") != nullptr && contains(mixers, "minicpm4");
  facts.has_minicpm_lightning = std::any_of(mixers.begin(), mixers.end(), [](const auto& mixer) {
    return mixer.find("lightning") != std::string::npos;
  });
}

void read_sparse(ModelReader& reader) {
  ModelFacts& facts = reader.out.facts;
  const HfConfig& config = reader.config;
  facts.index_topk = integer_of(config.top("index_topk"));
  facts.is_dsa = reader.profile.in_group("deepseek_dsa", facts.architecture()) &&
                 config.top("index_topk") != nullptr;
  facts.index_kpool = integer_of(config.top("index_kpool")).value_or(1);
  facts.learnable_sink = config.top_true("learnable_sink");
  const std::string pattern = config.top_string("index_topk_pattern");
  facts.shares_topk_indices = integer_of(config.top("index_topk_freq")).value_or(1) > 1 ||
                              pattern.find('S') != std::string::npos ||
                              contains(strings_of(config.top("indexer_types")), "shared");
  facts.is_minimax_sparse =
      facts.is("MiniMaxM3SparseForCausalLM") || facts.is("MiniMaxM3SparseForConditionalGeneration");
  facts.is_qwen_qsa =
      type_is(reader, {"qwen4_exp", "qwen4_exp_text"}) && config.text("indexer_n_heads") != nullptr;
  facts.canvas_length = integer_of(config.top("canvas_length"));
  const json::Value* prefix = config.top("prefix_lm");
  facts.prefix_lm = prefix == nullptr || python_true(prefix);
  // Exaone 4's class turns null or absent into 0 or 4; the others keep null.
  facts.has_sliding_window_pattern =
      facts.is("Exaone4ForCausalLM") || config.text("sliding_window_pattern") != nullptr;
}

}  // namespace

void read_architecture_flags(ModelReader& reader) {
  ModelFacts& facts = reader.out.facts;
  facts.is_deepseek_v4 = reader.has("DeepseekV4ForCausalLM") ||
                         reader.has("DeepseekV4ForCausalLMNextN") ||
                         reader.has("DeepseekV4ForCausalLMDSpark");
  read_sparse(reader);
  read_minicpm(reader);
}

void read_hybrid(ModelReader& reader) {
  ModelFacts& facts = reader.out.facts;
  facts.is_hybrid_swa = is_hybrid_swa(reader) && !reader.options.disable_hybrid_swa_memory;
  if (facts.is_hybrid_swa && !facts.is_deepseek_v4) read_swa_layers(reader);
  facts.has_attention_sinks = detect_sinks(reader);
  facts.uses_kda = kda_in(reader.config);
  facts.mamba_chunk_size = integer_of(reader.config.top("mamba_chunk_size"));
  if (!facts.mamba_chunk_size && type_is(reader, {"lfm2", "lfm2_moe", "zaya"})) {
    facts.mamba_chunk_size = 1;  // a short convolution has no chunk
  }
  read_linear(reader);
}

}  // namespace kernelpath::engines::sglang
