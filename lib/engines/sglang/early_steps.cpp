#include "base/text.h"
#include "engines/sglang/rule_ids.h"
#include "engines/sglang/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

// Source: arg_groups/{parallel,mega_moe,serving,pd_disaggregation,kv_cache,platform}_hook.py.
namespace kernelpath::engines::sglang {
namespace {

bool is_choice(const ArgumentRow& row, const json::Value& value) {
  if (row.choices.empty() || value.is_null()) return true;
  const std::string text = value.is_string() ? value.as_string() : value.brief();
  return contains(row.choices, text);
}

void refuse_choice(Launch& launch, const ArgumentRow& row, const json::Value& value) {
  std::string choices = python_list(row.choices);
  choices = choices.substr(1, choices.size() - 2);
  launch.refuse("cli", "ArgumentError", kCliChoice,
                fmt::format("sglang serve: error: argument {}: invalid choice: '{}' (choose from "
                            "{})",
                            join(row.flags, "/"),
                            value.is_string() ? value.as_string() : value.brief(), choices));
}

void refuse_removed(Launch& launch, const ArgumentRow& row) {
  launch.refuse("cli", "ArgumentError", kCliRemoved,
                fmt::format("sglang serve: error: argument {}: tc_piecewise was removed; select "
                            "breakable, full, or disabled",
                            join(row.flags, "/")));
}

constexpr std::array<std::string_view, 4> kBackendFields = {
    "attention_backend", "decode_attention_backend", "prefill_attention_backend",
    "speculative_draft_attention_backend"};

std::string current_name(std::string_view backend) {
  if (backend == "compressed") return "dsv4";
  return backend == "tokenspeed_mla" ? "cutedsl_mla" : "";
}

std::string option(std::string_view field) {
  std::string name(field);
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

void rename_tokenspeed(Launch& launch, Declaration& renamed) {
  if (launch.text("kv_cache_dtype") != "fp8_e4m3") {
    launch.warn(kDeprecatedBackend,
                "tokenspeed_mla required FP8 KV; setting --kv-cache-dtype=fp8_e4m3.");
    renamed.emplace_back("kv_cache_dtype", text_value("fp8_e4m3"));
  }
  if (!launch.unset("speculative_algorithm") &&
      launch.text("speculative_attention_mode") == "prefill") {
    renamed.emplace_back("speculative_attention_mode", text_value("decode"));
  }
}

void decode_server(Launch& launch) {
  if (launch.flag("disaggregation_decode_enable_radix_cache")) {
    launch.declare(kPdDecodeCache, "disable_radix_cache", boolean_value(false));
    launch.warn(kPdDecodeCache, "EXPERIMENTAL: Radix cache is enabled for decode server");
    return;
  }
  launch.declare(kPdDecodeCache, "disable_radix_cache", boolean_value(true));
  launch.warn(kPdDecodeCache, "Radix cache is disabled for decode server");
}

bool one_of(const std::string& text, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

ModelOptions model_options(const Launch& launch) {
  ModelOptions options{.dtype = launch.text("dtype"),
                       .quantization = launch.text("quantization"),
                       .context_length = launch.integer("context_length")};
  if (!launch.unset("enable_multimodal")) {
    options.enable_multimodal = launch.flag("enable_multimodal");
  }
  options.is_embedding = launch.flag("is_embedding");
  options.language_model_only = launch.flag("language_model_only");
  options.disable_hybrid_swa_memory = launch.flag("disable_hybrid_swa_memory");
  options.transformers_implementation = launch.text("model_impl") == "transformers";
  options.allow_longer_context = launch.variable("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN");
  options.speculative_algorithm = launch.text("speculative_algorithm");
  return options;
}

}  // namespace

void check_command_line(Launch& launch) {
  for (const auto& [name, value] : launch.arguments().all_given()) {
    const ArgumentRow* row = launch.profile().find_argument(name);
    if (row == nullptr || value.is_array()) continue;
    const bool graph = name == "cuda_graph_backend_prefill" || name == "cuda_graph_backend_decode";
    if (graph && value.is_string() && value.as_string() == "tc_piecewise") {
      return refuse_removed(launch, *row);
    }
    if (!is_choice(*row, value)) return refuse_choice(launch, *row, value);
  }
}

void deprecated_dp_attention(Launch& launch) {
  if (!launch.flag("enable_dp_attention")) return;
  if (launch.size("attn_dp_size") == 1) {
    launch.declare(kDpAttentionAlias, {{"attn_dp_size", integer_value(launch.size("dp_size"))},
                                       {"dp_size", integer_value(1)}});
  }
  launch.declare(kDpAttentionAlias, "enable_dp_attention", boolean_value(false));
}

void mega_moe(Launch& launch) {
  if (launch.text("moe_runner_backend") == "megamoe") {
    launch.declare(kMegaMoeAlias, {{"moe_runner_backend", text_value("auto")},
                                   {"moe_a2a_backend", text_value("megamoe")}});
  }
  if (launch.text("moe_a2a_backend") != "megamoe") return;
  if (launch.flag("enable_two_batch_overlap") || launch.flag("enable_single_batch_overlap")) {
    return launch.value_error(
        kMegaMoeOverlap,
        "--moe-a2a-backend megamoe has no two-batch / single-batch overlap decomposition; disable "
        "--enable-two-batch-overlap and --enable-single-batch-overlap.");
  }
  const Platform& platform = launch.platform();
  if (platform.sm90() || platform.sm100() || platform.hip()) return;
  launch.value_error(kMegaMoeDevice,
                     "--moe-a2a-backend megamoe needs a CUDA SM90 GPU (block-FP8 experts) or an "
                     "SM100-class GPU (MXFP4 / NVFP4 experts); it runs DeepGEMM kernels over CUDA "
                     "symmetric memory.");
}

void deprecated_args(Launch& launch) {
  if (launch.flag("enable_flashinfer_allreduce_fusion") &&
      launch.unset("flashinfer_allreduce_fusion_backend")) {
    launch.warn(kDeprecatedAllReduce,
                "--enable-flashinfer-allreduce-fusion is deprecated. Please use "
                "--flashinfer-allreduce-fusion-backend=auto instead.");
    launch.declare(kDeprecatedAllReduce, "flashinfer_allreduce_fusion_backend", text_value("auto"));
  }
  Declaration renamed;
  for (const std::string_view field : kBackendFields) {
    const json::Value* given = launch.arguments().given(field);
    if (given == nullptr || !given->is_string()) continue;
    std::string name = current_name(given->as_string());
    if (name.empty()) continue;
    launch.warn(kDeprecatedBackend, fmt::format("{}={} is deprecated; use '{}' instead.",
                                                option(field), given->as_string(), name));
    // CuTe DSL only decodes; its prefill side was always TensorRT-LLM's.
    if (field == "prefill_attention_backend" && name == "cutedsl_mla") name = "trtllm_mla";
    renamed.emplace_back(std::string(field), text_value(name));
  }
  if (launch.text("attention_backend") == "tokenspeed_mla" ||
      launch.text("decode_attention_backend") == "tokenspeed_mla") {
    rename_tokenspeed(launch, renamed);
  }
  if (!renamed.empty()) launch.declare(kDeprecatedBackend, std::move(renamed));
}

void missing_default_values(Launch& launch) {
  if (launch.unset("device")) {
    launch.declare(kDeviceDefault, "device", text_value(launch.platform().cpu() ? "cpu" : "cuda"));
  }
  if (launch.unset("speculative_draft_model_quantization")) {
    launch.declare(kDraftQuantization, "speculative_draft_model_quantization",
                   launch.arguments().value("quantization"));
  }
  if (launch.text("quantization") == "unquant") {
    launch.declare(kQuantOptOut, "quantization", json::Value::null());
    launch.opt_out_of_quantization();
  }
  if (launch.text("speculative_draft_model_quantization") == "unquant") {
    launch.declare(kDraftQuantization, "speculative_draft_model_quantization", json::Value::null());
  }
}

void pd_disaggregation(Launch& launch) {
  const std::string mode = launch.text("disaggregation_mode");
  const std::string transfer = launch.text("disaggregation_transfer_backend");
  if (mode == "decode" && launch.size("dcp_size") > 1 &&
      !one_of(transfer, {"mooncake", "nixl", "mori", "ascend", "fake"})) {
    return launch.value_error(
        kPdTransfer,
        fmt::format("PD decode DCP requires --disaggregation-transfer-backend mooncake, nixl, "
                    "mori, ascend, or fake for synthetic benchmarking, got '{}'.",
                    transfer));
  }
  if (mode == "decode") return decode_server(launch);
  if (mode == "prefill" && transfer == "fake") {
    launch.assertion_error(kPdTransfer,
                           "Prefill server does not support 'fake' as the transfer backend");
  }
}

void prefill_only_arguments(Launch& launch) {
  if (!launch.flag("prefill_only_disable_kv_cache")) return;
  const std::string kv = launch.text("kv_cache_dtype");
  std::string problem;
  if (!launch.flag("is_embedding")) {
    problem =
        "currently requires --is-embedding. Other prefill-only workloads may be supported in "
        "a future change once their attention paths stop reading or writing the paged KV "
        "cache.";
  } else if (kv == "nvfp4" || kv == "fp4_mx_block16") {
    problem =
        "does not currently support --kv-cache-dtype=nvfp4 or "
        "--kv-cache-dtype=fp4_mx_block16 because the FP4 pool uses a separate allocation "
        "path.";
  } else if (kv == "mxfp8") {
    problem =
        "does not currently support --kv-cache-dtype=mxfp8 because the MXFP8 pool stores "
        "separate scale-factor buffers.";
  } else if (launch.integer("chunked_prefill_size") != -1) {
    problem =
        "requires --chunked-prefill-size=-1 so the FA backend takes the fa_skip_kv_cache "
        "path; otherwise the pool would be touched between prefill chunks.";
  } else if (!launch.flag("disable_radix_cache")) {
    problem =
        "requires --disable-radix-cache because the radix cache indexes KV pool slots that "
        "no longer hold real data.";
  } else if (launch.size("attn_cp_size") > 1) {
    problem =
        "is incompatible with --attn-cp-size > 1: the context-parallel attention path "
        "writes K/V to the pool via set_kv_buffer, which the no-op pool intentionally "
        "rejects.";
  } else if (launch.flag("enable_prefill_cp")) {
    problem =
        "is incompatible with --enable-prefill-cp: the prefill-CP path stages K/V through "
        "the paged cache, which the no-op pool does not support.";
  } else if (launch.flag("enable_hisparse")) {
    problem =
        "is incompatible with --enable-hisparse: HiSparse uses a dedicated pool family that "
        "is not the no-op MHA pool.";
  }
  if (problem.empty()) return;
  launch.value_error(kPrefillOnlyArguments, "--prefill-only-disable-kv-cache " + problem);
}

void decode_context_parallelism(Launch& launch) {
  const std::int64_t dcp = launch.size("dcp_size");
  if (dcp < 1) {
    return launch.value_error(kDcpSize, fmt::format("Decode context parallel size (--dcp-size / "
                                                    "--decode-context-parallel-size) must be >= "
                                                    "1, but got dcp_size={}.",
                                                    dcp));
  }
  if (launch.unset("dcp_comm_backend")) {
    std::string backend = "ag_rs";
    if (dcp > 1) {
      const std::int64_t nodes = std::max<std::int64_t>(
          1, launch.size("nnodes") / std::max<std::int64_t>(1, launch.size("pp_size")));
      const bool one_node = launch.size("tp_size") / nodes % dcp == 0;
      const bool device = launch.platform().cuda() || launch.platform().hip();
      backend = launch.platform().sm100() && one_node ? "fi_a2a" : device ? "a2a" : "ag_rs";
      launch.info(kDcpBackend, fmt::format("DCP (dcp_size={}) selects communication backend '{}'.",
                                           dcp, backend));
    }
    launch.declare(kDcpBackend, "dcp_comm_backend", text_value(backend));
  }
  const std::string backend = launch.text("dcp_comm_backend");
  if (dcp > 1 && launch.flag("enable_prefill_cp")) {
    return launch.value_error(kDcpSize, "--dcp-size > 1 does not support --enable-prefill-cp.");
  }
  if (backend != "ag_rs" && dcp <= 1) {
    launch.value_error(
        kDcpBackend,
        fmt::format("--dcp-comm-backend {} only affects the decode context-parallel attention "
                    "reduction and therefore requires --dcp-size / "
                    "--decode-context-parallel-size > 1, but got dcp_size={}.",
                    backend, dcp));
  }
}

void read_model_config(Launch& launch) {
  ModelReading reading =
      read_model(launch.profile(), launch.platform(), launch.input().model.config,
                 launch.input().model.quant_config, model_options(launch));
  for (ModelMessage& message : reading.messages) {
    if (message.warning) {
      launch.warn(message.rule, std::move(message.text));
    } else {
      launch.info(message.rule, std::move(message.text));
    }
  }
  if (reading.refusal) {
    launch.refuse("resolve", reading.refusal->type, reading.refusal->rule, reading.refusal->text);
  }
  launch.set_model(std::move(reading.facts));
}

void cpu_backends(Launch& launch) {
  if (!launch.device_is("cpu")) return;
  if (launch.unset("attention_backend")) {
    launch.declare(kCpuBackends, "attention_backend", text_value("intel_amx"));
  }
  launch.fill(kCpuBackends, "sampling_backend", text_value("pytorch"));
}

}  // namespace kernelpath::engines::sglang
