#include "engines/trtllm/attention_module.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/text.h"
#include "engines/trtllm/rules_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::trtllm {
namespace {

constexpr std::int64_t kLlama4CappedSeqLen = 8192;
constexpr int kLastPreBlackwellSm = 90;
constexpr std::int64_t kFlashMlaHeadDim = 576;

EngineError engine_error(std::string type, std::string code, std::string message) {
  return EngineError{.type = std::move(type),
                     .code = std::move(code),
                     .message = std::move(message),
                     .near_matches = {}};
}

bool is_trtllm(std::string_view name) { return equal_ignoring_case(name, "TRTLLM"); }

struct MlaCheck {
  std::string_view name;
  std::optional<std::int64_t> MlaDimensions::*value;
};

// The order in which the engine's assertion reads the dimensions; the first that fails decides.
constexpr std::array kMlaChecks = {
    MlaCheck{"q_lora_rank", &MlaDimensions::q_lora_rank},
    MlaCheck{"kv_lora_rank", &MlaDimensions::kv_lora_rank},
    MlaCheck{"qk_rope_head_dim", &MlaDimensions::qk_rope_head_dim},
    MlaCheck{"qk_nope_head_dim", &MlaDimensions::qk_nope_head_dim},
    MlaCheck{"v_head_dim", &MlaDimensions::v_head_dim},
};

std::optional<EngineError> check_mla_geometry(const MlaDimensions& mla, Variant variant) {
  for (const MlaCheck& check : kMlaChecks) {
    const std::optional<std::int64_t> value = mla.*check.value;
    const bool zero_allowed = check.name == "qk_rope_head_dim" && variant == Variant::kDefault;
    if (!value) {
      return engine_error("TypeError", fmt::format("MLA-GEOMETRY-NULL:{}", check.name),
                          fmt::format("{} is null; MLA compares it with 0", check.name));
    }
    if (*value < 0 || (*value == 0 && !zero_allowed)) {
      return engine_error(
          "AssertionError", fmt::format("MLA-GEOMETRY:{}", check.name),
          fmt::format("{} is {}, MLA needs {}", check.name, *value, zero_allowed ? "≥ 0" : "> 0"));
    }
  }
  return std::nullopt;
}

std::optional<EngineError> check_instance(const CreateAttentionRequest& request,
                                          const DispatchDecision& dispatch) {
  const Variant variant = request.dispatch.variant;
  if (request.mla) {
    const BackendCapability* capability = find_capability(dispatch.backend_class);
    if (capability == nullptr || !capability->mla) {
      return engine_error("AssertionError", "MLA-UNSUPPORTED",
                          fmt::format("{} does not support MLA", dispatch.backend_class));
    }
    if (auto error = check_mla_geometry(*request.mla, variant)) return error;
  }
  const bool kernel_named = request.flashinfer_mla_kernel.has_value();
  if (variant == Variant::kSparseStrictFallback && kernel_named &&
      !inherits_from(dispatch.backend_class, "TrtllmAttention")) {
    return engine_error("ValueError", "FLASHINFER-MLA-KERNEL",
                        fmt::format("the MLA kernel '{}' is named, which only TRTLLM takes; the "
                                    "layer resolves to {}",
                                    *request.flashinfer_mla_kernel, dispatch.backend_class));
  }
  return std::nullopt;
}

// "1, 2, 4 or 8": the sizes over which so many heads can be spread.
std::string divisors_text(std::int64_t number) {
  std::vector<std::string> divisors;
  for (std::int64_t size = 1; size <= number; ++size) {
    if (number % size == 0) divisors.push_back(fmt::to_string(size));
  }
  return join_words(divisors, "or");
}

}  // namespace

std::string register_layer(std::optional<std::int64_t> layer_idx, std::vector<std::string>& taken) {
  const std::string base = layer_idx ? std::to_string(*layer_idx) : "None";
  std::string key = base;
  for (int suffix = 0; std::find(taken.begin(), taken.end(), key) != taken.end(); ++suffix) {
    key = fmt::format("{}_{}", base, suffix);
  }
  taken.push_back(key);
  return key;
}

ModuleGeometry module_geometry(const ModuleGeometryRequest& request) {
  KERNELPATH_ASSERT(request.num_heads > 0 && request.tp > 0 && request.cp > 0);
  ModuleGeometry geometry;
  if (request.head_dim_argument) {
    geometry.head_dim = *request.head_dim_argument;
    geometry.head_dim_from = "argument";
  } else if (request.head_dim_config) {
    geometry.head_dim = *request.head_dim_config;
    geometry.head_dim_from = "config";
  } else {
    geometry.head_dim = request.hidden_size / request.num_heads;
    geometry.head_dim_from = "hidden_size // num_heads";
  }
  if (request.cp > 1 && request.cp_type != "HELIX") {
    geometry.error =
        engine_error("AssertionError", "CP-NOT-HELIX",
                     fmt::format("context parallelism of type {} with attention; only HELIX works",
                                 request.cp_type));
    return geometry;
  }
  const std::int64_t tp = request.attention_dp ? 1 : request.tp;
  if (request.num_heads % (tp * request.cp) != 0) {
    geometry.error = engine_error(
        "AssertionError", "HEADS-INDIVISIBLE",
        fmt::format("{} heads do not divide by tp {} × cp {}; the product may be {}",
                    request.num_heads, tp, request.cp, divisors_text(request.num_heads)));
    return geometry;
  }
  geometry.heads_per_rank = request.num_heads / tp;
  geometry.kv_heads_per_rank = ceil_div(request.num_kv_heads, tp);
  geometry.kv_heads_replicated = tp > request.num_kv_heads;
  return geometry;
}

void append_steps(const ModuleGeometry& geometry, std::vector<Step>& steps) {
  if (geometry.error) {
    append_error_step(*geometry.error, Stage::kConstruction, "", steps);
    return;
  }
  if (!geometry.kv_heads_replicated) return;
  append_step({.rule = "TRT-KV-HEADS-REPLICATED",
               .stage = Stage::kConstruction,
               .verdict = Verdict::kNoted,
               .severity = Severity::kInfo,
               .reason = "more tensor-parallel ranks than KV heads: each rank keeps a whole copy "
                         "of one head, so the KV cache of all ranks together grows with tp"},
              steps);
}

std::string_view sparse_hook_module(std::string_view algorithm) {
  if (algorithm == "qsa" || algorithm == "rocket") return "attention";
  if (algorithm == "dsa" || algorithm == "deepseek_v4") return "mla";
  return "";
}

CreateAttentionDecision create_attention(const CreateAttentionRequest& request) {
  CreateAttentionDecision decision;
  if (request.attention_chunk_size && !is_trtllm(request.dispatch.name)) {
    decision.error =
        engine_error("ValueError", "CHUNKED-ATTENTION-UNSUPPORTED",
                     fmt::format("the backend '{}' has no chunked attention (chunk size {})",
                                 request.dispatch.name, *request.attention_chunk_size));
    return decision;
  }
  decision.dispatch = get_attention_backend(request.dispatch);
  decision.error = decision.dispatch->error;
  if (!decision.error) decision.error = check_instance(request, *decision.dispatch);
  if (!decision.error) decision.backend_class = decision.dispatch->backend_class;
  return decision;
}

void append_steps(const CreateAttentionDecision& decision, std::vector<Step>& steps) {
  if (decision.dispatch) append_steps(*decision.dispatch, steps);
  const bool reported = decision.dispatch && decision.dispatch->error;
  if (decision.error && !reported) {
    append_error_step(*decision.error, Stage::kConstruction,
                      decision.dispatch ? decision.dispatch->backend_class : "", steps);
  }
}

std::string_view unfused_rope_name(UnfusedRope module) {
  switch (module) {
    case UnfusedRope::kNone:
      return "none";
    case UnfusedRope::kRotary:
      return "rotary";
    case UnfusedRope::kMrope:
      return "mrope";
  }
  return {};
}

RopeGateDecision rope_gate(const RopeGateRequest& request) {
  const BackendCapability* capability = find_capability(request.backend_class);
  KERNELPATH_ASSERT(capability != nullptr);
  RopeGateDecision decision;
  std::optional<bool> fusion = request.rope_fusion;
  if (request.changes_physical_kv_length) {
    decision.warnings.emplace_back("ROPE-OFF-KV-EVICTION");
    fusion = false;
  }
  if (fusion.value_or(false) && !capability->fused_rope) {
    decision.warnings.emplace_back("ROPE-OFF-BACKEND");
    fusion = false;
  }
  decision.rope_fusion = fusion.value_or(capability->fused_rope);

  const bool mrope = request.pos_embd == "mrope";
  const bool rotary = mrope || request.pos_embd == "rope";
  const bool given = !request.pos_embd.empty();
  if (!decision.rope_fusion && given) {
    decision.unfused_module = mrope ? UnfusedRope::kMrope : UnfusedRope::kRotary;
  }
  decision.pos_params_passed_to_backend = given && (decision.rope_fusion || !rotary);
  return decision;
}

void append_steps(const RopeGateDecision& decision, std::vector<Step>& steps) {
  for (const std::string& warning : decision.warnings) {
    const bool eviction = warning == "ROPE-OFF-KV-EVICTION";
    append_step({.rule = eviction ? "TRT-ROPE-OFF-KV-EVICTION" : "TRT-ROPE-OFF-BACKEND",
                 .stage = Stage::kRewrite,
                 .verdict = Verdict::kApplied,
                 .severity = Severity::kWarn,
                 .reason = eviction ? "KV cache compression changes the physical length, so "
                                      "positions cannot be applied inside the kernel"
                                    : "fused RoPE was asked for, and the backend class has none"},
                steps);
  }
  const bool separate = decision.unfused_module != UnfusedRope::kNone;
  append_step({.rule = decision.rope_fusion ? "TRT-ROPE-FUSED" : "TRT-ROPE-UNFUSED",
               .stage = Stage::kRewrite,
               .verdict = Verdict::kApplied,
               .candidate = std::string(unfused_rope_name(decision.unfused_module)),
               .reason = decision.rope_fusion ? "RoPE is applied inside the attention kernel"
                         : separate           ? "a separate rotary module applies RoPE"
                                              : "no RoPE in the attention kernel"},
              steps);
}

Llama4ChunkDecision llama4_chunk(const Llama4ChunkRequest& request) {
  const std::optional<std::int64_t> chunk = request.attention_chunk_size;
  if (request.attn_backend != "TRTLLM") return {std::nullopt, "L4-BACKEND"};
  if (request.sm <= kLastPreBlackwellSm && request.spec_config) {
    return {std::nullopt, "L4-PREBLACKWELL-SPEC"};
  }
  // Zero counts as unset for both, as it does in Python's truth test.
  const std::int64_t max_seq_len = request.max_seq_len.value_or(0);
  if (chunk.value_or(0) != 0 && max_seq_len != 0 && max_seq_len < *chunk) {
    return {std::nullopt, "L4-SHORT-SEQ"};
  }
  return {chunk, "L4-KEEP"};
}

void append_steps(const Llama4ChunkDecision& decision, std::vector<Step>& steps) {
  const bool kept = decision.rule == "L4-KEEP";
  const RuleInfo* rule = find_backend_rule(decision.rule);
  KERNELPATH_ASSERT(rule != nullptr);
  append_step({.rule = rule->id,
               .stage = Stage::kRewrite,
               .verdict = kept ? Verdict::kSkipped : Verdict::kApplied,
               .severity = kept ? Severity::kInfo : Severity::kWarn,
               .candidate = "attention_chunk_size",
               .reason = decision.attention_chunk_size
                             ? fmt::format("chunk size {} is kept", *decision.attention_chunk_size)
                             : std::string(rule->summary)},
              steps);
}

Llama4SeqLenDecision llama4_inferred_max_seq_len(std::string_view attn_backend,
                                                 std::int64_t uncapped) {
  Llama4SeqLenDecision decision;
  decision.warning = !is_trtllm(attn_backend);
  decision.inferred_max_seq_len = decision.warning ? kLlama4CappedSeqLen : uncapped;
  decision.attention_chunk_size_kept = attn_backend == "TRTLLM";
  decision.uncapped_without_chunking = !decision.warning && !decision.attention_chunk_size_kept;
  return decision;
}

void append_steps(const Llama4SeqLenDecision& decision, std::vector<Step>& steps) {
  if (decision.warning) {
    append_step({.rule = "TRT-L4-SEQ-CAP",
                 .stage = Stage::kRewrite,
                 .verdict = Verdict::kApplied,
                 .severity = Severity::kWarn,
                 .candidate = "max_seq_len",
                 .reason = fmt::format("inferred max_seq_len is {}: chunked attention is missing",
                                       decision.inferred_max_seq_len)},
                steps);
  }
  if (decision.uncapped_without_chunking) {
    append_step({.rule = "TRT-L4-UNCAPPED",
                 .stage = Stage::kRewrite,
                 .verdict = Verdict::kApplied,
                 .severity = Severity::kWarn,
                 .candidate = "max_seq_len",
                 .reason = fmt::format("max_seq_len stays {} while chunking is lost: long prompts "
                                       "get full attention without a warning",
                                       decision.inferred_max_seq_len)},
                steps);
  }
}

FlashMlaDecision enable_flash_mla(std::string_view attn_backend, hardware::Capability capability,
                                  std::optional<std::int64_t> kv_lora_rank,
                                  std::optional<std::int64_t> qk_rope_head_dim) {
  FlashMlaDecision decision;
  const std::int64_t rank = kv_lora_rank.value_or(0);
  const std::int64_t rope = qk_rope_head_dim.value_or(0);
  if (attn_backend != "TRTLLM" || rank == 0 || rope == 0) return decision;
  decision.latent_head_dim = checked_add(rank, rope);
  decision.enabled =
      decision.latent_head_dim == kFlashMlaHeadDim && capability == hardware::Capability{9, 0};
  return decision;
}

void append_steps(const FlashMlaDecision& decision, std::vector<Step>& steps) {
  if (decision.latent_head_dim) {
    append_step({.rule = "TRT-MLA-HEAD-DIM",
                 .stage = Stage::kRewrite,
                 .verdict = Verdict::kApplied,
                 .candidate = "head_dim",
                 .reason = fmt::format("MLA decodes with head_dim {} (latent plus RoPE part)",
                                       *decision.latent_head_dim)},
                steps);
  }
  append_step({.rule = "TRT-FLASH-MLA",
               .stage = Stage::kInnerKernel,
               .verdict = decision.enabled ? Verdict::kSelected : Verdict::kSkipped,
               .candidate = "FlashMLA",
               .reason = decision.enabled ? "head_dim 576 on compute capability 9.0"
                                          : "needs TRTLLM, MLA of 576 and compute capability 9.0"},
              steps);
}

MlaInstances mla_instances(const MlaDimensions& dimensions) {
  const std::int64_t rope = dimensions.qk_rope_head_dim.value_or(0);
  const auto plus_rope = [&](std::optional<std::int64_t> part) {
    return checked_add(part.value_or(0), rope).value_or(0);
  };
  return MlaInstances{.mqa_head_dim = plus_rope(dimensions.kv_lora_rank),
                      .mha_head_dim = plus_rope(dimensions.qk_nope_head_dim),
                      .mha_v_head_dim = dimensions.v_head_dim.value_or(0)};
}

SkipCorrectionDecision skip_correction_threshold(int sm, bool mla, double threshold) {
  SkipCorrectionDecision decision{threshold, 0, false};
  if (!mla) return decision;
  if (sm == 100 || sm == 103) {
    decision.effective = threshold;
  } else {
    decision.warning = threshold > 0;
  }
  return decision;
}

void append_steps(const SkipCorrectionDecision& decision, std::vector<Step>& steps) {
  if (decision.requested <= 0 || decision.effective > 0) return;
  append_step({.rule = "TRT-SKIP-CORRECTION-OFF",
               .stage = Stage::kConstruction,
               .verdict = Verdict::kApplied,
               .severity = decision.warning ? Severity::kWarn : Severity::kInfo,
               .candidate = "skip_correction_threshold",
               .reason = fmt::format("threshold {} becomes 0: only MLA on SM100 and SM103 has it",
                                     decision.requested)},
              steps);
}

}  // namespace kernelpath::engines::trtllm
