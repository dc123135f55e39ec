#include "base/text.h"
#include "engines/answer_fields.h"
#include "engines/llamacpp/answer.h"
#include "engines/llamacpp/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace kernelpath::engines::llamacpp {
namespace {

using checkpoint::GgufType;
using checkpoint::GgufValue;
using json::Value;

// --- metadata as JSON ----------------------------------------------------------------------------

// The type that a JSON scalar stands for.
GgufType scalar_type(const Value& value) {
  if (value.is_bool()) return GgufType::kBool;
  if (value.is_string()) return GgufType::kString;
  if (!value.is_integer()) return GgufType::kFloat32;
  return value.as_integer() < 0 ? GgufType::kInt32 : GgufType::kUint32;
}

bool append_scalar(const Value& value, GgufValue& out) {
  if (value.is_bool()) {
    out.integers.push_back(value.as_bool() ? 1 : 0);
  } else if (value.is_string()) {
    out.text = value.as_string();
  } else if (value.is_integer()) {
    out.integers.push_back(value.as_integer());
  } else if (value.is_number()) {
    out.reals.push_back(value.as_double());
  } else {
    return false;
  }
  return true;
}

bool read_list(const Value& list, GgufValue& out) {
  out.type = GgufType::kArray;
  out.count = list.items().size();
  out.element_type = GgufType::kInt32;
  for (const Value& item : list.items()) {
    if (!append_scalar(item, out)) return false;
    const GgufType type = scalar_type(item);
    out.element_type = type == GgufType::kUint32 ? GgufType::kInt32 : type;
  }
  return true;
}

// {"u64": [1, 2]}: a list of that type.
bool read_typed(const Value& object, GgufValue& out) {
  if (object.members().size() != 1) return false;
  const json::Member& member = object.members().front();
  if (member.key != "u64" || !member.value.is_array() || !read_list(member.value, out)) {
    return false;
  }
  out.element_type = GgufType::kUint64;
  return true;
}

bool read_value(const Value& value, GgufValue& out) {
  if (value.is_array()) return read_list(value, out);
  if (value.is_object()) return read_typed(value, out);
  if (!append_scalar(value, out)) return false;
  out.type = out.element_type = scalar_type(value);
  return true;
}

Metadata read_metadata(AnswerFields& fields) {
  Metadata out;
  const Value* gguf = fields.raw("gguf");
  if (gguf == nullptr || !gguf->is_object()) {
    fields.refuse("gguf", "must be an object of metadata");
    return out;
  }
  for (const json::Member& member : gguf->members()) {
    GgufValue value;
    if (!read_value(member.value, value)) {
      fields.refuse("gguf", "no GGUF value can be made of " + member.key);
    }
    out.insert_or_assign(member.key, std::move(value));
  }
  return out;
}

// --- parameters ----------------------------------------------------------------------------------

const checkpoint::GgmlType* read_cache_type(const Profile& profile, AnswerFields& fields,
                                            std::string_view name) {
  const std::string text = fields.text(name, "f16");
  const checkpoint::GgmlType* type = checkpoint::find_ggml_type(text);
  if (type == nullptr || !profile.is_cache_type(text)) {
    fields.refuse(name, "Unsupported cache type: " + text);
    return checkpoint::find_ggml_type("f16");
  }
  return type;
}

FlashAttention read_flash(AnswerFields& fields) {
  const std::string text = fields.text("flash_attn", "auto");
  if (text == "on") return FlashAttention::kOn;
  if (text == "off") return FlashAttention::kOff;
  if (text != "auto") fields.refuse("flash_attn", "expected auto, on or off");
  return FlashAttention::kAuto;
}

ContextParams read_params(const Profile& profile, AnswerFields& fields) {
  const ContextParams defaults;
  ContextParams params;
  params.n_ctx = fields.sized_integer("n_ctx", defaults.n_ctx, 0);
  params.n_batch = fields.sized_integer("n_batch", defaults.n_batch, 0);
  params.n_ubatch = fields.sized_integer("n_ubatch", defaults.n_ubatch, 0);
  params.n_seq_max = fields.sized_integer("n_seq_max", 1, 0);
  params.n_rs_seq = fields.sized_integer("n_rs_seq", 0, 0);
  params.type_k = read_cache_type(profile, fields, "type_k");
  params.type_v = read_cache_type(profile, fields, "type_v");
  params.flash_attn = read_flash(fields);
  params.kv_unified = fields.boolean("kv_unified", false);
  params.swa_full = fields.boolean("swa_full", false);
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (params.n_seq_max > kMost || params.n_rs_seq > kMost || params.n_ubatch > kMost ||
      params.n_batch > kMost) {
    fields.refuse("", "a number does not fit 32 bits");
  }
  return params;
}

// --- the answer ----------------------------------------------------------------------------------

Value error_value(std::string_view status, std::string_view error) {
  return AnswerObject().add_text("status", status).add_text("error", error).take();
}

// One number where all layers have the same.
Value per_layer(const std::vector<std::int64_t>& bytes) {
  if (bytes.empty()) return Value::integer(0);
  const bool same = std::ranges::all_of(bytes, [&](auto value) { return value == bytes.front(); });
  if (same) return Value::integer(bytes.front());
  std::vector<Value> items;
  items.reserve(bytes.size());
  for (const std::int64_t value : bytes) items.push_back(Value::integer(value));
  return Value::array(std::move(items));
}

Value cache_value(const Cache& cache) {
  std::vector<Value> layers;
  for (const std::int64_t layer : cache.layers) layers.push_back(Value::integer(layer));
  return AnswerObject()
      .add_text("role", cache.role)
      .add("cells", cache.cells)
      .add("n_stream", cache.streams)
      .add("layers", Value::array(std::move(layers)))
      .add("k_bytes_per_layer", per_layer(cache.k_bytes))
      .add("v_bytes_per_layer", per_layer(cache.v_bytes))
      .add("k_bytes", cache.k_total())
      .add("v_bytes", cache.v_total())
      .add("v_transposed", cache.v_transposed)
      .add("rot_k", cache.rotates_k)
      .add("rot_v", cache.rotates_v)
      .take();
}

Value state_value(const RecurrentState& state) {
  return AnswerObject()
      .add_text("role", "recurrent")
      .add("cells", state.cells)
      .add("n_layers", static_cast<std::int64_t>(state.layers.size()))
      .add("r_bytes", state.r_bytes)
      .add("s_bytes", state.s_bytes)
      .add("p_bytes", state.p_bytes)
      .take();
}

Value memory_value(const ContextPlan& plan, const MemoryPlan& memory) {
  std::vector<Value> caches;
  for (std::size_t i = 0; i <= memory.caches.size(); ++i) {
    if (memory.state && memory.state_place == i) caches.push_back(state_value(*memory.state));
    if (i < memory.caches.size()) caches.push_back(cache_value(memory.caches[i]));
  }
  return AnswerObject()
      .add_text("status", "ok")
      .add("n_ctx", plan.sizes.n_ctx)
      .add("n_ctx_seq", plan.sizes.n_ctx_seq)
      .add("n_batch", plan.sizes.n_batch)
      .add("n_ubatch", plan.sizes.n_ubatch)
      .add("causal", plan.causal)
      .add("flash_attn", plan.flash_attn)
      .add_text("memory", memory_kind_name(memory.kind))
      .add("caches", Value::array(std::move(caches)))
      .add("kv_bytes", memory.kv_bytes())
      .add("recurrent_bytes", memory.state ? memory.state->bytes() : 0)
      .take();
}

}  // namespace

std::span<const std::string_view> answer_ops() {
  static constexpr std::array<std::string_view, 2> kOps = {"kv_size", "fattn"};
  return kOps;
}

Result<Value> answer_kv_size(const Profile& profile, const Value& in) {
  AnswerFields fields(in, "/in");
  KERNELPATH_CHECK_OK(fields.status());
  const Metadata metadata = read_metadata(fields);
  auto nested = fields.object("params");
  const ContextParams params = nested ? read_params(profile, *nested) : ContextParams{};
  KERNELPATH_CHECK_OK(fields.status());
  const LoadedModel model = load_model(profile, metadata);
  if (!model.error.empty()) return error_value("model_error", model.error);
  const ContextPlan plan = plan_context(model, params);
  if (!plan.error.empty()) return error_value("context_error", plan.error);
  return memory_value(plan, plan_memory(model, params, plan));
}

Result<Value> answer_op(const Profile& profile, std::string_view op, const Value& in) {
  if (op == "kv_size") return answer_kv_size(profile, in);
  if (op == "fattn") return answer_fattn(in);
  return fail(Error{.code = ErrorCode::kBatchRequest,
                    .message = "llamacpp answers no such op",
                    .where = "/in/op",
                    .value = shorten(op, 64),
                    .near_matches = near_matches(op, answer_ops())});
}

}  // namespace kernelpath::engines::llamacpp
