#include "engines/trtllm/answer_backend.h"

#include "base/text.h"
#include "engines/answer_fields.h"
#include "engines/trtllm/answer_kernels.h"
#include "engines/trtllm/attention_module.h"
#include "engines/trtllm/backend_contract.h"
#include "engines/trtllm/dispatch.h"
#include "engines/trtllm/model_config_rules.h"
#include "engines/trtllm/model_defaults.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace kernelpath::engines::trtllm {
namespace {

using json::Value;

// The warning of a fallback, as the recorded answers call it.
constexpr std::string_view kFallbackWarning = "FALLBACK-TRTLLM";

std::vector<std::string> fallback_warnings(const DispatchDecision& decision) {
  if (!decision.fell_back) return {};
  return {std::string(kFallbackWarning)};
}

Variant read_variant(AnswerFields& fields) {
  const Result<Variant> variant = parse_variant(fields.text("variant", ""));
  if (variant) return *variant;
  fields.refuse("variant", variant.error().message);
  return Variant::kDefault;
}

DispatchRequest read_dispatch(AnswerFields& fields) {
  DispatchRequest request;
  request.name = fields.required_text("name");
  request.flashinfer_available = fields.boolean("flashinfer_available", true);
  request.variant = read_variant(fields);
  std::optional<AnswerFields> sparse = fields.object("sparse");
  if (!sparse) return request;
  SparseRequest& lowered = request.sparse.emplace();
  lowered.algorithm = sparse->required_text("algorithm");
  lowered.implementation = sparse->text("implementation", "triton");
  lowered.msa_available = sparse->boolean("msa_available", false);
  lowered.sm = sparse->optional_sm("sm");
  const bool needs_sm = lowered.algorithm == "csa2" && equal_ignoring_case(request.name, "TRTLLM");
  if (needs_sm && !lowered.sm) sparse->refuse("sm", "csa2 on TRTLLM needs the field sm");
  return request;
}

Result<Value> answer_get_attention_backend(AnswerFields& fields) {
  const DispatchRequest request = read_dispatch(fields);
  KERNELPATH_CHECK_OK(fields.status());
  const DispatchDecision decision = get_attention_backend(request);
  AnswerObject out;
  out.add_text("class", decision.backend_class)
      .add_texts("warnings", fallback_warnings(decision))
      .add("error", error_value(decision.error))
      .add("sparse_dropped", decision.sparse_dropped);
  if (!decision.csa2_compute.empty()) out.add_text("csa2_compute", decision.csa2_compute);
  return out.take();
}

Result<Value> answer_sparse_cache_manager(AnswerFields& fields) {
  const std::string algorithm = fields.required_text("algorithm");
  const bool use_v2 = fields.boolean("use_kv_cache_manager_v2", false);
  KERNELPATH_CHECK_OK(fields.status());
  const CacheManagerDecision decision = sparse_cache_manager(algorithm, use_v2);
  return AnswerObject()
      .add_text("class", decision.manager_class)
      .add("error", error_value(decision.error))
      .take();
}

Result<Value> answer_create_attention(AnswerFields& fields) {
  CreateAttentionRequest request;
  request.dispatch = read_dispatch(fields);
  request.attention_chunk_size = fields.optional_integer("attention_chunk_size");
  request.flashinfer_mla_kernel = fields.optional_text("flashinfer_mla_backend");
  if (std::optional<AnswerFields> mla = fields.object("mla")) {
    request.mla = MlaDimensions{.q_lora_rank = mla->optional_integer("q_lora_rank"),
                                .kv_lora_rank = mla->optional_integer("kv_lora_rank"),
                                .qk_rope_head_dim = mla->optional_integer("qk_rope_head_dim"),
                                .qk_nope_head_dim = mla->optional_integer("qk_nope_head_dim"),
                                .v_head_dim = mla->optional_integer("v_head_dim")};
  }
  KERNELPATH_CHECK_OK(fields.status());
  const CreateAttentionDecision decision = create_attention(request);
  AnswerObject out;
  out.add_text("class", decision.backend_class)
      .add("error", error_value(decision.error))
      .add_texts("warnings", decision.dispatch ? fallback_warnings(*decision.dispatch)
                                               : std::vector<std::string>());
  return out.take();
}

Result<Value> answer_rope_gate(AnswerFields& fields) {
  RopeGateRequest request;
  request.backend_class = fields.required_text("backend_class");
  if (find_capability(request.backend_class) == nullptr) {
    fields.refuse("backend_class", "no such attention backend class");
  }
  request.rope_fusion = fields.optional_boolean("rope_fusion");
  request.pos_embd = fields.text("pos_embd", "");
  const std::string compression = fields.text("kv_cache_compression", "");
  request.changes_physical_kv_length = compression == "evicting";
  if (!compression.empty() && compression != "evicting" && compression != "cold_page_quant") {
    fields.refuse("kv_cache_compression", "must be evicting, cold_page_quant or null");
  }
  KERNELPATH_CHECK_OK(fields.status());
  const RopeGateDecision decision = rope_gate(request);
  return AnswerObject()
      .add("rope_fusion", decision.rope_fusion)
      .add_texts("warnings", decision.warnings)
      .add_text("unfused_module", unfused_rope_name(decision.unfused_module))
      .add("pos_params_passed_to_backend", decision.pos_params_passed_to_backend)
      .take();
}

Result<Value> answer_llama4_chunk(AnswerFields& fields) {
  Llama4ChunkRequest request;
  request.attn_backend = fields.text("attn_backend", "TRTLLM");
  const std::optional<int> sm = fields.optional_sm("sm");
  if (!sm) fields.refuse("sm", "the field sm is needed, such as 90");
  request.sm = sm.value_or(0);
  request.spec_config = fields.boolean("spec_config", false);
  request.max_seq_len = fields.optional_integer("max_seq_len");
  request.attention_chunk_size = fields.optional_integer("attention_chunk_size");
  KERNELPATH_CHECK_OK(fields.status());
  const Llama4ChunkDecision decision = llama4_chunk(request);
  return AnswerObject()
      .add_integer("attention_chunk_size", decision.attention_chunk_size)
      .add_text("rule", decision.rule)
      .take();
}

Result<Value> answer_llama4_inferred_max_seq_len(AnswerFields& fields) {
  const std::string backend = fields.text("attn_backend", "TRTLLM");
  MaxSeqLenRequest length;
  length.max_position_embeddings = fields.optional_integer("max_position_embeddings");
  KERNELPATH_CHECK_OK(fields.status());
  const Llama4SeqLenDecision decision =
      llama4_inferred_max_seq_len(backend, infer_max_seq_len(length).max_seq_len);
  return AnswerObject()
      .add("inferred_max_seq_len", decision.inferred_max_seq_len)
      .add("warning", decision.warning)
      .add("attention_chunk_size_kept", decision.attention_chunk_size_kept)
      .add("uncapped_without_chunking", decision.uncapped_without_chunking)
      .take();
}

Result<Value> answer_enable_flash_mla(AnswerFields& fields) {
  const std::string backend = fields.text("attn_backend", "TRTLLM");
  const hardware::Capability capability = read_capability(fields);
  const auto kv_lora_rank = fields.optional_integer("kv_lora_rank");
  const auto qk_rope_head_dim = fields.optional_integer("qk_rope_head_dim");
  KERNELPATH_CHECK_OK(fields.status());
  const FlashMlaDecision decision =
      enable_flash_mla(backend, capability, kv_lora_rank, qk_rope_head_dim);
  return AnswerObject()
      .add("enable_flash_mla", decision.enabled)
      .add_integer("latent_head_dim", decision.latent_head_dim)
      .take();
}

Result<Value> answer_fuse_pos_embd(AnswerFields& fields) {
  const std::string backend = fields.required_text("attn_backend");
  KERNELPATH_CHECK_OK(fields.status());
  return AnswerObject().add("fuse_pos_embd", model_config_fuses_positions(backend)).take();
}

Result<Value> answer_skip_correction(AnswerFields& fields) {
  const std::optional<int> sm = fields.optional_sm("sm");
  if (!sm) fields.refuse("sm", "the field sm is needed, such as 90");
  const bool mla = fields.boolean("mla", false);
  const double threshold = fields.number("threshold", 0);
  KERNELPATH_CHECK_OK(fields.status());
  const SkipCorrectionDecision decision = skip_correction_threshold(*sm, mla, threshold);
  return AnswerObject()
      .add("effective", Value::number(decision.effective))
      .add("warning", decision.warning)
      .take();
}

Result<Value> answer_use_paged_context_fmha(AnswerFields& fields) {
  const bool used = use_paged_context_fmha(fields.boolean("chunked_prefill", false),
                                           fields.boolean("cache_reuse", false),
                                           fields.boolean("has_speculative_draft_tokens", false));
  KERNELPATH_CHECK_OK(fields.status());
  return AnswerObject().add("use_paged_context_fmha", used).take();
}

Result<Value> answer_merge_forward_args(AnswerFields& fields) {
  const bool given = fields.boolean("forward_args_given", false);
  const std::vector<std::string> keywords = fields.text_list("kwargs");
  KERNELPATH_CHECK_OK(fields.status());
  return AnswerObject()
      .add_text("result", forward_args_name(merge_forward_args(given, keywords)))
      .take();
}

Result<Value> answer_model_backend(AnswerFields& fields) {
  const std::string architecture = fields.required_text("arch");
  const std::optional<std::string> user = fields.optional_text("user_attn_backend");
  DispatchRequest request;
  request.flashinfer_available = fields.boolean("flashinfer_available", true);
  KERNELPATH_CHECK_OK(fields.status());
  const BackendNameDecision name = effective_backend_name(architecture, user ? &*user : nullptr);
  request.name = name.name;
  const DispatchDecision decision = get_attention_backend(request);
  const bool flashinfer = decision.selected_backend == "FLASHINFER";
  return AnswerObject()
      .add("effective_name", Value::string(name.name))
      .add("from_model_default", name.from_model_default)
      .add_text("class", decision.backend_class)
      .add_texts("warnings", fallback_warnings(decision))
      .add_text("flashinfer_inner",
                flashinfer ? flashinfer_kernel_of(architecture) : std::string_view())
      .take();
}

Result<Value> answer_model_default_merge(AnswerFields& fields) {
  const Value* defaults = fields.raw("model_default");
  if (defaults == nullptr || !defaults->is_object() || defaults->members().size() > 1) {
    fields.refuse("model_default", "must be an object with the default of one field, or empty");
  }
  KERNELPATH_CHECK_OK(fields.status());
  const Value* user = fields.raw("user_value");
  const Value fallback =
      defaults->members().empty() ? Value::null() : defaults->members().front().value;
  return AnswerObject()
      .add("effective", deep_merge(user == nullptr ? Value::null() : *user, fallback))
      .take();
}

struct Op {
  std::string_view name;
  Result<Value> (*answer)(AnswerFields&);
};

constexpr std::array kOps = {
    Op{"get_attention_backend", answer_get_attention_backend},
    Op{"sparse_cache_manager", answer_sparse_cache_manager},
    Op{"create_attention", answer_create_attention},
    Op{"rope_gate", answer_rope_gate},
    Op{"llama4_chunk", answer_llama4_chunk},
    Op{"llama4_inferred_max_seq_len", answer_llama4_inferred_max_seq_len},
    Op{"enable_flash_mla", answer_enable_flash_mla},
    Op{"model_config_fuse_pos_embd", answer_fuse_pos_embd},
    Op{"kv_bytes_per_token", answer_kv_bytes_per_token},
    Op{"flashinfer_inner", answer_flashinfer_inner},
    Op{"fmha_libs_env", answer_fmha_libs_env},
    Op{"fmha_select", answer_fmha_select},
    Op{"skip_correction_threshold", answer_skip_correction},
    Op{"use_paged_context_fmha", answer_use_paged_context_fmha},
    Op{"merge_forward_args", answer_merge_forward_args},
    Op{"model_backend", answer_model_backend},
    Op{"model_default_merge", answer_model_default_merge},
};

}  // namespace

std::span<const std::string_view> backend_ops() {
  static constexpr auto kNames = [] {
    std::array<std::string_view, kOps.size()> names{};
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = kOps[i].name;
    return names;
  }();
  return kNames;
}

Result<Value> answer_backend(const Value& in) {
  AnswerFields fields(in, "/in");
  KERNELPATH_CHECK_OK(fields.status());
  const std::string name = fields.required_text("op");
  KERNELPATH_CHECK_OK(fields.status());
  const auto* op =
      std::find_if(kOps.begin(), kOps.end(), [&](const Op& entry) { return entry.name == name; });
  if (op != kOps.end()) return op->answer(fields);
  return fail(Error{.code = ErrorCode::kBatchRequest,
                    .message = "no such op for the engine trtllm",
                    .where = "/in/op",
                    .value = escape_for_terminal(shorten(name, 40)),
                    .near_matches = near_matches(name, backend_ops())});
}

}  // namespace kernelpath::engines::trtllm
