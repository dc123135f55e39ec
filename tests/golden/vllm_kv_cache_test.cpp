// The cache part of vLLM's recorded whole runs: layers are rebuilt from the recording (backend,
// type of cache, window) and the config (head sizes), and the block size, specs, pages, groups,
// shapes and graphs that follow are compared. Building the layers is proven elsewhere.

#include "engines/vllm/cudagraph.h"
#include "engines/vllm/kv_cache_plan.h"
#include "engines/vllm/profile.h"
#include "equality.h"
#include "json/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::int64_t kDefaultBlockSize = 16;
constexpr std::int64_t kMistralHeads = 32;      // where a config says nothing of its sizes
constexpr std::int64_t kCheckpointTokens = 64;  // of FlashInfer's prefill of gated delta nets

std::optional<std::int64_t> integer(const json::Value* object, std::string_view key) {
  const json::Value* value = object == nullptr ? nullptr : object->find_non_null(key);
  return value != nullptr && value->is_integer() ? std::optional(value->as_integer())
                                                 : std::nullopt;
}

std::string text(const json::Value* object, std::string_view key, std::string otherwise = {}) {
  const json::Value* value = object == nullptr ? nullptr : object->find_non_null(key);
  return value != nullptr && value->is_string() ? value->as_string() : otherwise;
}

bool flag(const json::Value* object, std::string_view key) {
  const json::Value* value = object == nullptr ? nullptr : object->find_non_null(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

// A recorded run whose layers can be rebuilt.
class RecordedRun {
 public:
  RecordedRun(const Profile& profile, const golden::Case& recorded)
      : profile_(profile),
        out_(recorded.out()),
        resolved_(out_.find("resolved_config")),
        final_(out_.find("final_config")),
        flags_(recorded.in().find("flags")) {
    config_ = recorded.in().find("config");
    if (const json::Value* nested = config_->find_non_null("text_config")) config_ = nested;
    read_machine(text(&recorded.in(), "cap"));
    read_settings();
    read_run();
    read_layers();
  }

  [[nodiscard]] SelectorContext context() const {
    return {.profile = profile_, .machine = machine_, .settings = settings_};
  }
  [[nodiscard]] const json::Value& out() const { return out_; }
  [[nodiscard]] const json::Value* final_config() const { return final_; }
  [[nodiscard]] const std::vector<BuiltLayer>& layers() const { return layers_; }
  [[nodiscard]] const std::vector<std::size_t>& rows() const { return rows_; }

  CacheModel model;
  RunConfig run;
  RunConfig before;

 private:
  [[nodiscard]] bool later() const { return profile_.at_least(0, 33); }

  void read_machine(const std::string& capability) {
    const std::size_t dot = capability.find('.');
    machine_.capability = {.major = std::stoi(capability.substr(0, dot)),
                           .minor = std::stoi(capability.substr(dot + 1))};
  }

  void read_settings() {
    const std::int64_t tp = integer(flags_, "tensor_parallel_size").value_or(1);
    model.use_mla = flag(resolved_, "use_mla");
    model.hybrid = flag(resolved_, "is_hybrid");
    model.head_size = integer(resolved_, "head_size").value_or(0);
    model.num_kv_heads = model.use_mla ? 1 : integer(resolved_, "kv_heads_per_rank").value_or(1);
    const auto decoder_heads = integer(config_, "decoder_attention_heads");
    model.num_heads =
        integer(config_, "num_attention_heads").value_or(decoder_heads.value_or(kMistralHeads)) /
        tp;
    model.mamba_chunk_size = integer(config_, "mamba_chunk_size");
    ModelFacts facts = {.num_heads = model.num_heads,
                        .num_kv_heads = model.num_kv_heads,
                        .head_size = model.head_size,
                        .is_mm_prefix_lm = flag(resolved_, "mm_prefix_lm"),
                        .has_softcap = integer(config_, "attn_logit_softcapping").has_value()};
    facts.kv_lora_rank = integer(config_, "kv_lora_rank");
    settings_.model = facts;
    settings_.flash_attn_version = integer(final_, "flash_attn_version");
    settings_.run_kv_dtype = text(final_, "cache_dtype", "auto");
    settings_.dcp = integer(flags_, "decode_context_parallel_size").value_or(1);
    const json::Value* attention = flags_->find_non_null("attention_config");
    if (attention == nullptr) return;
    const json::Value* trtllm = attention->find_non_null("use_trtllm_attention");
    if (trtllm != nullptr) settings_.use_trtllm_attention = trtllm->as_bool();
  }

  void read_run() {
    run.dtype = text(resolved_, "dtype", "bfloat16");
    run.cache_dtype = text(final_, "cache_dtype", "auto");
    run.attention_backend = optional_text(final_, "attention_backend");
    run.flash_attn_version = integer(final_, "flash_attn_version");
    run.block_size = integer(flags_, "block_size").value_or(kDefaultBlockSize);
    run.user_block_size = integer(flags_, "block_size").has_value();
    run.prefix_caching = flag(final_, "enable_prefix_caching");
    run.mamba_cache_mode = text(final_, "mamba_cache_mode", "none");
    run.mamba_ssm_cache_dtype = text(final_, "mamba_ssm_cache_dtype", "auto");
    run.skip_layers = strings(final_->find("kv_cache_dtype_skip_layers"));
    run.use_non_causal = flag(final_, "use_non_causal");
    run.hybrid_manager_off = flag(final_, "disable_hybrid_kv_cache_manager");
    // The recorded runs were asked for no longer sequences.
    run.max_model_len = integer(flags_, "max_model_len").value_or(4096);
    if (integer(final_, "mamba_block_size")) {
      run.mamba_block_size = run.prefix_caching ? run.block_size : run.max_model_len;
    }
    run.dcp = settings_.dcp;
    const json::Value* speculative = flags_->find_non_null("speculative_config");
    run.speculative_tokens = integer(speculative, "num_speculative_tokens").value_or(0);
    read_before();
  }

  // What the user and the engine's defaults say, before any hook.
  void read_before() {
    before = run;
    before.cache_dtype = text(flags_, "kv_cache_dtype", "auto");
    before.attention_backend = optional_text(flags_, "attention_backend");
    before.flash_attn_version.reset();
    before.mamba_cache_mode = "none";
    before.mamba_ssm_cache_dtype = "auto";
    before.skip_layers = strings(flags_->find("kv_cache_dtype_skip_layers"));
    // The recorded runs compare with no layers left out, whatever the user says.
    before.skip_layers.clear();
    before.use_non_causal = false;
    run.enforce_eager = flag(flags_, "enforce_eager");
    const json::Value* compilation = flags_->find_non_null("compilation_config");
    run.user_cudagraph_mode = optional_text(compilation, "cudagraph_mode");
  }

  static std::optional<std::string> optional_text(const json::Value* object, std::string_view key) {
    std::string value = text(object, key);
    return value.empty() ? std::nullopt : std::optional(std::move(value));
  }

  static std::vector<std::string> strings(const json::Value* list) {
    std::vector<std::string> out;
    if (list == nullptr || !list->is_array()) return out;
    for (const json::Value& item : list->items()) out.push_back(item.as_string());
    return out;
  }

  void read_layers() {
    const json::Value* rows = out_.find("layers");
    for (std::size_t row = 0; row < rows->items().size(); ++row) {
      const json::Value& recorded = rows->items()[row];
      const std::int64_t count = integer(&recorded, "layers").value_or(1);
      for (std::int64_t i = 0; i < count; ++i) {
        layers_.push_back(layer_of(recorded, i, count));
        rows_.push_back(row);
      }
    }
  }

  // Where the hybrid manager is off, the recording has merged the windows of all layers since 0.33.
  [[nodiscard]] bool is_windowed(const json::Value& recorded, std::int64_t index) const {
    if (!integer(&recorded, "sliding_window")) return false;
    const json::Value* types = config_->find_non_null("layer_types");
    if (!run.hybrid_manager_off || !later()) return true;
    if (types != nullptr) {
      return types->items()[static_cast<std::size_t>(index)].as_string() == "sliding_attention";
    }
    const std::int64_t pattern = integer(config_, "sliding_window_pattern").value_or(6);
    return (index + 1) % pattern != 0;
  }

  BuiltLayer layer_of(const json::Value& recorded, std::int64_t index, std::int64_t /*count*/) {
    BuiltLayer layer = {.index = index,
                        .reported_backend = text(&recorded, "backend"),
                        .class_name = text(&recorded, "class"),
                        .implementation = text(&recorded, "impl"),
                        .kv_dtype = text(&recorded, "kv_cache_dtype", "auto"),
                        .num_heads = model.num_heads,
                        .num_kv_heads = model.num_kv_heads,
                        .head_size = model.head_size,
                        .chunk = integer(&recorded, "chunk")};
    const std::string spec = text(&recorded, "spec");
    for (const BackendClass& known : profile_.classes) {
      if (layer.class_name.ends_with(known.class_name)) layer.backend = &known;
    }
    if (is_windowed(recorded, index)) layer.window = integer(&recorded, "sliding_window");
    if (spec.empty()) layer.role = LayerRole::kEncoderOnly;
    if (spec == "CrossAttentionSpec") layer.role = LayerRole::kCross;
    if (spec == "MLAAttentionSpec") layer.role = LayerRole::kMla;
    if (layer.reported_backend.ends_with("_INDEXER")) read_indexer(layer);
    if (spec == "MambaSpec") read_state(recorded, layer);
    const auto nope = integer(config_, "qk_nope_head_dim");
    const auto rope = integer(config_, "qk_rope_head_dim");
    // Without the latent cache the keys of these models are kept in full.
    if (nope && rope && layer.role == LayerRole::kAttention) layer.head_size = *nope + *rope;
    const auto global = integer(config_, "global_head_dim");
    if (global) read_global_head(*global, layer);
    return layer;
  }

  void read_indexer(BuiltLayer& layer) const {
    const std::int64_t size = integer(config_, "index_head_dim").value_or(128);
    layer.role = LayerRole::kIndexer;
    layer.kv_dtype = "uint8";
    layer.head_size = size + size / 128 * 4;
  }

  void read_state(const json::Value& recorded, BuiltLayer& layer) const {
    layer.role = LayerRole::kState;
    layer.state_dtypes = strings(recorded.find("state_dtypes"));
    for (const json::Value& shape : recorded.find("state_shapes")->items()) {
      std::vector<std::int64_t> axes;
      for (const json::Value& axis : shape.items()) axes.push_back(axis.as_integer());
      layer.state_shapes.push_back(std::move(axes));
    }
    // Nets on these generations prefill with FlashInfer's kernel.
    const int major = machine_.capability.major;
    const bool flashinfer = major == 9 || major == 10 || major == 12;
    if (later() && layer.reported_backend == "GDN_ATTN" && flashinfer) {
      layer.checkpoint_alignment = kCheckpointTokens;
    }
  }

  void read_global_head(std::int64_t global, BuiltLayer& layer) const {
    layer.head_size = layer.window ? integer(config_, "head_dim").value_or(global) : global;
    layer.num_kv_heads = integer(config_, "num_key_value_heads").value_or(layer.num_kv_heads);
    const auto global_heads = integer(config_, "num_global_key_value_heads");
    if (!layer.window && global_heads) layer.num_kv_heads = *global_heads;
  }

  const Profile& profile_;
  const json::Value& out_;
  const json::Value* resolved_;
  const json::Value* final_;
  const json::Value* flags_;
  const json::Value* config_ = nullptr;
  Machine machine_;
  SelectorSettings settings_;
  std::vector<BuiltLayer> layers_;
  std::vector<std::size_t> rows_;  // of the recording, one a layer
};

json::Value axes_value(const std::vector<ShapeAxis>& axes) {
  std::vector<json::Value> values;
  for (const ShapeAxis& axis : axes) {
    values.push_back(axis ? json::Value::integer(*axis) : json::Value::string("num_blocks"));
  }
  return json::Value::array(std::move(values));
}

void expect_integer(const json::Value& recorded, std::string_view key, std::int64_t ours) {
  const json::Value* value = recorded.find_non_null(key);
  if (value == nullptr) return;
  EXPECT_EQ(static_cast<double>(ours), value->as_double()) << key;
}

void expect_layer(const json::Value& recorded, const LayerCache& ours) {
  const std::string spec = text(&recorded, "spec");
  ASSERT_EQ(ours.spec.has_value(), !spec.empty());
  if (!ours.spec) return;
  EXPECT_EQ(spec_class_name(ours.spec->kind), spec);
  expect_integer(recorded, "block_size", ours.spec->block_size);
  expect_integer(recorded, "page_size_bytes", ours.page_bytes);
  EXPECT_EQ(integer(&recorded, "page_size_padded"), ours.spec->page_size_padded);
  EXPECT_EQ(integer(&recorded, "sliding_window"), ours.spec->window);
  if (ours.spec->is_state()) return;
  expect_integer(recorded, "bytes_per_token", ours.page_bytes / ours.spec->block_size);
  expect_integer(recorded, "bytes_per_token_real",
                 ours.unpadded_page_bytes / ours.spec->block_size);
  expect_integer(recorded, "kernel_block_size", ours.kernel_block_size);
  EXPECT_EQ(json::to_text(axes_value(ours.shape)), json::to_text(*recorded.find("kv_cache_shape")));
  const json::Value* order = recorded.find_non_null("stride_order");
  ASSERT_EQ(ours.stride_order.has_value(), order != nullptr);
  if (order == nullptr) return;
  std::vector<std::int64_t> recorded_order;
  for (const json::Value& axis : order->items()) recorded_order.push_back(axis.as_integer());
  EXPECT_EQ(*ours.stride_order, recorded_order);
}

void expect_groups(const json::Value& recorded, const KvCachePlan& plan) {
  const auto groups = recorded.find("kv_groups")->items();
  ASSERT_EQ(plan.groups.size(), groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    SCOPED_TRACE("group " + std::to_string(i));
    EXPECT_EQ(plan.groups[i].spec, text(&groups[i], "spec"));
    expect_integer(groups[i], "layers", static_cast<std::int64_t>(plan.groups[i].layers.size()));
    expect_integer(groups[i], "block_size", plan.groups[i].block_size);
    expect_integer(groups[i], "page_size_bytes", plan.groups[i].page_bytes);
  }
}

void expect_final(const RecordedRun& recorded) {
  const json::Value* final_config = recorded.final_config();
  EXPECT_EQ(integer(final_config, "block_size"), recorded.run.block_size);
  EXPECT_EQ(integer(final_config, "mamba_block_size"), recorded.run.mamba_block_size);
  EXPECT_EQ(integer(final_config, "mamba_page_size_padded"), recorded.run.mamba_page_size_padded);
  const std::string layout = text(final_config, "kv_layout");
  if (!layout.empty()) {
    EXPECT_EQ(layout, recorded.run.kv_layout);
  }
}

void expect_graphs(const RecordedRun& recorded, const GraphPlan& graphs) {
  const json::Value* cudagraph = recorded.out().find("cudagraph");
  EXPECT_EQ(graphs.requested, text(cudagraph, "requested"));
  EXPECT_EQ(graph_level_name(graphs.min_support), text(cudagraph, "min_support"));
  EXPECT_EQ(graphs.limited_by.value_or(""), text(cudagraph, "limited_by"));
  EXPECT_EQ(graphs.final_mode, text(cudagraph, "final"));
  expect_integer(*cudagraph, "uniform_decode_query_len", graphs.uniform_decode_query_len);
}

void expect_rewrites(const RecordedRun& recorded, const GraphPlan& graphs) {
  const std::vector<std::string> ours =
      list_rewrites(recorded.before, recorded.run, graphs.requested);
  std::vector<std::string> theirs;
  for (const json::Value& line : recorded.out().find("rewrites")->items()) {
    theirs.push_back(line.as_string());
  }
  EXPECT_EQ(ours, theirs);
}

void expect_run(const Profile& profile, const golden::Case& recorded_case) {
  RecordedRun recorded(profile, recorded_case);
  const json::Value* resolved = recorded.out().find("resolved_config");
  const GraphModel graph_model = {
      .pooling = text(resolved, "runner") == "pooling",
      .encoder_decoder = text(resolved, "architecture") == "WhisperForConditionalGeneration"};
  configure_graphs(recorded.context(), graph_model, recorded.run);
  const KvCachePlan plan =
      plan_kv_cache(recorded.context(), recorded.model, recorded.layers(), recorded.run);
  ASSERT_TRUE(plan.errors.empty()) << plan.errors.front().text;
  expect_groups(recorded.out(), plan);
  const auto rows = recorded.out().find("layers")->items();
  for (std::size_t i = 0; i < recorded.layers().size(); ++i) {
    SCOPED_TRACE("layer " + std::to_string(i));
    expect_layer(rows[recorded.rows()[i]], plan.layers.empty() ? LayerCache{} : plan.layers[i]);
  }
  const GraphPlan graphs =
      resolve_graphs(recorded.context(), plan, recorded.layers(), recorded.run);
  expect_final(recorded);
  expect_graphs(recorded, graphs);
  expect_rewrites(recorded, graphs);
}

// The runs of a file that got as far as graphs by the engine's own code.
std::size_t expect_runs(const std::string& version) {
  std::size_t checked = 0;
  for (const golden::Case& recorded : golden::read_cases("vllm-" + version + "/end_to_end.jsonl")) {
    if (recorded.out().find("cudagraph") == nullptr) continue;
    SCOPED_TRACE(recorded.id + " on " + text(&recorded.in(), "cap"));
    expect_run(built_in_profile(version), recorded);
    ++checked;
  }
  return checked;
}

TEST(VllmKvCache, EveryRecordedRunOf0251_IsGiven) { EXPECT_EQ(expect_runs("0.25.1"), 100U); }

TEST(VllmKvCache, EveryRecordedRunOf0330_IsGiven) { EXPECT_EQ(expect_runs("0.33.0"), 112U); }

}  // namespace
}  // namespace kernelpath::engines::vllm
