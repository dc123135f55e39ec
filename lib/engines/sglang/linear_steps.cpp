#include "engines/sglang/rule_ids.h"
#include "engines/sglang/steps.h"

#include <fmt/format.h>

#include <algorithm>

// Source: arg_groups/mamba_hook.py, arg_groups/attention_hook.py (handle_linear_attn_backend),
// arg_groups/model_hook.py (handle_mamba_radix_cache), arg_groups/overrides.py.
namespace kernelpath::engines::sglang {
namespace {

constexpr std::int64_t kFlaChunk = 64;

bool keeps_states(const Launch& launch) {
  const ModelFacts& model = launch.model();
  if (model.is("GraniteMoeHybridForCausalLM")) return model.linear_kind == LinearKind::kMamba2;
  return launch.profile().in_group("mamba_radix_cache", model.architecture());
}

bool supports_extra_buffer(const Launch& launch) {
  return launch.profile().in_group("mamba_extra_buffer", launch.model().architecture()) &&
         launch.text("linear_attn_backend") == "triton";
}

void choose_strategy(Launch& launch) {
  if (!keeps_states(launch) || launch.flag("disable_radix_cache")) return;
  Declaration fields = {{"uses_mamba_radix_cache", boolean_value(true)}};
  if (launch.text("mamba_radix_cache_strategy") == "auto") {
    const bool overlap = !launch.flag("disable_overlap_schedule");
    const bool paging = launch.integer("page_size").value_or(1) > 1;
    if ((overlap || paging) && supports_extra_buffer(launch)) {
      fields.emplace_back("mamba_radix_cache_strategy", text_value("extra_buffer"));
    } else {
      fields.emplace_back("mamba_radix_cache_strategy", text_value("no_buffer"));
      fields.emplace_back("disable_overlap_schedule", boolean_value(true));
    }
  }
  launch.declare(kMambaRadixCache, std::move(fields));
}

void check_chunk(Launch& launch) {
  const auto page = launch.integer("page_size");
  if (!page) return;
  const std::int64_t interval = launch.integer("mamba_track_interval").value_or(1);
  if (interval % *page != 0) {
    return launch.assertion_error(
        kMambaInterval, fmt::format("mamba_track_interval ({}) must be a multiple of page_size "
                                    "({}).",
                                    interval, *page));
  }
  const std::int64_t chunk = launch.model().mamba_chunk_size.value_or(kFlaChunk);
  const std::int64_t smaller = std::max<std::int64_t>(1, std::min(chunk, *page));
  if (std::max(chunk, *page) % smaller != 0) {
    return launch.assertion_error(
        kMambaChunk,
        fmt::format(
            "For SSM models, either chunk_size or page_size must be divisible by the other, "
            "got chunk_size={}, page_size={}",
            chunk, *page));
  }
  const std::int64_t prefill = launch.integer("chunked_prefill_size").value_or(0);
  if (prefill > 0 && prefill < std::max(chunk, *page)) {
    launch.warn(kMambaSmallChunk,
                fmt::format("Mamba radix extra-buffer is enabled with chunked_prefill_size={} "
                            "smaller than mamba_cache_chunk_size={}.",
                            prefill, std::max(chunk, *page)));
  }
}

void check_extra_buffer(Launch& launch) {
  if (!supports_extra_buffer(launch)) {
    return launch.assertion_error(kMambaExtraBuffer,
                                  fmt::format("extra_buffer is not supported for {}; use "
                                              "no_buffer.",
                                              launch.model().architecture()));
  }
  if (launch.platform().cpu()) {
    return launch.assertion_error(kMambaExtraBuffer,
                                  "extra_buffer requires platform support for Mamba cache state "
                                  "snapshots.");
  }
  if (launch.text("mamba_radix_cache_strategy") == "extra_buffer_lazy" &&
      launch.text("disaggregation_mode") != "null") {
    return launch.assertion_error(kMambaExtraBuffer,
                                  "extra_buffer_lazy unsupported under PD disaggregation; use "
                                  "--mamba-radix-cache-strategy extra_buffer.");
  }
  const auto drafts = launch.integer("speculative_num_draft_tokens");
  const std::int64_t interval = launch.integer("mamba_track_interval").value_or(1);
  if (drafts && interval < *drafts) {
    return launch.assertion_error(kMambaInterval,
                                  fmt::format("mamba_track_interval ({}) must be at least "
                                              "speculative_num_draft_tokens ({}).",
                                              interval, *drafts));
  }
  check_chunk(launch);
}

void check_no_buffer(Launch& launch) {
  if (launch.integer("page_size").value_or(1) != 1) {
    return launch.assertion_error(kMambaNoBuffer, "no_buffer only supports page_size=1.");
  }
  if (!launch.flag("disable_overlap_schedule")) {
    return launch.assertion_error(kMambaNoBuffer,
                                  "no_buffer do not support overlap schedule. Try to set "
                                  "disable_overlap_schedule=True.");
  }
  if (launch.text("attention_backend") == "trtllm_mha") {
    launch.assertion_error(kMambaNoBuffer,
                           "no_buffer do not support trtllm_mha attention backend.");
  }
}

void check_bf16_state(Launch& launch, std::string_view option, const std::string& kernel) {
  const bool wide = launch.platform().cuda() && launch.platform().major >= 10;
  const std::string dtype = launch.text("mamba_ssm_dtype");
  if (kernel != "flashinfer" || dtype == "bfloat16" || !wide) return;
  launch.value_error(kLinearState,
                     fmt::format("{} flashinfer on SM100+ requires --mamba-ssm-dtype bfloat16, got "
                                 "{}",
                                 option, python_repr(dtype)));
}

std::string decode_kernel(Launch& launch) {
  if (launch.unset("linear_attn_decode_backend") &&
      launch.text("linear_attn_backend") != "helion" && launch.platform().sm100() &&
      launch.text("mamba_ssm_dtype") == "bfloat16") {
    launch.declare(kLinearDecode, "linear_attn_decode_backend", text_value("flashinfer"));
    launch.info(kLinearDecode,
                "SM100+ detected with mamba-ssm-dtype=bfloat16, defaulting "
                "--linear-attn-decode-backend to flashinfer.");
  }
  const std::string own = launch.text("linear_attn_decode_backend");
  std::string kernel = own.empty() ? launch.text("linear_attn_backend") : own;
  if (kernel != "flashkda") return kernel;
  if (own == "flashkda") {
    launch.value_error(kLinearFlashkda,
                       "--linear-attn-decode-backend flashkda is not supported: FlashKDA is "
                       "prefill-only. Use --linear-attn-prefill-backend flashkda (decode stays on "
                       "triton).");
    return kernel;
  }
  launch.declare(kLinearFlashkda, "linear_attn_decode_backend", text_value("triton"));
  launch.info(kLinearFlashkda,
              "FlashKDA is prefill-only; using triton for KDA decode (FlashKDA stays on prefill).");
  return "triton";
}

void check_replay(Launch& launch, const std::string& decode) {
  if (!launch.flag("enable_linear_replayssm")) return;
  if (decode != "triton" && decode != "helion") {
    return launch.value_error(
        kLinearReplay, fmt::format("--enable-linear-replayssm requires Triton, or Helion for "
                                   "KDA, as the linear-attn decode backend; got "
                                   "--linear-attn-decode-backend='{}'.",
                                   decode));
  }
  if (launch.extra_buffer()) {
    return launch.value_error(
        kLinearReplay,
        fmt::format(
            "--enable-linear-replayssm requires --mamba-radix-cache-strategy no_buffer (the "
            "default); the extra_buffer ping-pong donation path is not yet supported. Got "
            "--mamba-radix-cache-strategy='{}'.",
            launch.text("mamba_radix_cache_strategy")));
  }
  if (launch.text("disaggregation_mode") != "null") {
    launch.value_error(kLinearReplay,
                       "--enable-linear-replayssm is not supported under PD disaggregation yet.");
  }
}

}  // namespace

void mamba_radix_cache(Launch& launch) {
  choose_strategy(launch);
  if (!launch.flag("uses_mamba_radix_cache")) {
    if (!launch.extra_buffer()) return;
    return launch.value_error(
        kMambaNoState,
        fmt::format("--mamba-radix-cache-strategy {} needs mamba state, got "
                    "{}.",
                    launch.text("mamba_radix_cache_strategy"), launch.model().architecture()));
  }
  if (launch.extra_buffer()) {
    check_extra_buffer(launch);
  } else {
    check_no_buffer(launch);
  }
}

void mamba_backend(Launch& launch) {
  if (launch.flag("enable_mamba_cache_stochastic_rounding")) {
    const std::string dtype = launch.text("mamba_ssm_dtype");
    if (dtype != "float16") {
      return launch.value_error(kMambaRounding,
                                fmt::format("Stochastic rounding for the Mamba SSM cache requires "
                                            "--mamba-ssm-dtype float16, got {}.",
                                            python_repr(dtype)));
    }
    if (!launch.platform().cuda()) {
      return launch.value_error(kMambaRounding,
                                "Stochastic rounding for the Mamba SSM cache is only supported on "
                                "NVIDIA CUDA platforms.");
    }
    if (launch.text("mamba_backend") == "triton" && !launch.platform().sm100()) {
      return launch.value_error(kMambaRounding,
                                "Stochastic rounding for the Mamba SSM cache with --mamba-backend "
                                "triton requires SM100 with CUDA >= 12.8.");
    }
  }
  if (launch.text("mamba_backend") != "flashinfer") return;
  if (!launch.platform().has_flashinfer()) {
    return launch.value_error(kMambaFlashinfer,
                              "FlashInfer mamba module not available, please check the FlashInfer "
                              "installation.");
  }
  launch.info(kMambaFlashinfer, "Successfully imported FlashInfer mamba module");
}

void linear_attention_backend(Launch& launch) {
  const std::string decode = decode_kernel(launch);
  if (launch.refused()) return;
  check_bf16_state(launch, "--linear-attn-decode-backend", decode);
  if (launch.refused()) return;
  std::string verify = launch.text("linear_attn_verify_backend");
  if (verify.empty() && decode == "flashinfer") verify = "flashinfer";
  check_bf16_state(launch, "--linear-attn-verify-backend", verify);
  if (!launch.refused()) check_replay(launch, decode);
}

}  // namespace kernelpath::engines::sglang
