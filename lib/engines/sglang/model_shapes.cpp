#include "config/family.h"
#include "engines/sglang/model_reader.h"

#include <algorithm>
#include <array>

// Source: configs/model_config.py (_derive_model_shapes, get_total_num_kv_heads).
namespace kernelpath::engines::sglang {
namespace {

constexpr std::int64_t kMlaHeadDim = 256;
constexpr std::int64_t kMiniCpm3HeadDim = 128;
constexpr std::int64_t kKimiHeadDim = 72;
constexpr std::int64_t kBailing3HeadDim = 128;
constexpr std::array<std::string_view, 5> kKvHeadFields = {
    "n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num",
    "num_attention_groups"};

constexpr std::string_view kBlockModel = "nemotron-nas";

std::int64_t or_zero(std::optional<std::int64_t> value) { return value.value_or(0); }

void read_head_dims(ModelReader& reader, bool pure_ssm) {
  ModelFacts& facts = reader.out.facts;
  const HfConfig& config = reader.config;
  const std::int64_t heads = std::max<std::int64_t>(1, facts.num_attention_heads);
  const std::int64_t even_split = or_zero(config.text_integer("hidden_size")) / heads;
  facts.head_dim = config.text_integer("head_dim").value_or(pure_ssm ? 0 : even_split);
  // Gemma 4 states the wider heads of its full layers beside head_dim, which is that of sliding
  // ones.
  const std::optional<std::int64_t> global = config.text_integer("global_head_dim");
  const std::int64_t sliding = facts.head_dim;
  if (global && facts.text_model_type.starts_with("gemma4")) facts.head_dim = *global;
  const std::int64_t value_dim = or_zero(config.text_integer("v_head_dim"));
  facts.v_head_dim = value_dim == 0 ? facts.head_dim : value_dim;
  const bool gemma4 = global && facts.text_model_type.starts_with("gemma4");
  facts.swa_head_dim =
      gemma4 ? sliding : config.text_integer("swa_head_dim").value_or(facts.head_dim);
  facts.swa_v_head_dim =
      gemma4 ? sliding : config.text_integer("swa_v_head_dim").value_or(facts.swa_head_dim);
}

void read_mla_ranks(ModelReader& reader, std::int64_t head_dim) {
  ModelFacts& facts = reader.out.facts;
  facts.head_dim = head_dim;
  facts.attention_arch = AttentionArch::kMla;
  facts.kv_lora_rank = reader.config.text_integer("kv_lora_rank");
  facts.qk_nope_head_dim = reader.config.text_integer("qk_nope_head_dim");
  facts.qk_rope_head_dim = reader.config.text_integer("qk_rope_head_dim");
  facts.v_head_dim = reader.config.text_integer("v_head_dim").value_or(facts.v_head_dim);
}

bool is_common_mla(const ModelReader& reader) {
  return std::ranges::any_of(reader.out.facts.architectures, [&](const std::string& name) {
    return reader.profile.in_group("mla", name) && (name != "PixtralForConditionalGeneration" ||
                                                    reader.config.text("kv_lora_rank") != nullptr);
  });
}

void read_deepseek_v4(ModelReader& reader) {
  ModelFacts& facts = reader.out.facts;
  facts.qk_rope_head_dim = reader.config.text_integer("qk_rope_head_dim");
  facts.qk_nope_head_dim = facts.head_dim - or_zero(facts.qk_rope_head_dim);
  facts.v_head_dim = facts.head_dim;
  facts.index_head_dim = reader.config.text_integer("index_head_dim");
}

void read_bailing3(ModelReader& reader) {
  read_mla_ranks(reader, kBailing3HeadDim);
  if (reader.config.text_true("use_mla_nope")) reader.out.facts.qk_rope_head_dim = 0;
}

// The first family that fits, in the engine's order.
void read_family(ModelReader& reader, bool pure_ssm) {
  ModelFacts& facts = reader.out.facts;
  const auto has = [&](std::string_view name) { return reader.has(name); };
  if (is_common_mla(reader)) {
    read_mla_ranks(reader, kMlaHeadDim);
    if (facts.is_dsa) facts.index_head_dim = reader.config.text_integer("index_head_dim");
  } else if (facts.is_deepseek_v4) {
    read_deepseek_v4(reader);
  } else if (has("MiniCPM3ForCausalLM")) {
    const std::int64_t value_dim = facts.v_head_dim;
    read_mla_ranks(reader, kMiniCpm3HeadDim);
    facts.qk_nope_head_dim.reset();
    facts.v_head_dim = value_dim;
  } else if (has("DeepseekVL2ForCausalLM") &&
             (reader.config.text("use_mla") == nullptr || reader.config.text_true("use_mla"))) {
    const std::int64_t value_dim = facts.v_head_dim;
    read_mla_ranks(reader, kMlaHeadDim);
    facts.v_head_dim = value_dim;
  } else if (has("KimiVLForConditionalGeneration")) {
    read_mla_ranks(reader, kMlaHeadDim);
  } else if (has("KimiLinearForCausalLM") || has("KimiK3LinearForCausalLM") ||
             has("KimiK3ForConditionalGeneration")) {
    read_mla_ranks(reader, kKimiHeadDim);
  } else if (has("BailingMoeV2_5ForCausalLM") ||
             (has("BailingMoeForCausalLMNextN") && reader.config.text("kv_lora_rank") != nullptr)) {
    read_mla_ranks(reader, facts.head_dim);
  } else if (has("BailingMoeV3ForCausalLM") || has("BailingMoeV3VLForConditionalGeneration")) {
    read_bailing3(reader);
  } else if (has("SarvamMLAForCausalLM")) {
    read_mla_ranks(reader, 0);
    facts.head_dim = or_zero(facts.qk_nope_head_dim) + or_zero(facts.qk_rope_head_dim);
  } else {
    facts.attention_arch = pure_ssm ? AttentionArch::kSsm : AttentionArch::kMha;
  }
}

// Of the first block with attention; the engine refuses blocks that differ.
std::optional<std::int64_t> block_kv_heads(const ModelReader& reader) {
  const json::Value* blocks = reader.config.top("block_configs");
  if (blocks == nullptr || !blocks->is_array()) return std::nullopt;
  for (const json::Value& block : blocks->items()) {
    const json::Value* attention = block.is_object() ? block.find("attention") : nullptr;
    if (attention == nullptr || !attention->is_object()) continue;
    const auto group = integer_of(attention->find("n_heads_in_group"));
    if (group && *group > 0) return reader.out.facts.num_attention_heads / *group;
  }
  return std::nullopt;
}

std::int64_t total_kv_heads(const ModelReader& reader) {
  const HfConfig& config = reader.config;
  const ModelFacts& facts = reader.out.facts;
  const bool falcon = facts.model_type == "falcon" || facts.model_type == "RefinedWeb" ||
                      facts.model_type == "RefinedWebModel";
  const bool grouped_falcon = falcon && config.top_true("new_decoder_architecture");
  if (!grouped_falcon && config.text_true("multi_query")) return 1;
  if (facts.model_type == "mpt" || facts.model_type == "dbrx") {
    const json::Value* attention = config.top("attn_config");
    const auto heads =
        attention == nullptr ? std::nullopt : integer_of(attention->find("kv_n_heads"));
    return heads.value_or(facts.num_attention_heads);
  }
  if (facts.model_type == kBlockModel) {
    if (const auto heads = block_kv_heads(reader)) return *heads;
  }
  for (const std::string_view field : kKvHeadFields) {
    const auto heads = config.text_integer(field);
    if (heads) return *heads;
  }
  return facts.attention_arch == AttentionArch::kSsm ? 0 : facts.num_attention_heads;
}

void read_layer_counts(ModelReader& reader) {
  ModelFacts& facts = reader.out.facts;
  const HfConfig& config = reader.config;
  facts.num_hidden_layers = or_zero(config.text_integer("num_hidden_layers"));
  if (reader.options.draft && facts.is("LongcatFlashForCausalLMNextN")) {
    facts.num_hidden_layers = or_zero(config.text_integer("num_nextn_predict_layers"));
  }
  facts.num_attention_layers = facts.num_hidden_layers;
  if (reader.has("LongcatFlashForCausalLM")) facts.num_attention_layers *= 2;
  if (reader.has("IQuestLoopCoderForCausalLM")) {
    facts.num_attention_layers *= config.text_integer("loop_num").value_or(1);
  }
  if (reader.has("NanbeigeForCausalLM")) {
    facts.num_attention_layers *= config.text_integer("num_loops").value_or(1);
  }
  if (reader.has("WhisperForConditionalGeneration")) {
    facts.num_attention_layers =
        or_zero(config.text_integer("encoder_layers")) +
        2 * config.text_integer("decoder_layers").value_or(facts.num_hidden_layers);
  }
}

// Sliding window of configuration classes that change what the file states.
std::optional<std::int64_t> class_window(const ModelReader& reader,
                                         std::optional<std::int64_t> window) {
  const HfConfig& config = reader.config;
  const std::string& type = reader.out.facts.text_model_type;
  constexpr std::array<std::string_view, 8> kGated = {"qwen2",           "qwen3",
                                                      "qwen3_moe",       "qwen2_vl_text",
                                                      "qwen2_5_vl_text", "qwen2_5_omni_text",
                                                      "qwen2_audio",     "qwen3_omni_moe_text"};
  const bool gated = std::find(kGated.begin(), kGated.end(), type) != kGated.end();
  if (gated && !config.text_true("use_sliding_window")) return std::nullopt;
  if (type == "qwen2_moe" && !config.text_true("use_sliding_window")) return 0;
  // A bidirectional window reaches to both sides.
  if (type == "gemma3_text" && config.text_true("use_bidirectional_attention") && window) {
    return *window / 2 + 1;
  }
  return window;
}

void read_window(ModelReader& reader) {
  ModelFacts& facts = reader.out.facts;
  for (const std::string_view field : {"sliding_window_size", "sliding_window", "window_size"}) {
    std::optional<std::int64_t> window = reader.config.text_integer(field);
    if (field == "sliding_window") window = class_window(reader, window);
    if (!window) continue;
    facts.sliding_window_size = window;
    return;
  }
}

std::int64_t swa_kv_heads(const ModelReader& reader) {
  const auto stated = reader.config.text_integer("swa_num_key_value_heads");
  if (stated) return *stated;
  const json::Value* other = reader.config.text("attention_other_setting");
  const auto groups =
      other == nullptr ? std::nullopt : integer_of(other->find("num_attention_groups"));
  return groups.value_or(reader.out.facts.num_kv_heads);
}

}  // namespace

void read_shapes(ModelReader& reader) {
  ModelFacts& facts = reader.out.facts;
  const bool pure_ssm = reader.any_in("pure_ssm");
  facts.num_attention_heads = or_zero(reader.config.text_integer("num_attention_heads"));
  facts.attention_chunk_size = reader.config.text_integer("attention_chunk_size");
  read_window(reader);
  read_head_dims(reader, pure_ssm);
  read_family(reader, pure_ssm);
  facts.num_kv_heads = total_kv_heads(reader);
  facts.num_swa_kv_heads = swa_kv_heads(reader);
  read_layer_counts(reader);
}

}  // namespace kernelpath::engines::sglang
