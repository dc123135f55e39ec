#include "engines/sglang/rule_ids.h"
#include "engines/sglang/steps.h"

#include <fmt/format.h>

#include <algorithm>

// Source: arg_groups/parallel_hook.py, arg_groups/overrides.py.
namespace kernelpath::engines::sglang {
namespace {

void divide_chunk(Launch& launch) {
  const std::int64_t groups = launch.size("attn_dp_size");
  const std::int64_t before = launch.integer("chunked_prefill_size").value_or(0);
  // Python's floor division: -1, which means no chunks, stays -1.
  const std::int64_t after = before >= 0 ? before / groups : -((-before + groups - 1) / groups);
  launch.declare(kDpChunk, "chunked_prefill_size", integer_value(after));
  launch.warn(kDpChunk,
              fmt::format("DP attention is enabled. chunked prefill size is adjusted from "
                          "{} to {}.",
                          before, after));
}

void check_lm_head(Launch& launch) {
  if (launch.flag("enable_dp_lm_head") && !launch.attention_dp()) {
    launch.assertion_error(kDpLmHead,
                           "--enable-dp-lm-head requires attention DP (--attn-dp-size).");
  }
}

void check_mimo_context(Launch& launch) {
  const ModelFacts& model = launch.model();
  if (!model.is("MiMoV2ForCausalLM") && !model.is("MiMoV2FlashForCausalLM")) return;
  if (launch.text("cp_strategy") != "zigzag") {
    return launch.value_error(kCpStrategy,
                              "MiMo V2 prefill CP only supports --cp-strategy zigzag.");
  }
  if (model.is_multimodal && !launch.flag("language_only") && !launch.flag("language_model_only")) {
    launch.value_error(kCpStrategy,
                       "MiMo V2 prefill CP only supports text inference; add --language-only.");
  }
}

void check_prefill_context(Launch& launch) {
  if (!launch.flag("enable_prefill_cp")) return;
  const std::string& name = launch.model().architecture();
  if (launch.platform().hip() && name != "DeepseekV4ForCausalLM") {
    return launch.value_error(kCpStrategy, fmt::format("Prefill CP on HIP is only supported for "
                                                       "DeepseekV4ForCausalLM, got '{}'.",
                                                       name));
  }
  if (name == "DeepseekV32ForCausalLM" && launch.text("cp_strategy") == "zigzag") {
    return launch.value_error(kCpStrategy,
                              "DeepSeek V3.2 prefill CP does not support --cp-strategy zigzag; use "
                              "interleave.");
  }
  check_mimo_context(launch);
  if (launch.refused() || !launch.unset("cp_strategy")) return;
  launch.value_error(kCpStrategy, "--cp-strategy must be set when --enable-prefill-cp is enabled.");
}

void check_boundaries(Launch& launch) {
  const std::string& type = launch.model().text_model_type;
  const bool nemotron = type == "nemotron_h" || type == "nemotron_h_puzzle";
  if (nemotron && launch.size("attn_cp_size") > 1) {
    return launch.value_error(kCpSizes, "Nemotron-H does not support --attn-cp-size > 1");
  }
  if (type == "longcat_flash" && launch.flag("enable_prefill_cp") &&
      launch.size("attn_cp_size") > 1) {
    launch.value_error(kCpSizes,
                       "LongCat-Flash does not support --enable-prefill-cp with --attn-cp-size > "
                       "1");
  }
}

void check_sizes(Launch& launch) {
  const std::int64_t tp = launch.size("tp_size");
  const std::int64_t cp = std::max<std::int64_t>(1, launch.size("attn_cp_size"));
  const std::int64_t dp = std::max<std::int64_t>(1, launch.size("attn_dp_size"));
  const std::int64_t moe_dp = std::max<std::int64_t>(1, launch.size("moe_dp_size"));
  if (cp > 1 && tp % cp != 0) {
    return launch.assertion_error(kCpSizes, "tp_size must be divisible by attn_cp_size");
  }
  if (cp > 1 && tp % (dp * cp) != 0) {
    return launch.assertion_error(kCpSizes,
                                  "tp_size must be divisible by attn_dp_size * attn_cp_size");
  }
  if (moe_dp > 1 && tp % moe_dp != 0) {
    return launch.assertion_error(kCpSizes, "tp_size must be divisible by moe_dp_size");
  }
  if (moe_dp > 1 && launch.size("ep_size") * moe_dp > tp) {
    return launch.assertion_error(kCpSizes,
                                  "ep_size * moe_dp_size must be less than or equal to tp_size");
  }
  if (moe_dp > 1 && launch.size("pp_size") != 1) {
    return launch.assertion_error(kCpSizes, "PP is not supported with context parallelism");
  }
  if (cp != moe_dp && moe_dp != 1) {
    launch.assertion_error(kCpSizes,
                           "attn_cp_size != moe_dp_size is only supported when moe_dp_size == 1");
  }
}

}  // namespace

void data_parallelism(Launch& launch) {
  const std::int64_t attention = launch.size("attn_dp_size");
  if (attention < 1) {
    return launch.value_error(kDpSizes,
                              fmt::format("--attn-dp-size must be positive (got {}).", attention));
  }
  if (attention > 1 && launch.size("dp_size") > 1) {
    return launch.value_error(
        kDpSizes,
        fmt::format("--dp-size {} with --attn-dp-size {}: data-parallel replicas combined with "
                    "attention data parallelism are not supported.",
                    launch.size("dp_size"), attention));
  }
  if (launch.size("dp_size") * attention == 1) {
    launch.declare(kDpLmHead, "enable_dp_lm_head", boolean_value(false));
  }
  if (attention > 1) {
    if (launch.size("tp_size") % attention != 0) {
      return launch.assertion_error(kDpSizes, "tp_size must be divisible by attn_dp_size");
    }
    divide_chunk(launch);
  }
  check_lm_head(launch);
}

void context_parallelism(Launch& launch) {
  for (const auto& step : {check_boundaries, check_prefill_context, check_sizes}) {
    step(launch);
    if (launch.refused()) return;
  }
}

void pipeline_parallel_overlap(Launch& launch) {
  if (launch.size("pp_size") <= 1) return;
  launch.warn(kPipelineOverlap, "Pipeline parallelism is incompatible with overlap schedule.");
  launch.declare(kPipelineOverlap, "disable_overlap_schedule", boolean_value(true));
}

}  // namespace kernelpath::engines::sglang
