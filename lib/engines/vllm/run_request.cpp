#include "engines/vllm/run_request.h"

#include "base/text.h"
#include "base/units.h"
#include "engines/vllm/machine.h"

#include <utility>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kSpeculativeOption = "--speculative";

std::string text_or(const Arguments& arguments, std::string_view name, std::string_view otherwise) {
  return arguments.text(name).value_or(std::string(otherwise));
}

// "O2", "2" → 2.
std::int64_t optimization_level(const Arguments& arguments) {
  constexpr std::int64_t kDefault = 2;
  const std::string text = text_or(arguments, "optimization_level", "");
  const auto level = parse_integer(text.starts_with("O") ? text.substr(1) : text);
  return level ? *level : kDefault;
}

void set_cache_flags(const Arguments& arguments, RunFlags& flags) {
  flags.kv_cache_dtype = text_or(arguments, "kv_cache_dtype", "auto");
  flags.skip_layers = arguments.list("kv_cache_dtype_skip_layers");
  flags.block_size = arguments.integer("block_size");
  flags.enable_prefix_caching = arguments.optional_flag("enable_prefix_caching");
  flags.mamba_cache_mode = text_or(arguments, "mamba_cache_mode", "none");
  flags.mamba_block_size = arguments.integer("mamba_block_size");
  flags.mamba_cache_dtype = text_or(arguments, "mamba_cache_dtype", "auto");
  flags.mamba_ssm_cache_dtype = text_or(arguments, "mamba_ssm_cache_dtype", "auto");
  flags.hybrid_manager_off = arguments.optional_flag("disable_hybrid_kv_cache_manager");
  flags.kv_connector = arguments.text("kv_transfer_config.kv_connector").has_value();
}

void set_attention_flags(const Arguments& arguments, RunFlags& flags) {
  flags.attention_backend = arguments.text("attention_backend");
  flags.attention_config_backend = arguments.text("attention_config.backend");
  flags.backend_per_kind = arguments.entries("attention_config.backend_per_kind");
  flags.flash_attn_version = arguments.integer("attention_config.flash_attn_version");
  flags.use_trtllm_attention = arguments.optional_flag("attention_config.use_trtllm_attention");
  flags.use_non_causal = arguments.flag("attention_config.use_non_causal");
  flags.mla_prefill_backend = arguments.text("attention_config.mla_prefill_backend");
}

void set_parallel_flags(const Arguments& arguments, RunFlags& flags) {
  flags.tp = arguments.integer("tensor_parallel_size").value_or(1);
  flags.pp = arguments.integer("pipeline_parallel_size").value_or(1);
  flags.dp = arguments.integer("data_parallel_size").value_or(1);
  flags.dcp = arguments.integer("decode_context_parallel_size").value_or(1);
  flags.pcp = arguments.integer("prefill_context_parallel_size").value_or(1);
  flags.cp_interleave = arguments.integer("cp_kv_cache_interleave_size").value_or(1);
  const auto* of_dcp = arguments.given("dcp_kv_cache_interleave_size");
  if (of_dcp != nullptr && arguments.given("cp_kv_cache_interleave_size") == nullptr) {
    flags.cp_interleave = arguments.integer(of_dcp->name).value_or(1);
  }
}

void set_speculative_flags(const Arguments& arguments, RunFlags& flags) {
  for (const std::string_view name : {"speculative_config.method", "spec_method"}) {
    if (flags.speculative_method.empty()) flags.speculative_method = text_or(arguments, name, "");
  }
  for (const std::string_view name : {"speculative_config.num_speculative_tokens", "spec_tokens"}) {
    if (flags.speculative_tokens == 0) {
      flags.speculative_tokens = arguments.integer(name).value_or(0);
    }
  }
  const auto* method = arguments.given("speculative_config.method");
  SpeculativeFlags& out = flags.speculative;
  out.assumes_tokens = method != nullptr && method->set_by == kSpeculativeOption;
  out.model = draft_model_of(arguments);
  out.backend = arguments.text("speculative_config.attention_backend");
  out.kv_cache_dtype = arguments.text("speculative_config.kv_cache_dtype");
  out.tp = arguments.integer("speculative_config.draft_tensor_parallel_size");
  out.max_model_len = arguments.integer("speculative_config.max_model_len");
  out.unpadded = arguments.flag("speculative_config.disable_padded_drafter_batch");
  out.parallel_drafting = arguments.flag("speculative_config.parallel_drafting");
  out.other_vocabulary = arguments.flag("speculative_config.use_heterogeneous_vocab");
  out.samples = text_or(arguments, "speculative_config.draft_sample_method", "greedy") != "greedy";
  out.dynamic =
      arguments.given("speculative_config.num_speculative_tokens_per_batch_size") != nullptr;
  out.lookup_min = arguments.integer("speculative_config.prompt_lookup_min");
  out.lookup_max = arguments.integer("speculative_config.prompt_lookup_max");
  out.tree_depth = arguments.integer("speculative_config.suffix_decoding_max_tree_depth")
                       .value_or(out.tree_depth);
}

void set_process_flags(const Environment& environment, RunFlags& flags) {
  const std::string* runner = environment.variable("VLLM_USE_V2_MODEL_RUNNER");
  if (runner != nullptr && !runner->empty()) flags.v2_runner = *runner != "0";
  flags.batch_invariant = variable_is_on(environment, "VLLM_BATCH_INVARIANT");
  flags.mla_disabled = variable_is_on(environment, "VLLM_MLA_DISABLE");
  const std::string* chunked =
      environment.variable("VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE");
  flags.chunked_with_hybrid_manager = chunked == nullptr || *chunked == "1";
}

}  // namespace

BatchDefaults batch_defaults(const hardware::Device& device, std::int64_t ranks,
                             const Profile& profile) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30U;
  constexpr hardware::Capability kGb10 = {.major = 12, .minor = 1};
  if (device.platform == hardware::Platform::kCpu) {
    return {.tokens = 2048 * ranks, .sequences = 128 * ranks};
  }
  const std::int64_t memory = device.usable_bytes().value_or(0);
  const bool later = profile.at_least(0, 33);
  if (later && memory >= 160 * kGiB) return {.tokens = 16384, .sequences = 1024};
  const bool small_all_the_same = to_lower(device.id).find("a100") != std::string::npos ||
                                  (later && device.capability == kGb10);
  if (memory >= 70 * kGiB && !small_all_the_same) return {.tokens = 8192, .sequences = 1024};
  return {.tokens = 2048, .sequences = 256};
}

RunFlags flags_of(const Arguments& arguments, const Environment& environment) {
  RunFlags flags;
  flags.model_impl = text_or(arguments, "model_impl", "auto");
  flags.runner = text_or(arguments, "runner", "auto");
  flags.convert = text_or(arguments, "convert", "auto");
  flags.dtype = text_or(arguments, "dtype", "auto");
  flags.max_model_len = arguments.integer("max_model_len");
  flags.cudagraph_mode = arguments.text("compilation_config.cudagraph_mode");
  flags.compilation_mode = arguments.text("compilation_config.mode");
  flags.optimization_level = optimization_level(arguments);
  flags.enforce_eager = arguments.flag("enforce_eager");
  flags.max_num_seqs = arguments.integer("max_num_seqs");
  flags.max_num_batched_tokens = arguments.integer("max_num_batched_tokens");
  flags.throughput_mode = text_or(arguments, "performance_mode", "balanced") == "throughput";
  flags.chunked_prefill = arguments.optional_flag("enable_chunked_prefill");
  const std::string exchange = text_or(arguments, "all2all_backend", "");
  flags.batched_experts = (exchange == "deepep_low_latency" || exchange == "nixl_ep") &&
                          arguments.flag("enable_expert_parallel") &&
                          arguments.integer("data_parallel_size").value_or(1) > 1;
  flags.async_scheduling = arguments.optional_flag("async_scheduling");
  set_cache_flags(arguments, flags);
  set_attention_flags(arguments, flags);
  set_parallel_flags(arguments, flags);
  set_speculative_flags(arguments, flags);
  set_process_flags(environment, flags);
  return flags;
}

std::optional<std::string> draft_model_of(const Arguments& arguments) {
  for (const std::string_view name : {"speculative_config.model", "spec_model"}) {
    if (auto model = arguments.text(name)) return model;
  }
  return std::nullopt;
}

std::vector<RegisteredBackend> registered_backends(const Arguments& arguments) {
  std::vector<RegisteredBackend> out;
  for (const auto& [name, value] : arguments.entries("register_backend")) {
    const std::size_t colon = value.find(':');
    out.push_back({.name = to_upper(name),
                   .path = value.substr(0, colon),
                   .inherits = colon == std::string::npos ? std::string()
                                                          : to_upper(value.substr(colon + 1))});
  }
  return out;
}

std::vector<RegisteredModel> registered_models(const Arguments& arguments,
                                               const Environment& environment,
                                               const ModelRegistry& registry) {
  std::vector<RegisteredModel> out;
  const auto add = [&](std::string architecture, std::string module, std::string name) {
    // A class in place of a known one is taken to be of its kind.
    const ArchitectureRow* known = registry.find(architecture);
    out.push_back({.architecture = std::move(architecture),
                   .module = std::move(module),
                   .class_name = std::move(name),
                   .info = known != nullptr ? known->info : ModelInfo{}});
  };
  for (const Environment::ExternalModel& model : environment.external_models) {
    if (!model.model_class.empty()) add(model.architecture, model.module, model.model_class);
  }
  for (const auto& [name, value] : arguments.entries("register_model")) {
    const std::size_t colon = value.find(':');
    const std::size_t dot = colon == std::string::npos ? value.rfind('.') : colon;
    if (dot == std::string::npos) {
      add(name, "", value);
    } else {
      add(name, value.substr(0, dot), value.substr(dot + 1));
    }
  }
  return out;
}

}  // namespace kernelpath::engines::vllm
