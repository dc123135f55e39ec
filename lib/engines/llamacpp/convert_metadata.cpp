// Source: llama.cpp 0c1e5709, conversion/*.py, each class's set_gguf_parameters.
#include "engines/llamacpp/convert_metadata.h"

#include "json/document.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::engines::llamacpp {
namespace {

using checkpoint::GgufType;
using checkpoint::GgufValue;
using config::Layer;
using config::LayerKind;

// What the converter of an architecture does beside the common keys.
struct ArchRow {
  std::string_view gguf;
  bool window_flags = false;    // lists which layers slide
  bool headless_state = false;  // layers that do not attend have 0 KV heads
  bool state_list = false;      // lists the layers that keep a state
  bool latent = false;          // one KV head of the compressed width
  std::int64_t context = 0;     // written whatever config.json says
};

constexpr std::int64_t kAnyContext = std::int64_t{1} << 20;

constexpr auto kArchs = std::to_array<ArchRow>({
    {.gguf = "arwkv7", .context = kAnyContext},
    {.gguf = "bailingmoe3", .headless_state = true, .latent = true},
    {.gguf = "cohere2moe", .window_flags = true},
    {.gguf = "deepseek2", .latent = true},
    {.gguf = "deepseek32", .latent = true},
    {.gguf = "dflash", .window_flags = true},
    {.gguf = "dots3note", .window_flags = true, .latent = true},
    {.gguf = "exaone-moe", .window_flags = true},
    {.gguf = "exaone4", .window_flags = true},
    {.gguf = "falcon", .context = 2048},
    {.gguf = "gemma3n", .window_flags = true},
    {.gguf = "gemma4", .window_flags = true},
    {.gguf = "gemma4-assistant", .window_flags = true},
    {.gguf = "glm-dsa", .latent = true},
    {.gguf = "glm5-next", .headless_state = true, .latent = true},
    {.gguf = "granite_swa", .window_flags = true},
    {.gguf = "granitehybrid", .headless_state = true},
    {.gguf = "hy_v4", .latent = true},
    {.gguf = "jamba", .headless_state = true},
    {.gguf = "kimi-k3", .headless_state = true, .latent = true},
    {.gguf = "kimi-linear", .headless_state = true, .latent = true},
    {.gguf = "lfm2", .headless_state = true},
    {.gguf = "lfm2moe", .headless_state = true},
    {.gguf = "mamba", .context = kAnyContext},
    {.gguf = "mamba2", .context = kAnyContext},
    {.gguf = "maple", .window_flags = true},
    {.gguf = "mellum", .window_flags = true},
    {.gguf = "mimo2", .window_flags = true},
    {.gguf = "minimax-01", .state_list = true},
    {.gguf = "mistral4", .latent = true},
    {.gguf = "modern-bert", .window_flags = true},
    {.gguf = "muse-glimmer", .window_flags = true},
    {.gguf = "nemotron_h", .headless_state = true},
    {.gguf = "nemotron_h_moe", .headless_state = true},
    {.gguf = "olmo2", .window_flags = true},
    {.gguf = "plamo", .context = 4096},
    {.gguf = "plamo2", .headless_state = true},
    {.gguf = "plamo3", .window_flags = true},
    {.gguf = "qwen35", .state_list = true},
    {.gguf = "qwen35moe", .state_list = true},
    {.gguf = "qwen3next", .state_list = true},
    {.gguf = "qwen4exp", .state_list = true},
    {.gguf = "rwkv6", .context = kAnyContext},
    {.gguf = "rwkv6qwen2", .context = kAnyContext},
    {.gguf = "rwkv7", .context = kAnyContext},
    {.gguf = "spark2_5", .window_flags = true},
    {.gguf = "step35", .window_flags = true},
});

// Integers of config.json that are written as they are: key and the fields, first match first.
struct CopiedKey {
  std::string_view key;
  std::array<std::string_view, 2> fields;  // pointers below the text config
};

constexpr auto kCopied = std::to_array<CopiedKey>({
    {"attention.indexer.head_count",
     {"/index_n_heads", "/sparse_attention_config/sparse_num_index_heads"}},
    {"attention.indexer.key_length",
     {"/index_head_dim", "/sparse_attention_config/sparse_index_dim"}},
    {"attention.indexer.top_k", {"/index_topk", "/sparse_attention_config/sparse_topk_blocks"}},
    {"attention.indexer.block_size", {"/sparse_attention_config/sparse_block_size", ""}},
    {"attention.indexer.kpool", {"/index_kpool", ""}},
    {"attention.q_lora_rank", {"/q_lora_rank", ""}},
    {"attention.shared_kv_layers", {"/num_kv_shared_layers", ""}},
    {"embedding_length_per_layer_input", {"/hidden_size_per_layer_input", ""}},
    {"full_attention_interval", {"/full_attention_interval", ""}},
    {"hyper_connection.count", {"/hc_mult", ""}},
    {"kda.head_dim", {"/linear_attn_config/head_dim", ""}},
    {"leading_dense_block_count", {"/first_k_dense_replace", ""}},
    {"shortconv.l_cache", {"/conv_L_cache", ""}},
    {"vocab_size", {"/vocab_size", ""}},
    {"wkv.head_size", {"/head_size", "/head_dim"}},
});

GgufValue scalar(GgufType type, std::int64_t value) {
  return {.type = type, .element_type = type, .count = 1, .integers = {value}};
}

GgufValue list(GgufType type, std::vector<std::int64_t> values) {
  const std::uint64_t count = values.size();
  return {.type = GgufType::kArray,
          .element_type = type,
          .count = count,
          .integers = std::move(values)};
}

bool attends(const Layer& layer) {
  return layer.kind != LayerKind::kLinear && layer.kind != LayerKind::kMamba &&
         layer.kind != LayerKind::kNone;
}

bool slides(const Layer& layer) {
  return layer.kind == LayerKind::kSliding || layer.kind == LayerKind::kChunked;
}

class Writer {
 public:
  Writer(const Profile& profile, const config::ModelConfig& model, const std::string& gguf)
      : profile_(profile), model_(model), gguf_(gguf) {
    const auto* const row = std::ranges::find(kArchs, std::string_view(gguf), &ArchRow::gguf);
    if (row != kArchs.end()) arch_ = *row;
    if (!model.mla) arch_.latent = false;
    text_ = json::resolve_pointer(model.file, model.text_pointer);
  }

  Metadata run() {
    GgufValue name;
    name.type = name.element_type = GgufType::kString;
    name.text = gguf_;
    out_.insert_or_assign("general.architecture", std::move(name));
    write_sizes();
    write_heads();
    write_lengths();
    write_windows();
    write_state();
    write_experts();
    copy_integers();
    write_rest();
    write_draft();
    fill_required();
    return std::move(out_);
  }

 private:
  void set(std::string_view suffix, std::int64_t value) {
    if (value < 0) return;
    out_.insert_or_assign(gguf_ + "." + std::string(suffix), scalar(GgufType::kUint32, value));
  }
  void set(std::string_view suffix, const config::IntField& field) {
    if (field) set(suffix, *field);
  }
  void set_list(std::string_view suffix, GgufType type, std::vector<std::int64_t> values) {
    out_.insert_or_assign(gguf_ + "." + std::string(suffix), list(type, std::move(values)));
  }
  // A list where layers differ, else a number.
  void set_per_layer(std::string_view suffix, std::vector<std::int64_t> values) {
    const bool same =
        std::ranges::all_of(values, [&](std::int64_t value) { return value == values.front(); });
    if (values.empty()) return;
    if (same) return set(suffix, values.front());
    set_list(suffix, GgufType::kInt32, std::move(values));
  }

  template <class Value>
  [[nodiscard]] std::vector<std::int64_t> per_layer(Value value) const {
    std::vector<std::int64_t> out;
    out.reserve(model_.layers.size());
    for (const Layer& layer : model_.layers) out.push_back(value(layer));
    return out;
  }

  [[nodiscard]] bool has_state() const {
    return std::ranges::any_of(model_.layers, &Layer::has_state);
  }

  void write_sizes() {
    const std::int64_t layers = model_.layers.empty()
                                    ? model_.num_hidden_layers.value_or(-1)
                                    : static_cast<std::int64_t>(model_.layers.size());
    set("block_count", layers);
    set("context_length", context());
    if (arch_.context != 0) set("context_length", arch_.context);
    const bool bamba =
        !model_.architectures.empty() && model_.architectures.front() == "BambaForCausalLM";
    if (gguf_ == "granitehybrid" && has_state() && !bamba) set("context_length", kAnyContext);
    set("embedding_length", model_.hidden_size);
    // Feed-forward blocks of their own, among attention and state layers.
    const bool own_blocks = gguf_ == "nemotron_h" || gguf_ == "nemotron_h_moe";
    if (own_blocks) {
      set_per_layer("feed_forward_length", per_layer([&](const Layer& layer) {
                      const bool block = layer.kind == LayerKind::kNone;
                      return block ? model_.intermediate_size.value_or(1) : std::int64_t{0};
                    }));
    } else {
      set("feed_forward_length", model_.intermediate_size);
    }
  }

  [[nodiscard]] bool is_headless_model() const {
    const ArchitectureRow* row = profile_.find_architecture(gguf_);
    return row != nullptr && row->recurrent;
  }

  // The fields that a class reads where max_position_embeddings is absent.
  [[nodiscard]] std::int64_t context() const {
    if (model_.max_position_embeddings) return *model_.max_position_embeddings;
    if (const json::Value* positions = text_value("/n_positions")) return positions->as_integer();
    if (const json::Value* length = text_value("/seq_length")) return length->as_integer();
    constexpr std::int64_t kT5Positions = 512;
    if (gguf_ == "t5" || gguf_ == "t5encoder") return kT5Positions;
    return gguf_ == "bloom" ? model_.hidden_size.value_or(-1) : -1;
  }

  void write_heads() {
    if (is_headless_model()) return set("attention.head_count", 0);
    const std::int64_t heads = model_.num_attention_heads.value_or(0);
    const std::int64_t kv_heads = model_.num_key_value_heads.value_or(heads);
    // The converter of these models of blocks writes no heads for a block without attention.
    const bool blocks = gguf_ == "deci";
    set_per_layer("attention.head_count", per_layer([&](const Layer& layer) {
                    if (blocks && !attends(layer)) return std::int64_t{0};
                    return attends(layer) && layer.num_attention_heads > 0
                               ? layer.num_attention_heads
                               : heads;
                  }));
    set_per_layer("attention.head_count_kv", per_layer([&](const Layer& layer) {
                    if (!attends(layer)) {
                      return arch_.headless_state || blocks ? std::int64_t{0} : kv_heads;
                    }
                    if (arch_.latent) return std::int64_t{1};
                    return layer.num_key_value_heads > 0 ? layer.num_key_value_heads : kv_heads;
                  }));
  }

  void write_lengths() {
    if (model_.mla) set("attention.kv_lora_rank", model_.mla->kv_lora_rank);
    if (arch_.latent) return write_latent_lengths();
    const auto full = std::ranges::find_if(
        model_.layers, [](const Layer& layer) { return attends(layer) && !slides(layer); });
    const auto window = std::ranges::find_if(model_.layers, slides);
    const auto shown = full != model_.layers.end() ? full : window;
    if (shown == model_.layers.end()) return;
    write_pair("", *shown);
    if (window != model_.layers.end()) write_pair("_swa", *window);
  }

  void write_pair(const std::string& suffix, const Layer& layer) {
    if (layer.head_dim <= 0) return;
    set("attention.key_length" + suffix, layer.head_dim);
    set("attention.value_length" + suffix,
        layer.v_head_dim > 0 ? layer.v_head_dim : layer.head_dim);
  }

  void write_latent_lengths() {
    const config::Mla& mla = *model_.mla;
    const std::int64_t rank = mla.kv_lora_rank.value_or(0);
    const std::int64_t rope = mla.qk_rope_head_dim.value_or(0);
    set("attention.key_length", saturating_sum(rank, rope));
    set("attention.value_length", rank);
    set("attention.key_length_mla", saturating_sum(mla.qk_nope_head_dim.value_or(0), rope));
    set("attention.value_length_mla", mla.v_head_dim);
  }

  void write_windows() {
    if (gguf_ == "llama4") {
      // Written only to say that no layer is chunked.
      if (!std::ranges::any_of(model_.layers, slides)) set("attention.sliding_window", 0);
      return;
    }
    const auto window = std::ranges::find_if(model_.layers, [](const Layer& layer) {
      return layer.kind == LayerKind::kSliding && layer.window.has_value();
    });
    if (window != model_.layers.end()) {
      set("attention.sliding_window", *window->window);
    } else {
      set("attention.sliding_window", model_.sliding_window);
    }
    if (!arch_.window_flags) return;
    set_list("attention.sliding_window_pattern", GgufType::kBool,
             per_layer([](const Layer& layer) { return slides(layer) ? 1 : 0; }));
  }

  void write_state() {
    if (arch_.state_list) {
      set_list("attention.recurrent_layers", GgufType::kBool, per_layer([](const Layer& layer) {
                 return layer.kind == LayerKind::kLinear || layer.kind == LayerKind::kMamba ? 1 : 0;
               }));
    }
    if (!model_.linear_state) return;
    const config::LinearState& state = *model_.linear_state;
    set("ssm.conv_kernel", state.conv_kernel);
    set("ssm.state_size", state.state_size);
    set("ssm.inner_size", state.intermediate_size);
    set("ssm.time_step_rank", state.num_heads.value_or(0));
    set("ssm.group_count", state.num_groups.value_or(1));
  }

  void write_experts() {
    if (!model_.moe || model_.moe->num_experts.value_or(0) <= 0) return;
    set("expert_count", model_.moe->num_experts);
    set("expert_used_count", model_.moe->num_experts_per_tok.value_or(1));
    set("expert_feed_forward_length", model_.moe->moe_intermediate_size);
    // No memory depends on it; some classes take one kind of scoring only.
    constexpr std::int64_t kSigmoid = 2;
    constexpr std::int64_t kSqrtSoftplus = 4;
    const bool sqrt_only = gguf_ == "deepseek4" || gguf_ == "dflash";
    set("expert_gating_func", sqrt_only ? kSqrtSoftplus : kSigmoid);
  }

  [[nodiscard]] const json::Value* text_value(std::string_view pointer) const {
    if (text_ == nullptr || pointer.empty()) return nullptr;
    const json::Value* value = json::resolve_pointer(*text_, pointer);
    return value != nullptr && value->is_integer() ? value : nullptr;
  }

  void copy_integers() {
    for (const CopiedKey& row : kCopied) {
      for (const std::string_view field : row.fields) {
        const json::Value* value = text_value(field);
        if (value == nullptr) continue;
        set(row.key, value->as_integer());
        break;
      }
    }
  }

  void write_rest() {
    if (model_.sparse && !model_.sparse->compress_ratios.empty()) {
      set_list("attention.compress_ratios", GgufType::kInt32, model_.sparse->compress_ratios);
    }
    const json::Value* types = text_value("/type_vocab_size");
    out_.insert_or_assign("tokenizer.ggml.token_type_count",
                          scalar(GgufType::kUint32, types == nullptr ? 1 : types->as_integer()));
    if (gguf_ == "minimax-m3") {
      const auto dense =
          std::ranges::find_if(model_.layers, [](const Layer& layer) { return layer.moe; });
      set("leading_dense_block_count", dense - model_.layers.begin());
    }
  }

  // The layers of the target whose output a draft reads; without a list, any (no memory
  // depends on them).
  void write_draft() {
    if (gguf_ != "eagle3" && gguf_ != "dflash") return;
    std::vector<std::int64_t> targets = model_.draft.target_layer_ids;
    if (targets.empty() && gguf_ == "eagle3") targets = {1, 2, 3};
    if (targets.empty()) targets = {1};
    set_list("target_layers", GgufType::kUint32, std::move(targets));
  }

  // Keys of a class that nothing here depends on: any value loads.
  void fill_required() {
    const ArchitectureRow* row = profile_.find_architecture(gguf_);
    const ClassRow* reads = row == nullptr ? nullptr : profile_.find_reads(row->class_name);
    if (reads == nullptr) return;
    for (const ReadRow& read : reads->rows) {
      if (!read.required || read.field.known()) continue;
      std::string key = read.key;
      if (key.starts_with("%s")) key.replace(0, 2, gguf_);
      if (!out_.contains(key)) out_.emplace(std::move(key), placeholder(read));
    }
  }

  static GgufValue placeholder(const ReadRow& read) {
    GgufValue value;
    value.type = value.element_type = read.type;
    if (read.form != ReadForm::kScalar && read.form != ReadForm::kScalarOrArray) {
      value.type = GgufType::kArray;
    }
    if (read.type == GgufType::kFloat32) {
      value.reals = {1.0};
    } else if (read.type != GgufType::kString) {
      value.integers = {1};
    }
    return value;
  }

  const Profile& profile_;
  const config::ModelConfig& model_;
  const std::string& gguf_;
  const json::Value* text_ = nullptr;
  ArchRow arch_;
  Metadata out_;
};

}  // namespace

Metadata write_metadata(const Profile& profile, const config::ModelConfig& model,
                        const std::string& gguf) {
  return Writer(profile, model, gguf).run();
}

}  // namespace kernelpath::engines::llamacpp
