#include "base/text.h"
#include "engines/sglang/hf_config.h"
#include "engines/sglang/rule_ids.h"
#include "engines/sglang/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

// Source: arg_groups/speculative_hook.py, speculative/spec_info.py.
namespace kernelpath::engines::sglang {
namespace {

bool one_of(const std::string& text, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

bool gemma4_draft(const Launch& launch) {
  const auto names = strings_of(launch.input().draft.config.find("architectures"));
  return contains(names, "Gemma4AssistantForCausalLM") ||
         contains(names, "Gemma4UnifiedAssistantForCausalLM");
}

// NEXTN is EAGLE; a Gemma 4 assistant is neither.
void resolve_alias(Launch& launch) {
  const std::string algorithm = launch.text("speculative_algorithm");
  const json::Value& draft = launch.input().draft.config;
  if (!draft.is_null() && has_ambiguous_head_dim(HfConfig(launch.profile(), draft))) {
    return launch.refuse("resolve", "AmbiguousGlobalPerLayerAttributeError", kModelHeadDim,
                         std::string(kAmbiguousHeadDim));
  }
  const bool gemma4 = gemma4_draft(launch);
  if (algorithm == "EAGLE3" && gemma4) {
    return launch.value_error(kSpecGemma4,
                              "Gemma4AssistantForCausalLM draft requires --speculative-algorithm "
                              "NEXTN or EAGLE; EAGLE3 is not supported for this draft "
                              "architecture.");
  }
  if (algorithm != "NEXTN" && algorithm != "EAGLE") return;
  if (gemma4) {
    launch.info(kSpecGemma4, fmt::format("Detected Gemma4AssistantForCausalLM draft; promoting "
                                         "--speculative-algorithm {} to FROZEN_KV_MTP.",
                                         algorithm));
  }
  launch.declare(kSpecAlias, "speculative_algorithm",
                 text_value(gemma4 ? "FROZEN_KV_MTP" : "EAGLE"));
}

void cpu_overlap(Launch& launch) {
  if (!launch.device_is("cpu") || launch.flag("disable_overlap_schedule")) return;
  launch.declare(kSpecCpuOverlap, "disable_overlap_schedule", boolean_value(true));
  launch.warn(kSpecCpuOverlap,
              "Overlap schedule is not implemented for speculative decoding on CPU.");
}

// --- EAGLE and standalone ------------------------------------------------------------------------

void draft_path(Launch& launch) {
  const std::string& name = launch.model().architecture();
  if (!launch.profile().in_group("draft_is_target", name)) return;
  if (launch.unset("speculative_draft_model_path")) {
    launch.declare(kSpecDraftPath, "speculative_draft_model_path",
                   text_value(launch.input().model_path));
    return;
  }
  if (one_of(name, {"MistralLarge3ForCausalLM", "PixtralForConditionalGeneration"})) return;
  launch.warn(kSpecDraftPath,
              "DeepSeek MTP does not require setting speculative_draft_model_path.");
}

struct Counts {
  std::int64_t steps;
  std::int64_t topk;
  std::int64_t tokens;
};

Counts default_counts(const Launch& launch) {
  constexpr Counts kTree = {5, 4, 8};
  constexpr Counts kChain = {3, 1, 4};
  const bool tree = one_of(launch.model().architecture(),
                           {"LlamaForCausalLM", "Grok1ForCausalLM", "Grok1VForCausalLM"});
  return tree && launch.text("speculative_algorithm") != "STANDALONE" ? kTree : kChain;
}

void fill_counts(Launch& launch) {
  if (!launch.unset("speculative_num_steps") || launch.flag("speculative_adaptive")) return;
  if (!launch.unset("speculative_eagle_topk") || !launch.unset("speculative_num_draft_tokens")) {
    return launch.assertion_error(kSpecCounts,
                                  "without --speculative-num-steps neither "
                                  "--speculative-eagle-topk nor --speculative-num-draft-tokens may "
                                  "be given");
  }
  const Counts counts = default_counts(launch);
  launch.declare(kSpecCounts, {{"speculative_num_steps", integer_value(counts.steps)},
                               {"speculative_eagle_topk", integer_value(counts.topk)},
                               {"speculative_num_draft_tokens", integer_value(counts.tokens)}});
}

void check_topk(Launch& launch) {
  if (launch.prefill_backend() != "trtllm_mha" && launch.decode_backend() != "trtllm_mha") return;
  if (launch.integer("speculative_eagle_topk").value_or(1) <= 1) return;
  launch.value_error(kSpecTopkTrtllm,
                     "trtllm_mha backend only supports topk = 1 for speculative decoding.");
}

void rejection_sampling(Launch& launch) {
  const std::string algorithm = launch.text("speculative_algorithm");
  const auto topk = launch.integer("speculative_eagle_topk");
  if (launch.platform().hip() && !launch.flag("speculative_use_rejection_sampling") &&
      algorithm == "EAGLE" && launch.unset("speculative_token_map") && topk == 1 &&
      !launch.flag("enable_deterministic_inference")) {
    launch.declare(kSpecRejection, "speculative_use_rejection_sampling", boolean_value(true));
    launch.info(kSpecRejection,
                "ROCm needs rejection sampling for EAGLE spec-decode to sample at all; enabling "
                "speculative_use_rejection_sampling by default.");
  }
  if (!launch.flag("speculative_use_rejection_sampling")) return;
  if (!one_of(algorithm, {"EAGLE", "EAGLE3"})) {
    return launch.refuse("resolve", "NotImplementedError", kSpecRejection,
                         fmt::format("--speculative-use-rejection-sampling is only supported for "
                                     "EAGLE / EAGLE3 / NEXTN, not speculative_algorithm={}.",
                                     algorithm));
  }
  if (topk != 1) {
    return launch.value_error(kSpecRejection,
                              "--speculative-use-rejection-sampling requires "
                              "--speculative-eagle-topk=1.");
  }
  launch.info(kSpecRejection,
              "Rejection sampling is enabled for speculative decoding "
              "(speculative_use_rejection_sampling=True).");
}

void chain_tokens(Launch& launch) {
  const std::int64_t wanted = launch.integer("speculative_num_steps").value_or(0) + 1;
  if (launch.integer("speculative_eagle_topk") != 1 ||
      launch.integer("speculative_num_draft_tokens") == wanted) {
    return;
  }
  launch.warn(kSpecChainTokens,
              "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when "
              "speculative_eagle_topk == 1");
  launch.declare(kSpecChainTokens, "speculative_num_draft_tokens", integer_value(wanted));
}

void check_page_tree(Launch& launch) {
  const std::string backend = launch.text("attention_backend");
  if (launch.integer("speculative_eagle_topk").value_or(1) <= 1 ||
      launch.integer("page_size").value_or(1) <= 1 ||
      one_of(backend, {"flashinfer", "fa3", "triton"})) {
    return;
  }
  launch.value_error(kSpecPageTree,
                     fmt::format("speculative_eagle_topk > 1 with page_size > 1 is only supported "
                                 "on ('flashinfer', 'fa3', 'triton'); got attention_backend={}. "
                                 "Use page_size == 1 or one of those backends.",
                                 python_repr(backend)));
}

void eagle_family(Launch& launch) {
  if (launch.text("speculative_algorithm") == "STANDALONE" && launch.attention_dp()) {
    return launch.value_error(kSpecStandaloneDp,
                              "Currently standalone speculative decoding does not support dp "
                              "attention.");
  }
  limit_draft_requests(launch);
  cpu_overlap(launch);
  if (launch.flag("disable_overlap_schedule")) {
    launch.warn(kSpecSynchronous,
                "Non-overlap (synchronous) spec v2 is used for eagle/eagle3/standalone speculative "
                "decoding.");
  }
  const bool mixed = one_of(launch.text("speculative_algorithm"), {"EAGLE", "EAGLE3"});
  if (launch.flag("enable_mixed_chunk") && !mixed) {
    launch.declare(kSpecMixedChunk, "enable_mixed_chunk", boolean_value(false));
    launch.warn(kSpecMixedChunk,
                fmt::format("Mixed chunked prefill is disabled: {} speculative decoding does not "
                            "support it.",
                            launch.text("speculative_algorithm")));
  }
  for (const auto& step :
       {draft_path, fill_counts, check_topk, rejection_sampling, chain_tokens, check_page_tree}) {
    step(launch);
    if (launch.refused()) return;
  }
}

// --- n-gram --------------------------------------------------------------------------------------

void ngram_counts(Launch& launch) {
  constexpr std::int64_t kTokens = 12;
  launch.declare(kSpecNgram, "enable_mixed_chunk", boolean_value(false));
  launch.declare(kSpecNgram, "speculative_eagle_topk",
                 integer_value(launch.integer("speculative_ngram_max_bfs_breadth")));
  if (launch.unset("speculative_num_draft_tokens")) {
    launch.declare(kSpecNgram, "speculative_num_draft_tokens", integer_value(kTokens));
    launch.warn(kSpecNgram,
                "speculative_num_draft_tokens is set to 12 by default for ngram speculative "
                "decoding. You can override this by explicitly setting "
                "--speculative-num-draft-tokens.");
  }
  if (!launch.unset("speculative_num_steps")) return;
  const std::int64_t topk =
      std::max<std::int64_t>(1, launch.integer("speculative_eagle_topk").value_or(1));
  launch.declare(kSpecNgram, "speculative_num_steps",
                 integer_value(launch.integer("speculative_num_draft_tokens").value_or(0) / topk));
}

void ngram(Launch& launch) {
  cpu_overlap(launch);
  limit_draft_requests(launch);
  ngram_counts(launch);
  launch.warn(kSpecNgram,
              "The mixed chunked prefill are disabled because of using ngram speculative "
              "decoding.");
  const std::int64_t topk = launch.integer("speculative_eagle_topk").value_or(1);
  const std::int64_t page = launch.integer("page_size").value_or(1);
  if (topk > 1 && page > 1 && launch.text("attention_backend") != "flashinfer") {
    return launch.value_error(
        kSpecNgramPages,
        fmt::format(
            "speculative_eagle_topk({}) > 1 with page_size({}) > 1 is unstable and produces "
            "incorrect results for paged attention backends. This combination is only "
            "supported for the 'flashinfer' backend.",
            topk, page));
  }
  if (launch.attention_dp()) {
    launch.value_error(kSpecNgramDp,
                       "Currently ngram speculative decoding does not support dp attention.");
  }
}

void frozen_kv_mtp(Launch& launch) {
  limit_draft_requests(launch);
  if (!launch.flag("enable_mixed_chunk")) return;
  launch.declare(kSpecMixedChunk, "enable_mixed_chunk", boolean_value(false));
  launch.warn(kSpecMixedChunk,
              "Mixed chunked prefill is disabled because of using Frozen-KV MTP speculative "
              "decoding.");
}

void uno(Launch& launch) {
  std::string problem;
  if (!launch.device_is("cuda")) {
    problem = "UNO only supports CUDA.";
  } else if (!launch.unset("speculative_draft_model_path")) {
    problem = "UNO reuses the target model and does not accept --speculative-draft-model-path.";
  } else if (launch.unset("uno_lora_path")) {
    problem = "UNO requires --uno-lora-path.";
  } else if (launch.integer("speculative_num_draft_tokens").value_or(0) < 1) {
    problem =
        "UNO requires --speculative-num-draft-tokens to be a positive integer denoting the "
        "linear width or tree verify width Q.";
  } else if (launch.size("tp_size") != 1 || launch.size("pp_size") != 1) {
    problem = "UNO requires TP=PP=1.";
  } else if (launch.prefill_backend() != "fa3" || launch.decode_backend() != "fa3") {
    problem = fmt::format(
        "UNO requires FA3 for both prefill and decode attention; got prefill={}, "
        "decode={}.",
        python_repr(launch.prefill_backend()), python_repr(launch.decode_backend()));
  }
  if (!problem.empty()) launch.value_error(kSpecUno, problem);
}

struct Algorithm {
  std::string_view name;
  void (*handle)(Launch&);
};
constexpr std::array kAlgorithms = {
    Algorithm{"DFLASH", dflash},
    Algorithm{"UNO", uno},
    Algorithm{"DSPARK", dspark},
    Algorithm{"EAGLE", eagle_family},
    Algorithm{"EAGLE3", eagle_family},
    Algorithm{"FROZEN_KV_MTP", frozen_kv_mtp},
    Algorithm{"STANDALONE", eagle_family},
    Algorithm{"NGRAM", ngram},
    Algorithm{"NONE", nullptr},
};

}  // namespace

void limit_draft_requests(Launch& launch) {
  if (!launch.unset("max_running_requests")) return;
  constexpr std::int64_t kRequests = 48;
  launch.declare(kSpecRequests, "max_running_requests", integer_value(kRequests));
  launch.warn(kSpecRequests,
              fmt::format("Max running requests is reset to {} for speculative decoding. You can "
                          "override this by explicitly setting --max-running-requests.",
                          kRequests));
}

void speculative_decoding(Launch& launch) {
  if (launch.unset("speculative_moe_runner_backend")) {
    launch.declare(kSpecMoeRunner, "speculative_moe_runner_backend",
                   launch.arguments().value("moe_runner_backend"));
  }
  if (launch.unset("speculative_algorithm")) return;
  launch.declare(kSpecAlias, "speculative_algorithm",
                 text_value(to_upper(launch.text("speculative_algorithm"))));
  resolve_alias(launch);
  if (launch.refused()) return;
  const std::string algorithm = launch.text("speculative_algorithm");
  const auto* const found =
      std::find_if(kAlgorithms.begin(), kAlgorithms.end(),
                   [&](const Algorithm& row) { return row.name == algorithm; });
  if (found == kAlgorithms.end()) {
    return launch.value_error(kSpecUnknown,
                              fmt::format("Unknown speculative algorithm name: {}", algorithm));
  }
  if (found->handle != nullptr) found->handle(launch);
}

}  // namespace kernelpath::engines::sglang
