#include "engines/trtllm/answer_kernels.h"

#include "engines/trtllm/flashinfer_kernels.h"
#include "engines/trtllm/fmha.h"
#include "engines/trtllm/kv_cache.h"

#include <algorithm>
#include <string>
#include <vector>

namespace kernelpath::engines::trtllm {
namespace {

using json::Value;

// Some answers give the id alone.
Value error_code(const std::optional<EngineError>& error) {
  return error ? Value::string(error->code) : Value::null();
}

DataType read_data_type(AnswerFields& fields, std::string_view name, DataType otherwise) {
  const std::optional<std::string> text = fields.optional_text(name);
  if (!text || *text == "auto") return otherwise;
  const std::optional<DataType> type = parse_data_type(*text);
  if (!type) fields.refuse(name, "unknown dtype; known are bf16, fp16, fp8, nvfp4 and fp32");
  return type.value_or(otherwise);
}

KvGeometry read_kv_geometry(AnswerFields& fields) {
  KvGeometry geometry;
  geometry.dtype = read_data_type(fields, "kv_dtype", DataType::kBf16);
  geometry.tp = fields.sized_integer("tp", 1, 1);
  geometry.pp = fields.sized_integer("pp", 1, 1);
  geometry.pp_rank = fields.sized_integer("pp_rank", 0, 0);
  geometry.attention_dp = fields.boolean("attention_dp", false);
  std::optional<AnswerFields> config = fields.object("config");
  if (!config) {
    fields.refuse("config", "the field config is needed, an object");
    return geometry;
  }
  geometry.num_layers = config->required_integer("num_hidden_layers");
  geometry.mla = config->raw("kv_lora_rank") != nullptr;
  if (geometry.mla) {
    geometry.kv_lora_rank = config->optional_integer("kv_lora_rank");
    geometry.qk_rope_head_dim = config->integer("qk_rope_head_dim", 0);
    return geometry;
  }
  const std::optional<std::int64_t> head_dim = config->optional_integer("head_dim");
  const bool need_heads = !head_dim || config->raw("num_key_value_heads") == nullptr;
  const std::int64_t num_heads = need_heads ? config->required_integer("num_attention_heads") : 1;
  if (head_dim) {
    geometry.head_dim = *head_dim;
  } else if (num_heads > 0) {
    geometry.head_dim = config->required_integer("hidden_size") / num_heads;
  }
  const Value* kv_heads = config->raw("num_key_value_heads");
  if (kv_heads != nullptr && kv_heads->is_array()) {
    geometry.kv_heads_per_layer = config->integer_list("num_key_value_heads");
  } else {
    geometry.num_kv_heads = config->integer("num_key_value_heads", num_heads);
  }
  return geometry;
}

FlashInferRequest read_flashinfer(AnswerFields& fields) {
  FlashInferRequest request;
  request.has_kv_cache_manager = fields.boolean("has_kv_cache_manager", true);
  request.capability = read_capability(fields);
  request.kernel = fields.text("flashinfer_backend", "fa2");
  request.num_heads = fields.sized_integer("num_heads", 1, 1);
  request.num_kv_heads = fields.sized_integer("num_kv_heads", request.num_heads, 1);
  request.head_dim = fields.integer("head_dim", 0);
  request.cuda_graph = fields.boolean("cuda_graph", false);
  request.fp8_kv = fields.boolean("fp8_kv", false);
  request.multi_item = fields.boolean("multi_item", false);
  request.custom_mask = fields.boolean("custom_mask", false);
  request.kv_shared = fields.boolean("kv_shared", false);
  return request;
}

Value prefill_value(const FlashInferPrefill& prefill) {
  AnswerObject out;
  out.add_text("wrapper", prefill.wrapper)
      .add_text("backend", prefill.backend)
      .add_text("layout", prefill.layout);
  if (prefill.custom_mask_becomes_causal) out.add_text("note", "CUSTOM-MASK-BECOMES-CAUSAL");
  return out.take();
}

FmhaLayer read_fmha_layer(AnswerFields& fields) {
  FmhaLayer layer;
  const std::optional<int> sm = fields.optional_sm("sm");
  if (!sm) fields.refuse("sm", "the field sm is needed, such as 90");
  layer.sm = sm.value_or(0);
  layer.mla = fields.boolean("mla", false);
  layer.num_heads = fields.sized_integer("num_heads", 1, 1);
  layer.num_kv_heads = fields.sized_integer("num_kv_heads", layer.mla ? 1 : layer.num_heads, 1);
  layer.kv_lora_rank = fields.optional_integer("kv_lora_rank");
  layer.qk_rope_head_dim = fields.optional_integer("qk_rope_head_dim");
  layer.head_dim = fields.required_integer("head_dim");
  layer.sparse_algorithm = fields.text("sparse", "");
  layer.kv_cache_dtype = fields.text("kv_cache_dtype", "auto");
  layer.skip_correction_threshold = fields.number("skip_correction_threshold", 0);
  layer.flashinfer_available = fields.boolean("flashinfer_available", true);
  layer.cute_dsl_available = fields.boolean("cute_dsl_available", true);
  layer.native_ops_available = fields.boolean("native_ops_available", true);
  return layer;
}

FmhaInput read_input_type(AnswerFields& fields) {
  const std::string name = fields.text("input_type", "mixed");
  if (name == "context_only") return FmhaInput::kContextOnly;
  if (name == "generation_only") return FmhaInput::kGenerationOnly;
  if (name != "mixed") {
    fields.refuse("input_type", "must be mixed, context_only or generation_only");
  }
  return FmhaInput::kMixed;
}

FmhaRequest read_fmha_request(AnswerFields& fields) {
  FmhaRequest request;
  request.q = read_data_type(fields, "q_dtype", DataType::kBf16);
  request.kv = read_data_type(fields, "kv_dtype", request.q);
  request.output = read_data_type(fields, "o_dtype", request.q);
  request.tokens_per_block = fields.sized_integer("tokens_per_block", 32, 0);
  request.num_contexts = fields.sized_integer("num_contexts", 0, 0);
  request.num_generations = fields.sized_integer("num_generations", 0, 0);
  request.input = read_input_type(fields);
  request.seq_len_q = fields.sized_integer("seq_len_q", 1, 0);
  request.beam_width = fields.sized_integer("beam", 1, 1);
  request.fused_qkv = fields.boolean("fused_qkv", true);
  request.paged = fields.boolean("paged", true);
  request.update_kv_cache = fields.boolean("update_kv_cache", true);
  request.custom_mask = fields.boolean("custom_mask", false);
  request.alibi = fields.boolean("alibi", false);
  request.helix = fields.boolean("helix", false);
  request.spec_tree = fields.boolean("spec_tree", false);
  request.relative_attention_bias = fields.boolean("relative_attention_bias", false);
  request.paged_context = fields.boolean("paged_context", false);
  request.fused_context_kernel_exists = fields.boolean("fused_context_kernel_exists", true);
  return request;
}

}  // namespace

json::Value error_value(const std::optional<EngineError>& error) {
  if (!error) return Value::null();
  return AnswerObject().add_text("type", error->type).add_text("code", error->code).take();
}

hardware::Capability read_capability(AnswerFields& fields) {
  const std::vector<std::int64_t> numbers = fields.integer_list("capability");
  const auto in_range = [](std::int64_t number) { return number >= 0 && number < 100; };
  if (numbers.size() != 2 || !std::all_of(numbers.begin(), numbers.end(), in_range)) {
    fields.refuse("capability", "must be a list of two numbers such as [9, 0]");
    return {};
  }
  return {static_cast<int>(numbers[0]), static_cast<int>(numbers[1])};
}

Result<json::Value> answer_kv_bytes_per_token(AnswerFields& fields) {
  const KvGeometry geometry = read_kv_geometry(fields);
  KERNELPATH_CHECK_OK(fields.status());
  const Result<KvBytes> bytes = kv_bytes_per_token(geometry);
  if (!bytes) {
    fields.refuse("config", bytes.error().message);
    KERNELPATH_CHECK_OK(fields.status());
  }
  AnswerObject out;
  out.add("estimate_bytes", bytes->estimate_bytes);
  if (bytes->error) {
    out.add_null("runtime_data_bytes")
        .add_null("runtime_scale_bytes")
        .add_null("runtime_total_bytes");
  } else {
    out.add("runtime_data_bytes", bytes->runtime_data_bytes)
        .add("runtime_scale_bytes", bytes->runtime_scale_bytes)
        .add("runtime_total_bytes", bytes->runtime_total_bytes());
  }
  return out.add("estimate_equals_runtime", bytes->estimate_equals_runtime())
      .add("error", error_value(bytes->error))
      .take();
}

Result<json::Value> answer_flashinfer_inner(AnswerFields& fields) {
  const FlashInferRequest request = read_flashinfer(fields);
  KERNELPATH_CHECK_OK(fields.status());
  const FlashInferDecision decision = flashinfer_kernels(request);
  AnswerObject out;
  out.add("prefill", decision.prefill ? prefill_value(*decision.prefill) : Value::null())
      .add_text("decode", decision.decode.value_or(""))
      .add("use_tensor_cores",
           decision.use_tensor_cores ? Value::boolean(*decision.use_tensor_cores) : Value::null())
      .add("error", error_value(decision.error));
  // The query's type is a matter of the decode kernel only.
  if (decision.decode) out.add("q_cast_to_fp8", decision.q_cast_to_fp8);
  return out.take();
}

Result<json::Value> answer_fmha_libs_env(AnswerFields& fields) {
  const std::optional<std::string> value = fields.optional_text("TLLM_FMHA_LIBS");
  KERNELPATH_CHECK_OK(fields.status());
  const FmhaList list = parse_fmha_libs(value);
  AnswerObject out;
  if (list.error) {
    out.add_null("libs");
  } else {
    out.add_texts("libs", list.names);
  }
  return out.add("error", error_value(list.error)).take();
}

Result<json::Value> answer_fmha_select(AnswerFields& fields) {
  const FmhaLayer layer = read_fmha_layer(fields);
  const FmhaRequest request = read_fmha_request(fields);
  const std::optional<std::string> libs = fields.optional_text("TLLM_FMHA_LIBS");
  KERNELPATH_CHECK_OK(fields.status());
  const FmhaSelection selection = select_fmha(layer, request, libs);
  std::vector<Value> rejected;
  for (const FmhaRefusal& refusal : selection.rejected) {
    rejected.push_back(Value::array({Value::string(refusal.library), Value::string(refusal.rule)}));
  }
  AnswerObject out;
  out.add_text("impl", selection.impl)
      .add("rejected", Value::array(std::move(rejected)))
      .add_texts("available", selection.available)
      .add("error", error_code(selection.error));
  if (selection.impl == "cute_dsl_mla") {
    out.add_text("assumes", "the kernel's own can_implement check accepts the shape");
  }
  return out.take();
}

}  // namespace kernelpath::engines::trtllm
