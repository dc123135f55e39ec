#include "engines/sglang/hf_config.h"
#include "engines/sglang/rule_ids.h"
#include "engines/sglang/steps.h"

#include <fmt/format.h>

#include <algorithm>

// Source: arg_groups/speculative_hook.py (_handle_dflash, _handle_dspark),
// speculative/dflash_utils.py.
namespace kernelpath::engines::sglang {
namespace {

constexpr std::int64_t kDefaultBlock = 16;
constexpr std::int64_t kDefaultGamma = 7;

// One step and one candidate: such drafts are a block, not a tree.
void fix_one(Launch& launch, std::string_view algorithm, std::string_view field) {
  const auto given = launch.integer(field);
  if (given == 1) return;
  if (given) {
    launch.warn(kSpecBlockShape, fmt::format("{} only supports {} == 1; overriding {}={} to 1.",
                                             algorithm, field, field, *given));
  }
  launch.declare(kSpecBlockShape, std::string(field), integer_value(1));
}

const json::Value* draft_member(const Launch& launch, std::string_view group,
                                std::string_view name) {
  const json::Value& config = launch.input().draft.config;
  const json::Value* nested = config.find_non_null(group);
  if (nested != nullptr) {
    if (const json::Value* value = nested->find_non_null(name)) return value;
  }
  return config.find_non_null(name);
}

std::string dflash_problem(const Launch& launch) {
  if (!launch.device_is("cuda")) {
    return fmt::format("DFLASH speculative decoding is not supported on device '{}'.",
                       launch.text("device"));
  }
  if (launch.attention_dp()) {
    if (!launch.flag("enable_dp_lm_head")) {
      return "DFLASH with dp attention requires --enable-dp-lm-head.";
    }
    if (launch.size("attn_cp_size") != 1) {
      return "DFLASH with dp attention does not support context parallel.";
    }
  }
  if (launch.size("pp_size") != 1) {
    return "Currently DFLASH speculative decoding only supports pp_size == 1.";
  }
  if (launch.unset("speculative_draft_model_path")) {
    return "DFLASH speculative decoding requires setting --speculative-draft-model-path.";
  }
  return {};
}

void dflash_tokens(Launch& launch) {
  const auto block = launch.integer("speculative_dflash_block_size");
  const auto tokens = launch.integer("speculative_num_draft_tokens");
  if (block && *block <= 0) {
    return launch.value_error(
        kSpecBlockSize,
        fmt::format("DFLASH requires --speculative-dflash-block-size to be positive, got {}.",
                    *block));
  }
  if (block && tokens && *tokens != *block) {
    return launch.value_error(
        kSpecBlockSize,
        fmt::format("Both --speculative-num-draft-tokens and --speculative-dflash-block-size are "
                    "set but they differ. For DFLASH they must match. "
                    "speculative_num_draft_tokens={}, speculative_dflash_block_size={}.",
                    *tokens, *block));
  }
  if (block) {
    launch.declare(kSpecBlockSize, "speculative_num_draft_tokens", integer_value(*block));
  }
  if (!launch.unset("speculative_num_draft_tokens")) return;
  std::optional<std::int64_t> inferred =
      integer_of(draft_member(launch, "dflash_config", "block_size"));
  if (!inferred) {
    inferred = kDefaultBlock;
    launch.warn(kSpecBlockSize,
                fmt::format("speculative_num_draft_tokens is not set; defaulting to {} for DFLASH.",
                            *inferred));
  }
  launch.declare(kSpecBlockSize, "speculative_num_draft_tokens", integer_value(inferred));
}

bool all_sliding_or_causal(const Launch& launch) {
  const HfConfig draft(launch.profile(), launch.input().draft.config);
  const std::vector<std::string> types = draft.text_strings("layer_types");
  const auto layers = draft.text_integer("num_hidden_layers");
  const bool sliding =
      !types.empty() && static_cast<std::int64_t>(types.size()) == layers.value_or(-1) &&
      std::all_of(types.begin(), types.end(),
                  [](const std::string& type) { return type == "sliding_attention"; });
  return sliding || draft.text_true("is_causal");
}

void dflash_backend(Launch& launch) {
  const std::string fallback = launch.platform().hip() ? "triton" : "flashinfer";
  std::string backend = launch.text("speculative_draft_attention_backend");
  if (backend.empty()) backend = launch.prefill_backend();
  if (backend.empty()) {
    backend = fallback;
  } else if (!launch.profile().in_group("draft_backends", backend)) {
    launch.warn(kSpecDraftBackend,
                fmt::format("DFLASH draft worker does not support attention_backend '{}'. Falling "
                            "back to '{}'.",
                            backend, fallback));
    backend = fallback;
  } else if (backend == "trtllm_mha" && !all_sliding_or_causal(launch)) {
    backend = launch.platform().sm100() ? "fa4" : fallback;
    launch.warn(
        kSpecDraftBackend,
        fmt::format("DFLASH only enables 'trtllm_mha' when all layers use sliding attention "
                    "or the draft is explicitly causal. Falling back to '{}'.",
                    backend));
  }
  launch.declare(kSpecDraftBackend, "speculative_draft_attention_backend", text_value(backend));
}

std::string dspark_problem(const Launch& launch) {
  if (!launch.device_is("cuda")) {
    return "DSpark speculative decoding only supports CUDA, NPU or XPU device.";
  }
  if (launch.attention_dp()) {
    if (!launch.flag("enable_dp_lm_head")) {
      return "DSpark with dp attention requires --enable-dp-lm-head.";
    }
    const std::string a2a = launch.text("moe_a2a_backend");
    if (a2a != "none" && a2a != "megamoe" && a2a != "mori") {
      return fmt::format(
          "DSpark with dp attention supports moe_a2a_backend 'none' (built-in TP "
          "MoE), 'megamoe', or 'mori', got '{}'.",
          a2a);
    }
  }
  if (launch.size("pp_size") != 1 && launch.text("disaggregation_mode") != "prefill") {
    return "DSpark pipeline parallelism requires PD prefill; decode and non-disaggregated serving "
           "require pp_size == 1.";
  }
  return {};
}

bool target_bundles_dspark(const Launch& launch) {
  const json::Value& config = launch.input().model.config;
  return config.find_non_null("dspark_config") != nullptr ||
         config.find_non_null("dspark_block_size") != nullptr;
}

void dspark_tokens(Launch& launch) {
  std::optional<std::int64_t> gamma = launch.integer("speculative_dspark_block_size");
  if (gamma && *gamma <= 0) {
    return launch.value_error(
        kSpecBlockSize,
        fmt::format("DSpark requires --speculative-dspark-block-size to be positive, got {}.",
                    *gamma));
  }
  if (!gamma) gamma = integer_of(draft_member(launch, "dspark_config", "block_size"));
  const auto tokens = launch.integer("speculative_num_draft_tokens");
  if (!gamma && !tokens) {
    gamma = kDefaultGamma;
    launch.warn(kSpecBlockSize,
                fmt::format("DSpark gamma is not set; defaulting to {}.", kDefaultGamma));
  }
  if (gamma) {
    if (tokens && *tokens != *gamma + 1) {
      return launch.value_error(
          kSpecBlockSize,
          fmt::format("DSpark speculative_num_draft_tokens must equal gamma + 1 (= {} for "
                      "gamma={}), but got speculative_num_draft_tokens={}.",
                      *gamma + 1, *gamma, *tokens));
    }
    launch.declare(kSpecBlockSize, "speculative_num_draft_tokens", integer_value(*gamma + 1));
  }
  if (launch.integer("speculative_num_draft_tokens").value_or(0) < 2) {
    launch.value_error(kSpecBlockSize,
                       "DSpark speculative_num_draft_tokens must be >= 2 (= gamma + 1).");
  }
}

}  // namespace

void dflash(Launch& launch) {
  const std::string problem = dflash_problem(launch);
  if (!problem.empty()) return launch.value_error(kSpecDflash, problem);
  fix_one(launch, "DFLASH", "speculative_num_steps");
  fix_one(launch, "DFLASH", "speculative_eagle_topk");
  dflash_tokens(launch);
  if (launch.refused()) return;
  dflash_backend(launch);
  limit_draft_requests(launch);
}

void dspark(Launch& launch) {
  const std::string problem = dspark_problem(launch);
  if (!problem.empty()) return launch.value_error(kSpecDspark, problem);
  if (launch.unset("speculative_draft_model_path")) {
    if (!target_bundles_dspark(launch)) {
      return launch.value_error(kSpecDspark,
                                "DSpark dense speculative decoding requires setting "
                                "--speculative-draft-model-path.");
    }
    launch.declare(kSpecDraftPath, "speculative_draft_model_path",
                   text_value(launch.input().model_path));
    launch.info(kSpecDraftPath,
                "DSpark draft weights are bundled in the target checkpoint; defaulting "
                "--speculative-draft-model-path to --model-path.");
  }
  fix_one(launch, "DSpark", "speculative_num_steps");
  fix_one(launch, "DSpark", "speculative_eagle_topk");
  dspark_tokens(launch);
  if (!launch.refused()) limit_draft_requests(launch);
}

}  // namespace kernelpath::engines::sglang
