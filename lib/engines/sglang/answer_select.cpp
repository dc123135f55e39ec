#include "engines/sglang/answer_select.h"

#include "engines/answer_fields.h"
#include "engines/sglang/build.h"
#include "engines/sglang/model_class.h"
#include "engines/sglang/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::sglang {
namespace {

using json::Value;

constexpr std::string_view kDraftPath = "DRAFT";

Platform read_platform(AnswerFields& fields) {
  Platform platform;
  const std::string name = fields.text("platform", "cuda");
  const std::optional<std::int64_t> sm = fields.optional_integer("sm");
  if (name == "hip") {
    platform.kind = hardware::Platform::kRocm;
  } else if (name == "cpu") {
    platform.kind = hardware::Platform::kCpu;
  } else if (name != "cuda") {
    fields.refuse("platform", "expected cuda, hip or cpu");
  }
  if (sm && (*sm < 10 || *sm > 9999)) fields.refuse("sm", "not a compute capability");
  if (!sm && name != "cpu") fields.refuse("sm", "a compute capability is needed");
  if (sm) {
    // 90 is {9, 0}; 942 of gfx942 is {9, 4}.
    const int number = static_cast<int>(name == "hip" ? *sm / 10 : *sm);
    platform.major = number / 10;
    platform.minor = number % 10;
  }
  platform.flashinfer_installed = fields.boolean("flashinfer", true);
  platform.has_amx = fields.boolean("amx", true);
  return platform;
}

Variables read_variables(AnswerFields& fields) {
  Variables variables;
  const Value* env = fields.raw("env");
  if (env == nullptr || env->is_null()) return variables;
  if (!env->is_object()) {
    fields.refuse("env", "an object of texts is needed");
    return variables;
  }
  for (const json::Member& member : env->members()) {
    variables.emplace_back(
        member.key, member.value.is_string() ? member.value.as_string() : member.value.brief());
  }
  return variables;
}

Arguments::Given read_flags(AnswerFields& fields, const Profile& profile) {
  Arguments::Given given;
  const Value* flags = fields.raw("flags");
  if (flags == nullptr || flags->is_null()) return given;
  if (!flags->is_object()) {
    fields.refuse("flags", "an object of arguments is needed");
    return given;
  }
  for (const json::Member& member : flags->members()) {
    if (profile.find_argument(member.key) == nullptr) {
      fields.refuse("flags", member.key + " is not an argument of SGLang " + profile.version);
    }
    given.emplace_back(member.key, member.value);
  }
  return given;
}

Value read_object(AnswerFields& fields, std::string_view name) {
  const Value* value = fields.raw(name);
  if (value == nullptr || value->is_null()) return Value::null();
  if (!value->is_object()) fields.refuse(name, "an object is needed");
  return *value;
}

std::string change_text(const Event::Change& change) {
  return fmt::format("{}: {} -> {}", change.field, python_json(change.before),
                     python_json(change.after));
}

// Each entry ends with the id of its rule, where the engine's record has a function.
std::string event_text(const Event& event) {
  std::string out;
  if (event.kind == Event::Kind::kInfo) out = "info: " + event.text;
  if (event.kind == Event::Kind::kWarning) out = "warning: " + event.text;
  if (event.kind == Event::Kind::kSet) {
    for (const Event::Change& change : event.changes) {
      out += (out.empty() ? "set " : "; ") + change_text(change);
    }
  }
  return fmt::format("{} [{}]", out, event.rule);
}

Value rewrites(const Launch& launch) {
  std::vector<Value> out;
  for (const Event& event : launch.events()) out.push_back(Value::string(event_text(event)));
  return Value::array(std::move(out));
}

Value error_value(const Launch& launch) {
  if (!launch.refused()) return Value::null();
  return AnswerObject()
      .add_text("stage", launch.refusal()->stage)
      .add_text("type", launch.refusal()->type)
      .add("text", Value::string(launch.refusal()->text))
      .take();
}

Value integers(const std::vector<std::int64_t>& numbers) {
  std::vector<Value> out;
  out.reserve(numbers.size());
  for (const std::int64_t number : numbers) out.push_back(Value::integer(number));
  return Value::array(std::move(out));
}

void add_true(AnswerObject& out, std::string_view key, bool value) {
  if (value) out.add(std::string(key), true);
}

void add_present(AnswerObject& out, std::string_view key, std::optional<std::int64_t> value) {
  if (value) out.add(std::string(key), *value);
}

// Derived attributes; equal or default ones are left out.
Value model_value(const ModelFacts& model) {
  AnswerObject out;
  if (!model.stated_architecture.empty()) out.add_text("arch", model.architecture());
  out.add_text("attention_arch", attention_arch_name(model.attention_arch))
      .add("head_dim", model.head_dim);
  if (model.v_head_dim != model.head_dim) out.add("v_head_dim", model.v_head_dim);
  out.add("context_len", model.context_len).add_text("dtype", model.dtype);
  if (!model.quantization.empty()) out.add_text("quantization", model.quantization);
  add_present(out, "kv_lora_rank", model.kv_lora_rank);
  add_present(out, "qk_rope_head_dim", model.qk_rope_head_dim);
  add_present(out, "qk_nope_head_dim", model.qk_nope_head_dim);
  add_present(out, "index_head_dim", model.index_head_dim);
  add_present(out, "sliding_window_size", model.sliding_window_size);
  add_present(out, "attention_chunk_size", model.attention_chunk_size);
  if (model.num_attention_layers != model.num_hidden_layers) {
    out.add("num_attention_layers", model.num_attention_layers);
  }
  if (!model.is_generation) out.add("is_generation", false);
  add_true(out, "is_multimodal", model.is_multimodal);
  add_true(out, "is_encoder_decoder", model.is_encoder_decoder);
  add_true(out, "is_hybrid_swa", model.is_hybrid_swa);
  add_true(out, "is_local_attention_model", model.is_local_attention);
  add_true(out, "has_attention_sinks", model.has_attention_sinks);
  add_true(out, "has_asymmetric_kv", model.has_asymmetric_kv());
  if (model.swa_layers) out.add("swa_layers", integers(*model.swa_layers));
  if (model.full_layers) out.add("full_layers", integers(*model.full_layers));
  if (model.linear_kind != LinearKind::kNone) {
    out.add_text("linear_kind", linear_kind_name(model.linear_kind))
        .add("full_attention_layers", integers(model.full_attention_layers));
  }
  return out.take();
}

Value disabled_value(const Launch& launch) {
  std::vector<std::string> names;
  const auto add = [&](bool holds, const char* name) {
    if (holds) names.emplace_back(name);
  };
  add(launch.flag("disable_radix_cache"), "radix_cache");
  add(launch.flag("disable_overlap_schedule"), "overlap_schedule");
  add(launch.flag("disable_hybrid_swa_memory"), "hybrid_swa_memory");
  add(launch.flag("disable_shared_experts_fusion"), "shared_experts_fusion");
  add(launch.flag("disable_custom_all_reduce"), "custom_all_reduce");
  add(launch.flag("prefill_only_disable_kv_cache"), "kv_cache");
  add(launch.graph().decode == "disabled", "cuda_graph_decode");
  add(launch.graph().prefill == "disabled", "cuda_graph_prefill");
  add(launch.integer("chunked_prefill_size").value_or(0) <= 0, "chunked_prefill");
  std::vector<Value> out;
  out.reserve(names.size());
  for (std::string& name : names) out.push_back(Value::string(std::move(name)));
  return Value::array(std::move(out));
}

Value spec_value(const Launch& launch) {
  const std::string path = launch.text("speculative_draft_model_path");
  return AnswerObject()
      .add_text("algorithm", launch.text("speculative_algorithm"))
      .add_integer("steps", launch.integer("speculative_num_steps"))
      .add_integer("topk", launch.integer("speculative_eagle_topk"))
      .add_integer("draft_tokens", launch.integer("speculative_num_draft_tokens"))
      .add_text("draft_backend", launch.text("speculative_draft_attention_backend"))
      .add_text("attention_mode", launch.text("speculative_attention_mode"))
      .add_text("draft_path", path.empty() ? "None" : path)  // as Python spells it
      .take();
}

void add_text_if(AnswerObject& out, std::string_view key, const std::string& value) {
  if (!value.empty()) out.add_text(std::string(key), value);
}

void add_kernels(AnswerObject& out, const Launch& launch) {
  if (launch.prefill_backend() == "dsa" || launch.decode_backend() == "dsa") {
    add_text_if(out, "dsa_prefill", launch.text("dsa_prefill_backend"));
    add_text_if(out, "dsa_decode", launch.text("dsa_decode_backend"));
  }
  if (launch.prefill_backend() == "dsv4" || launch.decode_backend() == "dsv4") {
    add_text_if(out, "dsv4_attn", launch.text("dsv4_attn_backend"));
  }
  const std::string runner = launch.text("moe_runner_backend");
  if (runner != "auto") add_text_if(out, "moe_runner", runner);
  add_text_if(out, "quantization", launch.text("quantization"));
  if (launch.flag("uses_mamba_radix_cache")) {
    add_text_if(out, "mamba_strategy", launch.text("mamba_radix_cache_strategy"));
  }
  add_text_if(out, "linear_attn_decode_backend", launch.text("linear_attn_decode_backend"));
  if (!launch.unset("speculative_algorithm")) out.add("spec", spec_value(launch));
}

// The recording asks for the model class where nothing but the implementation is chosen.
bool asks_for_class(const Launch& launch) {
  const Arguments::Given& given = launch.arguments().all_given();
  const bool plain = std::all_of(given.begin(), given.end(),
                                 [](const auto& row) { return row.first == "model_impl"; });
  return plain && launch.platform().sm90() && launch.platform().minor == 0 &&
         launch.platform().flashinfer_installed && launch.input().model.quant_config.is_null();
}

void add_model_class(AnswerObject& out, const Launch& launch) {
  if (!asks_for_class(launch)) return;
  const ModelClass found = resolve_model_class(launch);
  out.add_text("model_class", found.architecture);
  if (found.refusal) {
    out.add_text("model_error", found.refusal->type + ": " + found.refusal->text);
    return;
  }
  out.add_text("model_module", found.module)
      .add_text("resolved_arch", found.architecture)
      .add_text("model_impl", found.implementation);
}

// The draft as the worker reads it.
void add_draft(AnswerObject& out, const Launch& launch) {
  const std::string path = launch.text("speculative_draft_model_path");
  if (launch.unset("speculative_algorithm") || path.empty()) return;
  const bool own = path == kDraftPath;
  const ModelSource& source = own ? launch.input().draft : launch.input().model;
  if (source.config.is_null()) return;
  const ModelOptions options{.dtype = launch.text("dtype"),
                             .quantization = launch.text("speculative_draft_model_quantization"),
                             .draft = true,
                             .speculative_algorithm = launch.text("speculative_algorithm")};
  const ModelReading reading =
      read_model(launch.profile(), launch.platform(), source.config, source.quant_config, options);
  out.add("draft_model",
          AnswerObject()
              .add_text("arch", reading.facts.architecture())
              .add_text("attention_arch", attention_arch_name(reading.facts.attention_arch))
              .add_text("quantization", reading.facts.quantization)
              .add("layers", reading.facts.num_hidden_layers)
              .take());
}

void add_resolved(AnswerObject& out, Launch& launch) {
  out.add_text("prefill_backend", launch.prefill_backend())
      .add_text("decode_backend", launch.decode_backend())
      .add_integer("page_size", launch.integer("page_size"))
      .add_text("kv_cache_dtype", launch.text("kv_cache_dtype"))
      .add("cuda_graph", launch.graph_value())
      .add_integer("chunked_prefill_size", launch.integer("chunked_prefill_size"))
      .add("disabled", disabled_value(launch))
      .add_text("sampling_backend", launch.text("sampling_backend"));
  add_kernels(out, launch);
  out.add("model", model_value(launch.model()));
  // The recording has no loaded model that would know the scales of a description beside the file.
  const KvStorage storage = kv_storage(launch, launch.input().model.quant_config.is_null());
  if (storage.refusal) {
    launch.refuse(storage.refusal->stage, storage.refusal->type, storage.refusal->rule,
                  storage.refusal->text);
    return;
  }
  out.add_text("kv_torch_dtype", storage.torch_dtype);
  const BuiltAttention built = build_attention(launch, storage.torch_dtype);
  if (launch.refused()) return;
  if (built.class_name.empty()) return;  // nothing after a class that cannot be loaded is known
  out.add_text("backend_class", built.class_name);
  add_model_class(out, launch);
  add_draft(out, launch);
}

void add_nothing(AnswerObject& out) {
  out.add_null("prefill_backend")
      .add_null("decode_backend")
      .add_null("page_size")
      .add_null("kv_cache_dtype");
}

}  // namespace

Result<Value> answer_select(const Profile& profile, const Value& in) {
  AnswerFields fields(in, "/in");
  KERNELPATH_CHECK_OK(fields.status());
  Launch::Input input{.platform = read_platform(fields)};
  input.model = {.config = read_object(fields, "config"),
                 .quant_config = read_object(fields, "hf_quant_config")};
  if (input.model.config.is_null()) fields.refuse("config", "a config.json is needed");
  input.draft = {.config = read_object(fields, "draft_config")};
  input.gpu_memory_mib = fields.optional_integer("gpu_mem_mib");
  input.arguments = read_flags(fields, profile);
  if (!input.draft.config.is_null()) {
    input.arguments.emplace_back("speculative_draft_model_path",
                                 Value::string(std::string(kDraftPath)));
  }
  input.variables = read_variables(fields);
  KERNELPATH_CHECK_OK(fields.status());
  Launch launch(profile, std::move(input));
  run_pipeline(launch);
  AnswerObject out;
  if (launch.refused()) {
    add_nothing(out);
  } else {
    add_resolved(out, launch);
  }
  return out.add("rewrites", rewrites(launch)).add("error", error_value(launch)).take();
}

}  // namespace kernelpath::engines::sglang
