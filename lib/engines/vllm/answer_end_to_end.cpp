#include "engines/vllm/answer_end_to_end.h"

#include "base/text.h"
#include "config/load.h"
#include "engines/answer_fields.h"
#include "engines/vllm/answer_select.h"
#include "engines/vllm/run.h"

#include <algorithm>

namespace kernelpath::engines::vllm {
namespace {

using json::Value;

constexpr std::int64_t kRecordedLength = 4096;
constexpr std::string_view kMetadataStage = "metadata builder";

// --- the question --------------------------------------------------------------------------------

void read_attention_config(AnswerFields& fields, RunFlags& flags) {
  auto attention = fields.object("attention_config");
  if (!attention) return;
  flags.attention_config_backend = attention->optional_text("backend");
  flags.flash_attn_version = attention->optional_integer("flash_attn_version");
  flags.use_trtllm_attention = attention->optional_boolean("use_trtllm_attention");
  flags.use_non_causal = attention->boolean("use_non_causal", false);
  flags.mla_prefill_backend = attention->optional_text("mla_prefill_backend");
  const Value* kinds = attention->raw("backend_per_kind");
  if (kinds == nullptr || !kinds->is_object()) return;
  for (const json::Member& kind : kinds->members()) {
    if (kind.value.is_string()) {
      flags.backend_per_kind.emplace_back(kind.key, to_upper(kind.value.as_string()));
    }
  }
}

void read_compilation(AnswerFields& fields, RunFlags& flags) {
  flags.optimization_level = fields.integer("optimization_level", flags.optimization_level);
  flags.enforce_eager = fields.boolean("enforce_eager", false);
  auto compilation = fields.object("compilation_config");
  if (!compilation) return;
  flags.cudagraph_mode = compilation->optional_text("cudagraph_mode");
  const Value* mode = compilation->raw("mode");
  if (mode != nullptr && mode->is_string()) flags.compilation_mode = mode->as_string();
  if (mode != nullptr && mode->is_integer()) {
    flags.compilation_mode = std::to_string(mode->as_integer());
  }
}

void read_speculation(AnswerFields& fields, RunFlags& flags) {
  auto speculation = fields.object("speculative_config");
  if (!speculation) return;
  flags.speculative_method = speculation->text("method", "draft_model");
  flags.speculative_tokens = speculation->integer("num_speculative_tokens", 0);
  flags.speculative.backend = speculation->optional_text("attention_backend");
}

void read_cache_flags(AnswerFields& fields, RunFlags& flags) {
  flags.kv_cache_dtype = fields.text("kv_cache_dtype", flags.kv_cache_dtype);
  flags.skip_layers = fields.text_list("kv_cache_dtype_skip_layers");
  flags.block_size = fields.optional_integer("block_size");
  flags.enable_prefix_caching = fields.optional_boolean("enable_prefix_caching");
  flags.mamba_cache_mode = fields.text("mamba_cache_mode", flags.mamba_cache_mode);
  flags.mamba_block_size = fields.optional_integer("mamba_block_size");
  flags.mamba_cache_dtype = fields.text("mamba_cache_dtype", flags.mamba_cache_dtype);
  flags.mamba_ssm_cache_dtype = fields.text("mamba_ssm_cache_dtype", flags.mamba_ssm_cache_dtype);
  flags.hybrid_manager_off = fields.optional_boolean("disable_hybrid_kv_cache_manager");
}

RunFlags read_flags(AnswerFields& fields) {
  RunFlags flags;
  flags.model_impl = fields.text("model_impl", flags.model_impl);
  flags.runner = fields.text("runner", flags.runner);
  flags.convert = fields.text("convert", flags.convert);
  flags.dtype = fields.text("dtype", flags.dtype);
  flags.allow_deprecated_quantization = fields.boolean("allow_deprecated_quantization", false);
  flags.max_model_len = fields.integer("max_model_len", kRecordedLength);
  flags.attention_backend = fields.optional_text("attention_backend");
  flags.max_num_seqs = fields.optional_integer("max_num_seqs");
  flags.max_num_batched_tokens = fields.optional_integer("max_num_batched_tokens");
  flags.tp = fields.sized_integer("tensor_parallel_size", 1, 1);
  flags.pp = fields.sized_integer("pipeline_parallel_size", 1, 1);
  flags.dcp = fields.sized_integer("decode_context_parallel_size", 1, 1);
  flags.pcp = fields.sized_integer("prefill_context_parallel_size", 1, 1);
  flags.cp_interleave = fields.sized_integer("cp_kv_cache_interleave_size", 1, 1);
  flags.kv_connector = fields.raw("kv_transfer_config") != nullptr;
  read_cache_flags(fields, flags);
  read_attention_config(fields, flags);
  read_compilation(fields, flags);
  read_speculation(fields, flags);
  return flags;
}

bool is_on(const std::string& value) { return value == "1" || to_lower(value) == "true"; }

void read_environment(AnswerFields& fields, RunFlags& flags) {
  auto variables = fields.object("env");
  if (!variables) return;
  flags.batch_invariant = is_on(variables->text("VLLM_BATCH_INVARIANT", "0"));
  // The recorded process had read its modules before the variable was set.
  flags.batch_invariant_at_import = false;
  flags.mla_disabled = is_on(variables->text("VLLM_MLA_DISABLE", "0"));
  flags.chunked_with_hybrid_manager =
      is_on(variables->text("VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE", "1"));
}

// Some recorded configurations are cut to the fields that matter.
Result<config::ModelConfig> read_model(const Value& config) {
  auto model = config::from_value(config, {});
  if (model) return model;
  auto fragment = config::from_value(config, {.partial = true});
  return fragment ? fragment : model;
}

// --- the answer ----------------------------------------------------------------------------------

Value integers(const std::vector<std::int64_t>& values) {
  std::vector<Value> items;
  items.reserve(values.size());
  for (const std::int64_t value : values) items.push_back(Value::integer(value));
  return Value::array(std::move(items));
}

Value resolved_value(const RunResult& result) {
  const ModelView& view = *result.view;
  const ModelClass& found = result.model_class;
  return AnswerObject()
      .add_text("architecture", found.architecture)
      .add_text("model_class", found.class_name)
      .add_text("runner", found.runner)
      .add_text("convert", found.convert)
      .add_text("dtype", result.run.dtype)
      .add("use_mla", view.use_mla)
      .add("is_hybrid", view.hybrid)
      .add("is_attention_free", view.attention_free)
      .add("mm_prefix_lm", view.mm_prefix)
      .add("head_size", view.head_size)
      .add("kv_heads_per_rank", view.kv_heads)
      .add_text("cudagraph_mode", result.configured.cudagraph_mode)
      .take();
}

Value final_value(const Profile& profile, const RunConfig& run) {
  AnswerObject out;
  out.add_text("cache_dtype", run.cache_dtype)
      .add("block_size", run.block_size)
      .add_text("attention_backend", run.attention_backend.value_or(""))
      .add_integer("flash_attn_version", run.flash_attn_version)
      .add("enable_prefix_caching", run.prefix_caching)
      .add_text("mamba_cache_mode", run.mamba_cache_mode)
      .add_integer("mamba_block_size", run.mamba_block_size)
      .add_integer("mamba_page_size_padded", run.mamba_page_size_padded)
      .add_text("mamba_ssm_cache_dtype", run.mamba_ssm_cache_dtype)
      .add_texts("kv_cache_dtype_skip_layers", run.skip_layers)
      .add("use_non_causal", run.use_non_causal)
      .add("disable_hybrid_kv_cache_manager", run.hybrid_manager_off);
  if (profile.at_least(0, 33)) out.add_text("kv_layout", run.kv_layout);
  return out.take();
}

void add_state(const BuiltLayer& layer, const KvSpec& spec, AnswerObject& out) {
  if (spec.page_size_padded) out.add("page_size_padded", *spec.page_size_padded);
  std::vector<Value> shapes;
  for (const auto& shape : layer.state_shapes) shapes.push_back(integers(shape));
  out.add("state_shapes", Value::array(std::move(shapes)));
  out.add_texts("state_dtypes", layer.state_dtypes);
}

void add_cache(const LayerCache& cache, AnswerObject& out) {
  const KvSpec& spec = *cache.spec;
  if (spec.window) out.add("sliding_window", *spec.window);
  if (spec.chunk) out.add("chunk", *spec.chunk);
  if (spec.page_size_padded) out.add("page_size_padded", *spec.page_size_padded);
  const auto tokens = static_cast<double>(spec.block_size);
  out.add("bytes_per_token", Value::number(static_cast<double>(cache.page_bytes) / tokens));
  out.add("bytes_per_token_real",
          Value::number(static_cast<double>(cache.unpadded_page_bytes) / tokens));
  out.add("kernel_block_size", cache.kernel_block_size);
  std::vector<Value> shape;
  for (const ShapeAxis& axis : cache.shape) {
    shape.push_back(axis ? Value::integer(*axis) : Value::string("num_blocks"));
  }
  out.add("kv_cache_shape", Value::array(std::move(shape)));
  if (cache.stride_order) out.add("stride_order", integers(*cache.stride_order));
}

// Until 0.32 the recordings state the head size where a model has several.
bool has_two_head_sizes(const Profile& profile, const RunResult& result) {
  std::optional<std::int64_t> first;
  for (const BuiltLayer& layer : result.layers) {
    if (layer.role != LayerRole::kAttention) continue;
    if (first && *first != layer.head_size) return !profile.at_least(0, 33);
    first = layer.head_size;
  }
  return false;
}

// One row without the number of layers that it stands for.
std::vector<json::Member> layer_row(const BuiltLayer& layer, const LayerCache& cache,
                                    bool head_size) {
  AnswerObject out;
  out.add_text("backend", layer.reported_backend).add_text("class", layer.class_name);
  out.add_text("spec", cache.spec ? spec_class_name(cache.spec->kind) : "");
  const bool selects = layer.role != LayerRole::kState && layer.role != LayerRole::kIndexer;
  if (selects) out.add_text("impl", layer.implementation);
  if (layer.fa_version) out.add("fa_version", *layer.fa_version);
  if (!layer.mla_prefill.empty()) out.add_text("mla_prefill", layer.mla_prefill);
  if (selects) out.add_text("kv_cache_dtype", layer.kv_dtype);
  if (layer.sink) out.add("sink", true);
  if (head_size) out.add("head_size", layer.head_size);
  if (cache.spec) {
    out.add("block_size", cache.spec->block_size).add("page_size_bytes", cache.page_bytes);
    if (layer.role == LayerRole::kState) {
      add_state(layer, *cache.spec, out);
    } else {
      add_cache(cache, out);
    }
  }
  const Value row = out.take();
  return {row.members().begin(), row.members().end()};
}

// Equal layers share a row, in the order of their first.
Value layers_value(const Profile& profile, const RunResult& result) {
  const bool head_sizes = has_two_head_sizes(profile, result);
  struct Row {
    Value shown;
    std::int64_t count = 0;
    std::string example;
  };
  std::vector<Row> rows;
  for (std::size_t i = 0; i < result.layers.size(); ++i) {
    const Value shown =
        Value::object(layer_row(result.layers[i], result.cache->layers[i], head_sizes));
    const auto known =
        std::ranges::find_if(rows, [&](const Row& row) { return row.shown == shown; });
    if (known == rows.end()) {
      rows.push_back({.shown = shown, .count = 1, .example = result.layers[i].name});
    } else {
      ++known->count;
    }
  }
  std::vector<Value> out;
  for (const Row& row : rows) {
    std::vector<json::Member> members(row.shown.members().begin(), row.shown.members().end());
    members.push_back({.key = "layers", .value = Value::integer(row.count)});
    members.push_back({.key = "example", .value = Value::string(row.example)});
    out.push_back(Value::object(std::move(members)));
  }
  return Value::array(std::move(out));
}

Value groups_value(const KvCachePlan& plan) {
  std::vector<Value> out;
  for (const CacheGroup& group : plan.groups) {
    out.push_back(AnswerObject()
                      .add_text("spec", group.spec)
                      .add("layers", static_cast<std::int64_t>(group.layers.size()))
                      .add("block_size", group.block_size)
                      .add("page_size_bytes", group.page_bytes)
                      .take());
  }
  return Value::array(std::move(out));
}

Value graphs_value(const GraphPlan& graphs) {
  return AnswerObject()
      .add_text("requested", graphs.requested)
      .add_text("min_support", graph_level_name(graphs.min_support))
      .add_text("limited_by", graphs.limited_by.value_or(""))
      .add_text("final", graphs.final_mode)
      .add("uniform_decode_query_len", graphs.uniform_decode_query_len)
      .take();
}

Value errors_value(const std::vector<RunError>& errors, bool metadata) {
  std::vector<Value> out;
  for (const RunError& error : errors) {
    if (error.stage == kMetadataStage && !metadata) continue;
    out.push_back(AnswerObject()
                      .add_text("stage", error.stage)
                      .add_text("type", error.type)
                      .add_text("text", error.text)
                      .take());
  }
  return Value::array(std::move(out));
}

Value answer_value(const Profile& profile, const RunResult& result, bool metadata) {
  AnswerObject out;
  out.add("errors", errors_value(result.errors, metadata));
  if (!result.view) return out.take();
  out.add("resolved_config", resolved_value(result));
  if (result.graphs) {
    out.add("kv_groups", groups_value(*result.cache));
    out.add("layers", layers_value(profile, result));
    out.add("cudagraph", graphs_value(*result.graphs));
  }
  out.add("final_config", final_value(profile, result.run));
  out.add_texts("rewrites", result.rewrites);
  if (!result.unknown.empty()) out.add_texts("notes", result.unknown);
  return out.take();
}

}  // namespace

Result<Value> answer_end_to_end(const Profile& profile, const ModelRegistry& registry,
                                const Value& in) {
  AnswerFields fields(in, "/in");
  KERNELPATH_CHECK_OK(fields.status());
  const bool metadata = fields.text("name", "").ends_with("-runtime");
  Machine machine;
  machine.capability = read_capability(fields);
  RunFlags flags;
  if (auto stated = fields.object("flags")) flags = read_flags(*stated);
  read_environment(fields, flags);
  const Value* config = fields.raw("config");
  if (config == nullptr || !config->is_object()) fields.refuse("config", "expected an object");
  KERNELPATH_CHECK_OK(fields.status());
  KERNELPATH_TRY(model, read_model(*config));
  const RunResult result = resolve_run({.profile = profile,
                                        .registry = registry,
                                        .machine = machine,
                                        .model = model,
                                        .flags = std::move(flags)});
  return answer_value(profile, result, metadata);
}

}  // namespace kernelpath::engines::vllm
