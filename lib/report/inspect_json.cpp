#include "base/text.h"
#include "config/show.h"
#include "report/facts.h"
#include "report/inspect.h"
#include "report/json_parts.h"
#include "report/memory.h"

#include <algorithm>

namespace kernelpath::report {
namespace {

using json::Writer;

// null = unknown.
template <class T>
void member_or_null(Writer& w, std::string_view name, const std::optional<T>& value) {
  w.key(name);
  if (value) {
    w.value(*value);
  } else {
    w.value(nullptr);
  }
}

void name_or_null(Writer& w, std::string_view name, const std::string& value) {
  w.key(name);
  if (value.empty()) {
    w.value(nullptr);
  } else {
    w.value(value);
  }
}

void write_step(Writer& w, const engines::Step& step) {
  w.begin_object();
  w.member("rule", step.rule);
  member_if(w, "candidate", step.candidate);
  w.member("verdict", engines::verdict_name(step.verdict));
  w.member("severity", engines::severity_name(step.severity));
  w.member("stage", stage_id(step.stage));
  w.member("reason", step.reason);
  write_source(w, step.source);
  w.end_object();
}

void write_steps(Writer& w, std::string_view name, const std::vector<engines::Step>& steps) {
  w.key(name).begin_array();
  for (const engines::Step& step : steps) write_step(w, step);
  w.end_array();
}

void write_kernel(Writer& w, std::string_view phase, const engines::KernelChoice& choice) {
  w.key(phase).begin_object();
  name_or_null(w, "kernel", choice.kernel);
  w.key("rejected").begin_array();
  for (const engines::RejectedKernel& rejected : choice.rejected) {
    w.begin_object();
    w.member("kernel", rejected.kernel);
    w.member("rule", rejected.rule);
    w.member("reason", rejected.reason);
    w.end_object();
  }
  w.end_array();
  member_if(w, "note", choice.note);
  w.end_object();
}

bool has_cache(const engines::LayerGroup& group) {
  return !group.kv.dtype.empty() || group.kv_bytes_per_token > 0;
}

void write_parts(Writer& w, const engines::KvParts& parts) {
  w.key("kv_parts").begin_object();
  w.member("values", parts.values).member("data_bytes", parts.data_bytes);
  w.member("scale_bytes", parts.scale_bytes).member("index_bytes", parts.index_bytes);
  w.member("padding_bytes", parts.padding_bytes);
  w.end_object();
}

void write_layer_group(Writer& w, const engines::LayerGroup& group, const View& view) {
  w.begin_object();
  w.member("kind", config::layer_kind_name(group.kind));
  if (group.draft) w.member("draft", true);
  w.key("layers").begin_array();
  for (const std::int64_t layer : group.layers) w.value(layer);
  w.end_array();
  member_if(w, "window", group.window);
  member_if(w, "backend", group.backend);
  if (view.prefill) write_kernel(w, "prefill", group.prefill);
  if (view.decode) write_kernel(w, "decode", group.decode);
  if (has_cache(group)) {
    w.key("kv").begin_object();
    name_or_null(w, "dtype", group.kv.dtype);
    name_or_null(w, "layout", group.kv.layout);
    member_or_null(w, "page_size", group.kv.page_size);
    member_if(w, "shape", group.kv.shape);
    w.end_object();
  }
  member_if(w, "rope_fused", group.rope_fused);
  member_if(w, "cuda_graph", group.cuda_graph);
  w.member("kv_bytes_per_token", group.kv_bytes_per_token);
  if (group.kv_bytes_per_token > 0) write_parts(w, group.kv_parts);
  w.end_object();
}

void write_memory(Writer& w, const engines::Memory& memory) {
  w.key("memory").begin_object();
  member_or_null(w, "weight_bytes", memory.weight_bytes);
  member_if(w, "weight_source", memory.weight_source);
  member_or_null(w, "kv_bytes_per_token", memory.kv_bytes_per_token);
  member_or_null(w, "kv_bytes_per_token_estimate", memory.kv_bytes_per_token_estimate);
  member_or_null(w, "kv_pool_bytes", memory.kv_pool_bytes);
  member_or_null(w, "kv_pool_tokens", memory.kv_pool_tokens);
  member_or_null(w, "sequence_tokens", memory.sequence_tokens);
  member_or_null(w, "kv_bytes_per_sequence", memory.kv_bytes_per_sequence);
  if (memory.batch_sequences) {
    w.member("batch_sequences", *memory.batch_sequences);
    member_or_null(w, "kv_bytes_per_batch", memory.kv_bytes_per_batch);
  }
  member_if(w, "state_bytes_per_sequence", memory.state_bytes_per_sequence);
  member_if(w, "construction_host_bytes", memory.construction_host_bytes);
  write_strings(w, "notes", memory.notes);
  write_accounts(w, memory);
  w.end_object();
}

void write_attention(Writer& w, const engines::Resolution& resolution) {
  w.key("attention").begin_object();
  name_or_null(w, "requested", resolution.requested_backend);
  member_if(w, "requested_by", resolution.requested_by);
  name_or_null(w, "selected", resolution.selected_backend);
  member_if(w, "class", resolution.backend_class);
  if (!resolution.fallback_reason.empty()) {
    w.key("fallback").begin_object();
    w.member("rule", resolution.fallback_rule);
    w.member("reason", resolution.fallback_reason);
    w.end_object();
  }
  w.end_object();
}

void write_engine_error(Writer& w, const engines::EngineError& error) {
  w.key("error").begin_object();
  w.member("type", error.type);
  w.member("code", error.code);
  w.member("message", error.message);
  write_strings(w, "near_matches", error.near_matches);
  w.end_object();
}

void write_options(Writer& w, const engines::Resolution& resolution) {
  w.key("options").begin_array();
  for (const engines::Resolution::Option& option : resolution.options) {
    w.begin_object();
    w.member("name", option.name);
    w.member("value", option.value);
    w.member("set_by", option.set_by);
    w.end_object();
  }
  w.end_array();
}

void write_why_not(Writer& w, const EngineAnswer& answer) {
  if (!answer.why_not) return;
  w.key("why_not").begin_object();
  w.member("backend", answer.why_not_backend);
  w.member("admitted", answer.why_not->admitted);
  write_steps(w, "refusals", answer.why_not->refusals);
  w.key("remedies").begin_array();
  for (const auto& changes : answer.why_not->remedies) {
    w.begin_array();
    for (const engines::Engine::WhyNot::Change& change : changes) {
      w.begin_object();
      w.member("option", change.option);
      w.member("effect", change.effect);
      w.end_object();
    }
    w.end_array();
  }
  w.end_array();
  w.end_object();
}

void write_engine(Writer& w, const EngineAnswer& answer, const View& view) {
  const engines::Resolution& resolution = answer.resolution;
  w.begin_object();
  w.member("engine", resolution.engine);
  w.member("version", resolution.version);
  w.member("status", engines::status_name(resolution.status));
  name_or_null(w, "model_class", resolution.model_class);
  member_if(w, "model_module", resolution.model_module);
  write_attention(w, resolution);
  if (resolution.error) write_engine_error(w, *resolution.error);
  write_options(w, resolution);
  w.key("layers").begin_array();
  for (const engines::LayerGroup& group : resolution.layers) write_layer_group(w, group, view);
  w.end_array();
  write_memory(w, resolution.memory);
  write_strings(w, "warnings", resolution.warnings);
  write_steps(w, "steps", resolution.steps);
  write_why_not(w, answer);
  w.end_object();
}

void write_facts(Writer& w, const InputAnswer& answer) {
  const config::ModelConfig& model = answer.model;
  w.key("facts").begin_object();
  name_or_null(w, "architecture", model.architectures.empty() ? "" : model.architectures.front());
  member_or_null(w, "model_type", model.model_type.value);
  w.member("attention", attention_word(model));
  member_or_null(w, "num_hidden_layers", model.num_hidden_layers.value);
  member_or_null(w, "hidden_size", model.hidden_size.value);
  member_or_null(w, "num_attention_heads", model.num_attention_heads.value);
  member_or_null(w, "num_key_value_heads", model.num_key_value_heads.value);
  member_or_null(w, "head_dim", model.head_dim.value);
  member_or_null(w, "vocab_size", model.vocab_size.value);
  member_or_null(w, "max_position_embeddings", model.max_position_embeddings.value);
  member_or_null(w, "dtype", model.dtype.value);
  if (model.quantization.any()) {
    w.member("quantization", quantization_word(model));
  }
  member_if(w, "kv_bytes_per_token", common_kv_bytes_per_token(answer));
  w.end_object();
}

void write_values(Writer& w, const config::ModelConfig& model, const View& view) {
  if (view.show.empty()) return;
  w.key("values").begin_array();
  for (const std::string_view group : config::show_groups()) {
    if (!view.shows(group)) continue;
    for (const config::ShownValue& shown : config::show_values(model, group)) {
      w.begin_object();
      w.member("group", shown.group);
      w.member("name", shown.name);
      w.member("value", shown.value);
      w.member("origin", shown.origin);
      w.end_object();
    }
  }
  w.end_array();
}

void write_device(Writer& w, const hardware::Device& device) {
  w.member("device", device.id);
  w.key("device_facts").begin_object();
  w.member("platform", hardware::platform_name(device.platform));
  if (device.capability) w.member("sm", device.capability->sm());
  member_or_null(w, "memory_bytes", device.memory_bytes);
  member_or_null(w, "usable_bytes", device.usable_bytes());
  member_if(w, "name", device.label);
  member_if(w, "sm_count", device.sm_count);
  member_if(w, "memory_bandwidth_bytes_per_s", device.memory_bandwidth_bytes_per_s);
  member_if(w, "source", device.source);
  w.end_object();
}

void write_input(Writer& w, const InputAnswer& answer, const View& view) {
  w.begin_object();
  w.member("model", answer.model.name);
  w.member("path", answer.model.path);
  member_if(w, "sha256", answer.model.sha256);
  write_device(w, answer.device);
  write_strings(w, "lacks", answer.lacks);
  write_strings(w, "has", answer.has);
  write_facts(w, answer);
  w.key("warnings").begin_array();
  for (const json::Warning& warning : answer.model.warnings) {
    w.begin_object();
    w.member("code", warning.code);
    w.member("where", warning.where);
    w.member("message", warning.message);
    w.end_object();
  }
  w.end_array();
  write_values(w, answer.model, view);
  w.key("engines").begin_array();
  for (const EngineAnswer& engine : answer.engines) write_engine(w, engine, view);
  w.end_array();
  w.end_object();
}

void write_header(Writer& w, const Tool& tool) {
  w.member("schema", kInspectSchema);
  w.member("schema_version", kInspectSchemaVersion);
  w.key("tool").begin_object();
  w.member("name", tool.name);
  w.member("version", tool.version);
  w.end_object();
}

}  // namespace

void write_inspect(json::Writer& writer, const Tool& tool, const std::vector<InputAnswer>& answers,
                   const View& view) {
  writer.begin_object();
  write_header(writer, tool);
  writer.key("inputs").begin_array();
  for (const InputAnswer& answer : answers) write_input(writer, answer, view);
  writer.end_array();
  writer.end_object();
}

std::string inspect_json(const Tool& tool, const std::vector<InputAnswer>& answers,
                         const View& view) {
  Writer writer;
  write_inspect(writer, tool, answers, view);
  return writer.take(2) + "\n";
}

std::string inspect_jsonl_header(const Tool& tool) {
  Writer writer;
  writer.begin_object();
  write_header(writer, tool);
  writer.end_object();
  return writer.take(0) + "\n";
}

std::string inspect_jsonl_line(const InputAnswer& answer, const View& view) {
  Writer writer;
  write_input(writer, answer, view);
  return writer.take(0) + "\n";
}

}  // namespace kernelpath::report
