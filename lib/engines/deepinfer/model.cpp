#include "engines/deepinfer/model.h"

#include "base/text.h"
#include "engines/deepinfer/python.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::deepinfer {
namespace {

constexpr std::string_view kStage = "configs";
constexpr RegisteredModel kModel = {"DeepseekV41ForCausalLM", "DeepseekVLForCausalLM",
                                    "deepseek_vl"};
// More layers than any model has: a hostile count must not become an allocation.
constexpr std::int64_t kMostLayers = 100'000;

Fault value_error(std::string text, std::string rule) {
  return {.stage = std::string(kStage),
          .type = "ValueError",
          .text = std::move(text),
          .rule = std::move(rule)};
}

Fault missing_key(std::string_view key) {
  return {.stage = std::string(kStage),
          .type = "KeyError",
          .text = python_repr(key),
          .rule = "missing-key"};
}

// A value that Python would stumble over sooner or later; when depends on the value.
Fault wrong_type(std::string_view key, const json::Value& value, std::string_view wanted) {
  return {.stage = std::string(kStage),
          .type = "TypeError",
          .text = fmt::format("{} is {}, not {}", key, value.brief(), wanted),
          .rule = "field-type"};
}

// Required members of one object, in the order in which the engine asks for them.
class Fields {
 public:
  explicit Fields(const json::Value& object) : object_(&object) {}

  [[nodiscard]] Checked<const json::Value*> value(std::string_view key) const {
    const json::Value* found = object_->find(key);
    if (found == nullptr) return raise(missing_key(key));
    return found;
  }
  [[nodiscard]] Checked<std::int64_t> integer(std::string_view key) const {
    KERNELPATH_TRY(found, value(key));
    return integer_of(key, *found);
  }
  [[nodiscard]] Checked<std::int64_t> integer_or(std::string_view key,
                                                 std::int64_t otherwise) const {
    const json::Value* found = object_->find(key);
    if (found == nullptr) return otherwise;
    return integer_of(key, *found);
  }
  [[nodiscard]] Checked<std::vector<std::int64_t>> integers(std::string_view key) const {
    KERNELPATH_TRY(found, value(key));
    return integers_of(key, *found);
  }
  [[nodiscard]] Checked<std::string> text(std::string_view key) const {
    KERNELPATH_TRY(found, value(key));
    return found->is_string() ? found->as_string() : found->brief();
  }
  // Asks for keys whose values decide nothing here.
  [[nodiscard]] Checked<bool> require(std::span<const std::string_view> keys) const {
    for (const std::string_view key : keys) KERNELPATH_CHECK_OK(value(key));
    return true;
  }
  [[nodiscard]] const json::Value* find(std::string_view key) const { return object_->find(key); }

  static Checked<std::int64_t> integer_of(std::string_view key, const json::Value& value) {
    // Beyond this no model means it, and sizes made of it could not be told any more.
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    if (value.is_bool()) return value.as_bool() ? 1 : 0;
    const bool fits =
        value.is_integer() && value.as_integer() >= -kMost && value.as_integer() <= kMost;
    if (fits) return value.as_integer();
    return raise(wrong_type(key, value, "an integer of at most 2^31"));
  }
  static Checked<std::vector<std::int64_t>> integers_of(std::string_view key,
                                                        const json::Value& value) {
    if (!value.is_array()) return raise(wrong_type(key, value, "a list of integers"));
    std::vector<std::int64_t> out;
    for (const json::Value& item : value.items()) {
      KERNELPATH_TRY(number, integer_of(key, item));
      out.push_back(number);
    }
    return out;
  }

 private:
  const json::Value* object_;
};

// Python's truth of a value.
bool is_true(const json::Value* value) {
  if (value == nullptr || value->is_null()) return false;
  if (value->is_bool()) return value->as_bool();
  if (value->is_number()) return value->as_double() != 0;
  if (value->is_string()) return !value->as_string().empty();
  return value->is_array() ? !value->items().empty() : !value->members().empty();
}

// "Unsupported HF KEY: VALUE; expected VALUE" unless the field has the one value that is taken.
Checked<bool> expect_value(const Fields& fields, std::string_view key, const json::Value& expected,
                           std::string_view rule) {
  KERNELPATH_TRY(found, fields.value(key));
  if (*found == expected) return true;
  // Python's True == 1 and False == 0.
  if (found->is_bool() && expected.is_number() &&
      expected.as_double() == static_cast<double>(found->as_bool())) {
    return true;
  }
  if (expected.is_bool() && found->is_number() &&
      found->as_double() == static_cast<double>(expected.as_bool())) {
    return true;
  }
  return raise(value_error(fmt::format("Unsupported HF {}: {}; expected {}", key,
                                       python_repr(*found), python_repr(expected)),
                           std::string(rule)));
}

Checked<bool> check_fixed_values(const Fields& top, const Fields& text) {
  const auto word = [](std::string_view value) { return json::Value::string(std::string(value)); };
  KERNELPATH_CHECK_OK(expect_value(text, "hidden_act", word("silu"), "text-field-value"));
  KERNELPATH_CHECK_OK(
      expect_value(text, "attention_bias", json::Value::boolean(false), "text-field-value"));
  KERNELPATH_CHECK_OK(
      expect_value(text, "attention_dropout", json::Value::number(0.0), "text-field-value"));
  KERNELPATH_CHECK_OK(
      expect_value(text, "num_key_value_heads", json::Value::integer(1), "text-field-value"));
  KERNELPATH_CHECK_OK(expect_value(top, "dtype", word("bfloat16"), "dtype"));
  KERNELPATH_TRY(quantization, top.value("quantization_config"));
  const Fields quant(*quantization);
  constexpr std::string_view kRule = "quantization-field-value";
  KERNELPATH_CHECK_OK(expect_value(quant, "quant_method", word("fp8"), kRule));
  KERNELPATH_CHECK_OK(expect_value(quant, "expert_dtype", word("fp4"), kRule));
  KERNELPATH_CHECK_OK(expect_value(quant, "activation_scheme", word("dynamic"), kRule));
  const json::Value block =
      json::Value::array({json::Value::integer(32), json::Value::integer(32)});
  KERNELPATH_CHECK_OK(expect_value(quant, "weight_block_size", block, kRule));
  return expect_value(quant, "scale_fmt", word("ue8m0"), kRule);
}

Checked<bool> read_sharing(const Fields& text, Model& model) {
  KERNELPATH_TRY(layers, text.integer("num_hidden_layers"));
  KERNELPATH_TRY(drafts, text.integer_or("num_nextn_predict_layers", 0));
  if (layers < 0 || drafts < 0 || layers > kMostLayers || drafts > kMostLayers) {
    return raise(value_error(
        fmt::format("{} layers and {} draft layers are no model", layers, drafts), "layer-count"));
  }
  model.num_layers = layers;
  model.num_draft_layers = drafts;
  KERNELPATH_TRY(candidate, text.value("candidate_source_layer_id"));
  KERNELPATH_TRY(index_sources, text.integers("index_source_layer_ids"));
  KERNELPATH_TRY(kv_sources, text.integers("kv_source_layer_ids"));
  model.index_sources = index_sources;
  model.kv_sources = kv_sources;
  model.index_k_sources = kv_sources;
  if (const json::Value* own = text.find("index_k_source_layer_ids")) {
    KERNELPATH_TRY(index_k, Fields::integers_of("index_k_source_layer_ids", *own));
    model.index_k_sources = index_k;
  }
  if (!candidate->is_null()) {
    CandidateSettings settings;
    KERNELPATH_TRY(source, Fields::integer_of("candidate_source_layer_id", *candidate));
    KERNELPATH_TRY(blocks, text.integer("candidate_topk_blocks"));
    KERNELPATH_TRY(block_size, text.integer("candidate_block_size"));
    settings = {.source_layer = source, .topk_blocks = blocks, .block_size = block_size};
    model.candidates = settings;
  }
  for (const auto* sources : {&model.index_sources, &model.index_k_sources, &model.kv_sources}) {
    if (!sources->empty()) continue;
    return raise({.stage = std::string(kStage),
                  .type = "IndexError",
                  .text = "list index out of range",
                  .rule = "empty-source-list"});
  }
  return true;
}

Checked<bool> read_vision(const Fields& top, const Fields& text) {
  KERNELPATH_TRY(vision, top.value("vision_config"));
  const Fields fields(*vision);
  KERNELPATH_CHECK_OK(fields.value("hidden_size"));
  KERNELPATH_CHECK_OK(text.value("hidden_size"));
  return fields.require(std::array{std::string_view("downsample_ratio")});
}

Checked<bool> read_attention(const Fields& text, Model& model) {
  KERNELPATH_TRY(heads, text.integer("num_attention_heads"));
  model.num_attention_heads = heads;
  KERNELPATH_CHECK_OK(text.require(
      std::to_array<std::string_view>({"vocab_size", "max_position_embeddings", "rms_norm_eps",
                                       "swiglu_limit", "tie_word_embeddings"})));
  KERNELPATH_TRY(window, text.integer("sliding_window"));
  model.sliding_window = window;
  KERNELPATH_CHECK_OK(text.require(std::to_array<std::string_view>({"rope_theta", "q_lora_rank"})));
  KERNELPATH_TRY(head_dim, text.integer("head_dim"));
  KERNELPATH_TRY(rope_dim, text.integer("qk_rope_head_dim"));
  KERNELPATH_CHECK_OK(text.value("o_lora_rank"));
  KERNELPATH_TRY(groups, text.integer("o_groups"));
  KERNELPATH_TRY(hc_mult, text.integer("hc_mult"));
  KERNELPATH_CHECK_OK(
      text.require(std::to_array<std::string_view>({"hc_eps", "hc_sinkhorn_iters"})));
  model.head_dim = head_dim;
  model.qk_rope_head_dim = rope_dim;
  model.o_groups = groups;
  model.hc_mult = hc_mult;
  const json::Value* fp4 = text.find("use_fp4_sparse_kv");
  model.fp4_main_cache = fp4 == nullptr || is_true(fp4);
  return true;
}

// The first layer of ratio 1, over draft entries too.
Checked<bool> read_boundary(const Fields& text, Model& model) {
  KERNELPATH_TRY(ratios, text.integers("compress_ratios"));
  model.compress_ratios = ratios;
  const auto first = std::ranges::find(ratios, 1);
  if (first == ratios.end()) {
    return raise(
        {.stage = std::string(kStage), .type = "StopIteration", .rule = "no-ratio-1-layer"});
  }
  model.boundary = first - ratios.begin();
  return true;
}

Checked<bool> read_experts(const Fields& text, Model& model) {
  KERNELPATH_CHECK_OK(text.value("moe_intermediate_size"));
  KERNELPATH_TRY(routed, text.integer("n_routed_experts"));
  KERNELPATH_CHECK_OK(text.require(std::to_array<std::string_view>(
      {"n_shared_experts", "num_experts_per_tok", "routed_scaling_factor"})));
  KERNELPATH_TRY(scoring, text.text("scoring_func"));
  KERNELPATH_TRY(norm, text.value("norm_topk_prob"));
  KERNELPATH_TRY(method, text.text("topk_method"));
  model.routed_experts = routed;
  model.scoring_func = scoring;
  model.topk_method = method;
  model.norm_topk_prob = is_true(norm);
  return true;
}

Checked<bool> read_draft(const Fields& top, const Fields& text, Model& model) {
  KERNELPATH_CHECK_OK(text.value("dspark_block_size"));
  KERNELPATH_TRY(targets, text.integers("dspark_target_layer_ids"));
  KERNELPATH_TRY(rank, text.integer("dspark_markov_rank"));
  KERNELPATH_CHECK_OK(top.value("pad_token_id"));
  KERNELPATH_CHECK_OK(text.value("dspark_noise_token_id"));
  KERNELPATH_TRY(routed, text.integer("dspark_n_routed_experts"));
  KERNELPATH_CHECK_OK(text.value("dspark_num_experts_per_tok"));
  model.draft_target_layers = targets;
  model.draft_markov_rank = rank;
  model.draft_routed_experts = routed;
  return true;
}

Checked<bool> read_engram(const Fields& top, const Fields& text, Model& model) {
  const json::Value* layers = text.find("engram_layer_ids");
  if (!is_true(layers)) return true;
  KERNELPATH_TRY(ids, Fields::integers_of("engram_layer_ids", *layers));
  KERNELPATH_TRY(ngram, text.integer("engram_max_ngram_size"));
  KERNELPATH_CHECK_OK(text.require(
      std::to_array<std::string_view>({"engram_vocab_size", "engram_n_heads", "engram_head_dim"})));
  KERNELPATH_CHECK_OK(
      top.require(std::to_array<std::string_view>({"bos_token_id", "eos_token_id"})));
  KERNELPATH_CHECK_OK(text.value("engram_pad_token_id"));
  model.engram = {.layers = ids,
                  .max_ngram = ngram,
                  .compressed_tokenizer = is_true(text.find("engram_compressed_vocab_size"))};
  return true;
}

Checked<bool> read_rope_scaling(const Fields& text) {
  const json::Value* scaling = text.find("rope_scaling");
  if (!is_true(scaling)) return true;
  return Fields(*scaling).require(std::to_array<std::string_view>(
      {"original_max_position_embeddings", "factor", "beta_fast", "beta_slow"}));
}

Checked<bool> read_compression(const Fields& text, Model& model) {
  const auto entries = static_cast<std::int64_t>(model.compress_ratios.size());
  if (entries != model.all_layers()) {
    return refuse(std::string(kStage), "compress-ratios-length",
                  fmt::format("compress_ratios length {} != n_layer({}) + nextn({})", entries,
                              model.num_layers, model.num_draft_layers));
  }
  if (!model.any_compressed()) return true;
  KERNELPATH_CHECK_OK(text.value("compress_rope_theta"));
  KERNELPATH_TRY(topk, text.integer("index_topk"));
  KERNELPATH_TRY(heads, text.integer("index_n_heads"));
  KERNELPATH_TRY(head_dim, text.integer("index_head_dim"));
  model.index_topk = topk;
  model.index_n_heads = heads;
  model.index_head_dim = head_dim;
  return read_rope_scaling(text);
}

}  // namespace

const RegisteredModel& registered_model() { return kModel; }

bool Model::any_compressed() const {
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    if (compressed(layer)) return true;
  }
  return false;
}

Checked<std::string> read_architecture(const json::Value* config, std::string_view folder) {
  const std::string file = fmt::format("{}/config.json", folder);
  if (config == nullptr) {
    return raise({.stage = std::string(kStage),
                  .type = "FileNotFoundError",
                  .text = "[Errno 2] No such file or directory: " + python_repr(file)});
  }
  const json::Value* names = config->find("architectures");
  const bool one = names != nullptr && names->is_array() && names->items().size() == 1 &&
                   names->items().front().is_string();
  if (!one) {
    const std::string got = names == nullptr ? "None" : python_repr(*names);
    return raise(value_error(
        fmt::format("Expected architectures to contain exactly one architecture name in {}, got {}",
                    file, got),
        "architectures-not-one-string"));
  }
  const std::string& name = names->items().front().as_string();
  if (name != kModel.architecture) {
    return raise(value_error(
        fmt::format("Unsupported HF architecture {} in {}; supported architectures: [{}]",
                    python_repr(name), file, python_repr(kModel.architecture)),
        "architecture-not-registered"));
  }
  const json::Value* type = config->find("model_type");
  if (type == nullptr || !type->is_string() || type->as_string() != "deepseek_v41") {
    return raise(
        value_error(fmt::format("Expected a deepseek_v41 HF config.json: {}", file), "model-type"));
  }
  return name;
}

Checked<Model> read_model(const json::Value* config, std::string_view folder) {
  KERNELPATH_CHECK_OK(read_architecture(config, folder));
  const Fields top(*config);
  KERNELPATH_TRY(text_config, top.value("text_config"));
  const Fields text(*text_config);
  KERNELPATH_CHECK_OK(check_fixed_values(top, text));
  Model model;
  KERNELPATH_CHECK_OK(read_sharing(text, model));
  KERNELPATH_CHECK_OK(read_vision(top, text));
  KERNELPATH_CHECK_OK(read_attention(text, model));
  KERNELPATH_CHECK_OK(read_boundary(text, model));
  KERNELPATH_CHECK_OK(read_experts(text, model));
  KERNELPATH_CHECK_OK(read_draft(top, text, model));
  KERNELPATH_CHECK_OK(read_engram(top, text, model));
  KERNELPATH_CHECK_OK(read_compression(text, model));
  KERNELPATH_CHECK_OK(
      top.require(std::to_array<std::string_view>({"bos_token_id", "eos_token_id"})));
  return model;
}

}  // namespace kernelpath::engines::deepinfer
