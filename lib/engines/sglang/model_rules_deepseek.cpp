#include "engines/sglang/model_rules.h"
#include "engines/sglang/rule_ids.h"

#include <fmt/format.h>

#include <algorithm>

// Source: arg_groups/model_overrides/{deepseek_v2,deepseek_v4}.py.
namespace kernelpath::engines::sglang {
namespace {

constexpr std::int64_t kDsaPage = 64;
constexpr std::int64_t kV4Page = 256;
constexpr std::int64_t kLargestCpGroup = 8;

bool is_hyv4(const Launch& launch) {
  return launch.model().is("HYV4ForCausalLM") || launch.model().is("HYV4ForCausalLMNextN");
}

void check_hyv4(Launch& launch) {
  if (!is_hyv4(launch)) return;
  const std::string& name = launch.model().architecture();
  if (launch.flag("enable_prefill_cp")) {
    return launch.value_error(
        kModelHyv4Parallel,
        fmt::format("--enable-prefill-cp is not supported for HYV4 because its attention path does "
                    "not implement DSA context-parallel metadata and sharding. Got "
                    "architecture='{}' and enable_prefill_cp=True.",
                    name));
  }
  if (launch.size("dcp_size") > 1) {
    launch.value_error(
        kModelHyv4Parallel,
        fmt::format("--dcp-size > 1 is not supported for HYV4 because decode context parallelism "
                    "gathers query heads across DCP ranks but does not provide single-owner "
                    "semantics for learnable attention sinks. Got architecture='{}' and "
                    "dcp_size={}.",
                    name, launch.size("dcp_size")));
  }
}

void dsa_context_sharding(Launch& launch, Declaration& fields) {
  if (launch.size("dcp_size") <= 1) return;
  if (launch.flag("enable_hisparse") || launch.flag("enable_hierarchical_cache")) {
    return launch.value_error(kDsaDcp, "DSA DCP does not support HiSparse or HiCache.");
  }
  if (launch.text("disaggregation_mode") != "null") {
    return launch.value_error(kDsaDcp, "DSA DCP does not support PD disaggregation.");
  }
  const auto topk = launch.integer("speculative_eagle_topk");
  if (topk && *topk != 1) {
    return launch.value_error(kDsaDcp, "DSA DCP requires --speculative-eagle-topk 1.");
  }
  for (const std::string_view field : {"dsa_prefill_backend", "dsa_decode_backend"}) {
    if (launch.unset(field)) fields.emplace_back(std::string(field), text_value("trtllm"));
  }
  const std::string backend = launch.text("dcp_comm_backend");
  if (launch.unset("dcp_replicate_q_proj") && (backend == "a2a" || backend == "fi_a2a")) {
    fields.emplace_back("dcp_replicate_q_proj", boolean_value(true));
  }
}

// Attention groups under context parallelism; --dp-size still counts as the old spelling.
std::int64_t context_attention_dp(Launch& launch) {
  const std::int64_t attention = launch.size("attn_dp_size");
  const std::int64_t replicas = launch.size("dp_size");
  if (attention > 1 && replicas > 1) {
    launch.assertion_error(
        kCpAttentionDp,
        fmt::format("--dp-size {} with --attn-dp-size {}: data-parallel replicas combined with "
                    "attention data parallelism are not supported.",
                    replicas, attention));
  }
  return attention * replicas;
}

void dsa_context_parallel(Launch& launch, Declaration& fields) {
  launch.warn(kDsaCp,
              "Context parallel feature is still under experiment. It has only been verified on "
              "Hopper platform.");
  const std::int64_t attention_dp = context_attention_dp(launch);
  if (launch.refused()) return;
  const std::int64_t tp = launch.size("tp_size");
  const std::string strategy = launch.text("cp_strategy");
  fields.emplace_back("attn_dp_size", integer_value(attention_dp));
  fields.emplace_back("dp_size", integer_value(1));
  if (strategy == "zigzag") {
    fields.emplace_back("moe_dense_tp_size", integer_value(1));
    fields.emplace_back("moe_a2a_backend", text_value("deepep"));
    fields.emplace_back("ep_size", integer_value(tp));
    launch.warn(kDsaCp,
                "zigzag DSA CP requires moe_dense_tp_size=1, moe_a2a_backend=deepep, "
                "ep_size=tp_size, batch_size=1.");
  }
  if (tp > kLargestCpGroup) {
    return launch.assertion_error(
        kDsaCp,
        "Context parallel only supports single machine (tp_size <= 8). Cross-machine CP has "
        "precision issues.");
  }
  const std::int64_t given = launch.size("attn_cp_size");
  const std::int64_t cp = strategy == "interleave" && given > 1 ? given : tp / attention_dp;
  fields.emplace_back("attn_cp_size", integer_value(cp));
  launch.warn(kDsaCp, fmt::format("Enabled DSA context parallel: strategy={}, attn_dp_size={}, "
                                  "tp_size={}, attn_cp_size={}",
                                  strategy.empty() ? "None" : strategy, attention_dp, tp, cp));
}

void dsa_page_size(Launch& launch, Declaration& fields) {
  if (launch.platform().hip()) {
    fields.emplace_back("page_size", integer_value(1));
    launch.warn(kDsaPageSize,
                "Setting page size to 1 for DeepSeek DSA on ROCm (aiter preshuffle paged-MQA path "
                "unavailable: needs Triton>=3.5.0 or AITER_ENABLE_AOT_GLUON_PA_MQA_LOGITS=1).");
    return;
  }
  const std::int64_t pool = launch.model().index_kpool;
  if (pool > 1 && launch.size("dcp_size") > 1) {
    return launch.value_error(
        kDsaDcp, fmt::format("--dcp-size > 1 is not supported for DSA with index_kpool={}: a "
                             "pooled index key spans positions owned by different DCP ranks.",
                             pool));
  }
  fields.emplace_back("page_size", integer_value(kDsaPage * pool));
  launch.warn(kDsaPageSize,
              fmt::format("Setting page size to {} for DeepSeek DSA.", kDsaPage * pool));
}

void mla_context_parallel(Launch& launch, Declaration& fields) {
  launch.warn(kMlaCp,
              "MLA prefill context parallel is still experimental. Verified on Hopper with the fa3 "
              "backend.");
  const std::int64_t attention_dp = context_attention_dp(launch);
  const std::int64_t tp = launch.size("tp_size");
  fields.emplace_back("attn_dp_size", integer_value(attention_dp));
  fields.emplace_back("dp_size", integer_value(1));
  fields.emplace_back("moe_dense_tp_size", integer_value(1));
  fields.emplace_back("moe_a2a_backend", text_value("deepep"));
  fields.emplace_back("ep_size", integer_value(tp));
  fields.emplace_back("attn_cp_size", integer_value(tp / std::max<std::int64_t>(1, attention_dp)));
  launch.warn(kMlaCp,
              "For MLA CP, we have the following restrictions: moe_dense_tp_size == 1, "
              "moe_a2a_backend == deepep, ep_size == tp_size, batch_size == 1");
}

}  // namespace

Declaration deepseek_family_rule(Launch& launch) {
  Declaration fields;
  check_hyv4(launch);
  if (launch.refused()) return fields;
  if (launch.model().is_dsa) {
    dsa_context_sharding(launch, fields);
    if (launch.no_backend_set()) {
      fields.emplace_back("attention_backend", text_value("dsa"));
      launch.info(kModelDeepseek, "Use dsa attention backend for DeepSeek with DSA.");
    }
    if (launch.flag("enable_prefill_cp")) dsa_context_parallel(launch, fields);
    if (!launch.refused()) dsa_page_size(launch, fields);
    return fields;
  }
  if (launch.platform().sm100() && launch.no_backend_set()) {
    fields.emplace_back("attention_backend", text_value("trtllm_mla"));
    launch.info(kModelDeepseek,
                "Use trtllm_mla as attention backend on sm100 for DeepseekV3ForCausalLM");
  }
  if (launch.flag("enable_prefill_cp") && launch.mla()) mla_context_parallel(launch, fields);
  return fields;
}

Declaration deepseek_v4_rule(Launch& launch) {
  const ModelFacts& model = launch.model();
  const Platform& platform = launch.platform();
  Declaration fields = {{"attention_backend", text_value("dsv4")}};
  const std::string& name = model.architecture();
  if (launch.unset("swa_full_tokens_ratio") && model.model_type != "deepseek_v41") {
    fields.emplace_back("swa_full_tokens_ratio", json::Value::number(0.1));
    launch.info(kModelDeepseekV4,
                fmt::format("Setting swa_full_tokens_ratio to 0.1 for {}.", name));
  }
  fields.emplace_back("page_size", integer_value(kV4Page));
  launch.info(
      kModelDeepseekV4,
      fmt::format("Use dsv4 attention backend for {}, setting page_size to {}.", name, kV4Page));
  if (launch.text("moe_runner_backend") != "auto") return fields;
  if (model.has_nvfp4_moe) {
    fields.emplace_back("moe_runner_backend", text_value("flashinfer_trtllm_routed"));
    launch.info(kModelDeepseekV4, fmt::format("Use flashinfer_trtllm_routed as MoE runner backend "
                                              "for {} hybrid FP8+NVFP4 checkpoint.",
                                              name));
    return fields;
  }
  const bool kernels = platform.sm90() || platform.sm100() || platform.sm120();
  if (launch.text("moe_a2a_backend") == "none" && model.is_fp4_experts && kernels &&
      !launch.variable("SGLANG_DSV4_FP4_DEQUANT")) {
    fields.emplace_back("moe_runner_backend", text_value("flashinfer_mxfp4"));
    launch.info(kModelDeepseekV4,
                fmt::format("Use flashinfer_mxfp4 as MoE runner backend for {}.", name));
  }
  return fields;
}

}  // namespace kernelpath::engines::sglang
