#include "base/checked.h"
#include "base/text.h"
#include "engines/vllm/run_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kValidation = "ValidationError";
constexpr std::int64_t kBatchedExpertTokens = 256;
constexpr std::int64_t kDefaultMaxModelLen = 2048;

// --- data type -----------------------------------------------------------------------------------

// Models that lose too much precision in float16; `until` is the last minor release with the rule.
struct Float16Fault {
  std::string_view model_type;
  int until = 1000;
};
constexpr auto kNoFloat16 = std::to_array<Float16Fault>(
    {{"gemma2"}, {"gemma3"}, {"gemma3_text"}, {"plamo2", 32}, {"glm4"}});

bool refuses_float16(const RunState& state, std::string_view model_type) {
  return std::ranges::any_of(kNoFloat16, [&](const Float16Fault& fault) {
    return fault.model_type == model_type && state.profile().release.minor <= fault.until;
  });
}

// What the device computes in, best first.
std::vector<std::string> device_dtypes(const Machine& machine) {
  if (machine.platform != hardware::Platform::kCuda) return {"bfloat16", "float16", "float32"};
  if (machine.capability >= hardware::Capability{.major = 8, .minor = 0}) {
    return {"bfloat16", "float16", "float32"};
  }
  return {"float16", "float32"};
}

std::string automatic_dtype(RunState& state, const std::string& stated, std::string_view type) {
  std::vector<std::string> supported = device_dtypes(state.question.machine);
  if (refuses_float16(state, type)) std::erase(supported, "float16");
  const bool half = std::ranges::find(supported, "float16") != supported.end();
  std::string preferred =
      state.out.model_class.runner == "pooling" && half ? "float16" : supported.front();
  if (stated == "float32") {
    state.note("VLLM-DTYPE-DOWNCAST", "dtype",
               fmt::format("the checkpoint is float32; it runs in {}", preferred));
    return preferred;
  }
  if (std::ranges::find(supported, stated) != supported.end()) return stated;
  state.note("VLLM-DTYPE-DEVICE", "dtype",
             fmt::format("{} is not for this device or model; it runs in {}", stated, preferred),
             Severity::kWarn);
  return preferred;
}

bool resolve_dtype(RunState& state) {
  const std::string type = state.question.model.model_type.value_or("");
  const std::string stated = state.question.model.dtype.value_or("float32");
  const std::string asked = to_lower(state.flags().dtype);
  std::string& dtype = state.run().dtype;
  if (asked == "auto") {
    dtype = automatic_dtype(state, stated, type);
    return true;
  }
  dtype = asked == "half" ? "float16" : asked == "float" ? "float32" : asked;
  if (dtype != "float16" && dtype != "bfloat16" && dtype != "float32") {
    return state.raise(
        config_error(kValidation, "VLLM-DTYPE-UNKNOWN", fmt::format("Unknown dtype: '{}'", asked)));
  }
  if (dtype == "float16" && refuses_float16(state, type)) {
    return state.raise(
        config_error(kValidation, "VLLM-DTYPE-FLOAT16",
                     fmt::format("The model type '{}' does not support float16. Reason: Numerical "
                                 "instability. Please use bfloat16 or float32 instead.",
                                 type)));
  }
  return true;
}

// --- length --------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 9> kLengthNames = {"max_position_embeddings",
                                                          "n_positions",
                                                          "max_seq_len",
                                                          "seq_length",
                                                          "model_max_length",
                                                          "max_target_positions",
                                                          "max_sequence_length",
                                                          "max_seq_length",
                                                          "seq_len"};

// The shortest that the configuration states; nothing if it states none.
std::optional<std::int64_t> stated_length(const config::ModelConfig& model) {
  if (const auto length = text_integer(model, "model_max_length")) return length;
  std::optional<std::int64_t> least = model.max_position_embeddings.value;
  for (const std::string_view name : kLengthNames) {
    const auto length = text_integer(model, name);
    if (length && (!least || *length < *least)) least = length;
  }
  return least;
}

// RoPE scaling makes a model longer than its training, except where the stated length counts it.
std::int64_t scaled_length(const config::ModelConfig& model, const Profile& profile,
                           std::int64_t length) {
  const config::Rope& rope = model.rope;
  const std::string type = rope.type.value_or("default");
  if (model.model_type.value_or("").find("gemma3") != std::string::npos) return length;
  const bool yarn = type == "yarn" || type == "deepseek_yarn" || type == "deepseek_llama_scaling";
  if (type == "su" || type == "longrope" || type == "llama3") return length;
  if (yarn && profile.at_least(0, 33)) return length;
  if (yarn && type == "yarn" && rope.original_max_position_embeddings) {
    length = *rope.original_max_position_embeddings;
  }
  return static_cast<std::int64_t>(
      std::floor(static_cast<double>(length) * rope.factor.value_or(1.0)));
}

bool resolve_length(RunState& state) {
  const config::ModelConfig& model = state.question.model;
  const std::optional<std::int64_t> asked = state.flags().max_model_len;
  const std::optional<std::int64_t> stated = stated_length(model);
  std::int64_t& length = state.run().max_model_len;
  if (!stated && asked && *asked > 0) {
    length = *asked;
    return true;
  }
  const std::int64_t derived = derived_length(model, state.profile(), kDefaultMaxModelLen);
  if (!asked || *asked == -1) {
    length = model.rope.type.value_or("") == "longrope"
                 ? model.rope.original_max_position_embeddings.value_or(derived)
                 : derived;
    return true;
  }
  length = *asked;
  if (length <= derived) return true;
  return state.raise(config_error(
      kValidation, "VLLM-MAX-LEN",
      fmt::format("User-specified max_model_len ({}) is greater than the derived max_model_len "
                  "({}). To allow overriding this maximum, set the env var "
                  "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1.",
                  length, derived)));
}

// --- cache dtype ---------------------------------------------------------------------------------

// What a modelopt checkpoint says of its cache, in the engine's names.
std::string modelopt_cache_dtype(const config::Quantization& quantization) {
  if (quantization.kv_cache_scheme) {
    const config::KvCacheScheme& scheme = *quantization.kv_cache_scheme;
    const bool floating = scheme.type == "float";
    if (floating && scheme.num_bits == 8 && scheme.dynamic == false) return "fp8_e4m3";
    return floating && scheme.num_bits == 4 ? "nvfp4" : "auto";
  }
  const std::string stated = quantization.kv_cache_dtype.value_or("");
  if (stated == "fp8" || stated == "fp8_e4m3") return "fp8_e4m3";
  return stated == "nvfp4" ? "nvfp4" : "auto";
}

// The method as the engine reads it: stated, or that of modelopt's own file or section.
std::string stated_method(const config::ModelConfig& model) {
  const config::StringField& method = model.quantization.method;
  const bool sibling = method.origin.kind == config::OriginKind::kSibling;
  if (sibling || method.origin.where.ends_with("/quant_method")) return method.value_or("");
  const json::Value* section = model.file.find_non_null("quantization_config");
  const json::Value* inner = section == nullptr ? nullptr : section->find_non_null("quantization");
  const bool stated = inner != nullptr && inner->find_non_null("quant_algo") != nullptr;
  return stated ? method.value_or("") : "";
}

void resolve_cache_dtype(RunState& state) {
  const config::Quantization& quantization = state.question.model.quantization;
  const std::string method = stated_method(state.question.model);
  if (state.flags().kv_cache_dtype != "auto" || !method.starts_with("modelopt")) return;
  state.run().cache_dtype = modelopt_cache_dtype(quantization);
  if (state.run().cache_dtype == "auto") return;
  state.note("VLLM-KV-DTYPE-CHECKPOINT", "kv_cache_dtype",
             fmt::format("the checkpoint states {} for its cache", state.run().cache_dtype));
}

// --- TurboQuant ----------------------------------------------------------------------------------

bool packs_cache(const RunState& state) {
  const std::string& dtype = state.run().cache_dtype;
  return dtype.starts_with("turboquant_") ||
         (state.profile().at_least(0, 33) && dtype == "ultraquant_4bit");
}

// The first and the last two layers of a dense model stay as they are.
std::vector<std::string> with_boundary(const RunState& state, std::vector<std::string> layers) {
  const std::int64_t count = state.view().num_layers;
  const std::int64_t each = std::min<std::int64_t>(2, count / 2);
  const auto by_number = [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  };
  std::set<std::string, decltype(by_number)> numbered(layers.begin(), layers.end(), by_number);
  for (std::int64_t i = 0; i < each; ++i) {
    numbered.insert(std::to_string(i));
    numbered.insert(std::to_string(count - 1 - i));
  }
  std::vector<std::string> out(numbered.begin(), numbered.end());
  if (state.profile().at_least(0, 33)) std::ranges::sort(out);  // as text
  return out;
}

bool keep_boundary_layers(RunState& state) {
  if (!packs_cache(state)) return true;
  if (!state.view().hybrid) {
    state.run().skip_layers = with_boundary(state, state.run().skip_layers);
    state.note("VLLM-TURBOQUANT-SKIP", "kv_cache_dtype_skip_layers",
               "the first and the last two layers keep the model's dtype: " +
                   join(state.run().skip_layers, ", "));
    return true;
  }
  const bool has_attention = std::ranges::any_of(state.question.model.layers, [](const auto& l) {
    return l.kind == config::LayerKind::kFull;
  });
  if (has_attention) return true;
  return state.raise(config_error("NotImplementedError", "VLLM-TURBOQUANT-HYBRID",
                                  "TurboQuant KV cache requires identifiable full-attention "
                                  "layers, but none were found in the hybrid model config."));
}

void force_flash_attn_2(RunState& state) {
  std::optional<std::int64_t>& version = state.run().flash_attn_version;
  if (!packs_cache(state) || (version && *version < 3)) return;
  version = 2;
  state.note("VLLM-TURBOQUANT-FA", "flash_attn_version",
             "TurboQuant does not go with FlashAttention 3 or later: version 2 is set",
             Severity::kWarn);
}

// --- attention configuration ---------------------------------------------------------------------

std::optional<std::string> backend_name(const std::optional<std::string>& written) {
  if (!written || to_lower(*written) == "auto") return std::nullopt;
  return to_upper(*written);
}

bool merge_attention_config(RunState& state) {
  const RunFlags& flags = state.flags();
  std::optional<std::string> backend = backend_name(flags.attention_config_backend);
  if (flags.attention_backend && backend) {
    return state.raise(
        config_error("ValueError", "VLLM-BACKEND-TWICE",
                     "attention_backend and attention_config.backend are mutually exclusive"));
  }
  if (!backend) backend = backend_name(flags.attention_backend);
  if (backend && state.profile().at_least(0, 33) && backend->ends_with("_MSA")) backend.reset();
  state.run().attention_backend = backend;
  return true;
}

// A name that the enum does not have is refused before anything else is read.
bool check_backend_names(RunState& state) {
  const RunFlags& flags = state.flags();
  for (const auto* written : {&flags.attention_config_backend, &flags.attention_backend}) {
    const std::optional<std::string> name = backend_name(*written);
    if (!name || state.profile().find_member(*name) != nullptr) continue;
    const bool registered = std::ranges::any_of(state.question.registered_backends,
                                                [&](const auto& row) { return row.name == *name; });
    if (registered || (state.profile().at_least(0, 33) && name->ends_with("_MSA"))) continue;
    const bool nested = written == &flags.attention_config_backend;
    return state.raise(
        config_error(nested ? kValidation : "ValueError", "VLLM-BACKEND-UNKNOWN",
                     fmt::format("Unknown attention backend: '{}'. Valid options are: <enum names>",
                                 **written)));
  }
  return true;
}

// --- defaults ------------------------------------------------------------------------------------

bool default_prefix_caching(const RunState& state) {
  const ModelView& view = state.view();
  if (view.pooling) {
    if (view.encoder_only || view.encoder_decoder || view.hybrid) return false;
    return view.pooling_type != "MEAN" && view.pooling_type != "CLS" &&
           view.pooling_type != "STEP" && !view.attention_free;
  }
  if (view.hybrid) return state.profile().at_least(0, 33);
  return !view.attention_free && !view.encoder_decoder;
}

RunConfig requested_config(const RunFlags& flags) {
  RunConfig run;
  run.cache_dtype = flags.kv_cache_dtype;
  run.attention_backend = flags.attention_backend ? backend_name(flags.attention_backend)
                                                  : backend_name(flags.attention_config_backend);
  run.backend_per_kind = flags.backend_per_kind;
  run.flash_attn_version = flags.flash_attn_version;
  run.use_non_causal = flags.use_non_causal;
  run.block_size = flags.block_size.value_or(run.block_size);
  run.user_block_size = flags.block_size.has_value();
  run.user_prefix_caching = flags.enable_prefix_caching;
  run.mamba_cache_mode = flags.mamba_cache_mode;
  run.mamba_block_size = flags.mamba_block_size;
  run.mamba_ssm_cache_dtype = flags.mamba_ssm_cache_dtype;
  run.user_hybrid_manager_off = flags.hybrid_manager_off;
  run.user_cudagraph_mode = flags.cudagraph_mode;
  run.optimization_level = flags.optimization_level;
  run.enforce_eager = flags.enforce_eager;
  run.piecewise_compilation =
      flags.compilation_mode
          ? *flags.compilation_mode == "VLLM_COMPILE" || *flags.compilation_mode == "3"
          : flags.optimization_level > 0 && !flags.enforce_eager;
  run.max_num_seqs = flags.max_num_seqs.value_or(flags.default_num_seqs);
  run.max_num_batched_tokens = flags.max_num_batched_tokens.value_or(flags.default_batched_tokens);
  run.tp = flags.tp;
  run.dcp = flags.dcp;
  run.pcp = flags.pcp;
  run.cp_interleave = flags.cp_interleave;
  run.speculative_tokens = flags.speculative_tokens;
  run.speculative_method = flags.speculative_method;
  return run;
}

// Whether the engine cuts long prompts by default.
bool prefills_in_chunks(const ModelView& view) {
  if (view.encoder_decoder) return false;
  if (!view.pooling || view.hybrid || view.attention_free) return true;
  return !view.encoder_only && view.pooling_type != "MEAN" && view.pooling_type != "CLS" &&
         view.pooling_type != "STEP";
}

// Sequences and tokens of a step where the user leaves them to the engine.
// Source: engine/arg_utils.py, _set_default_max_num_seqs_and_batched_tokens_args.
void settle_batch(RunState& state, const ModelView& view) {
  const RunFlags& flags = state.flags();
  RunConfig& run = state.run();
  const std::int64_t factor = flags.throughput_mode ? 2 : 1;
  if (!flags.max_num_seqs) run.max_num_seqs = flags.default_num_seqs * factor;
  if (!flags.max_num_batched_tokens) {
    std::int64_t& tokens = run.max_num_batched_tokens;
    tokens = (flags.batched_experts ? kBatchedExpertTokens : flags.default_batched_tokens) * factor;
    if (!flags.chunked_prefill.value_or(prefills_in_chunks(view))) {
      tokens = std::max(run.max_model_len, tokens);
    }
    const auto all = checked_mul(run.max_num_seqs, run.max_model_len);
    if (all) tokens = std::min(*all, tokens);
    if (view.mm_prefix && state.out.model_class.info.supports_multimodal) {
      state.note("VLLM-BATCH-MM-FLOOR", "max_num_batched_tokens",
                 fmt::format("at least the tokens of one image, which the processor says; {} is "
                             "without it",
                             tokens));
    }
  }
  if (!flags.max_num_seqs) {
    run.max_num_seqs = std::min(run.max_num_seqs, run.max_num_batched_tokens);
  }
  state.out.requested.max_num_seqs = run.max_num_seqs;
  state.out.requested.max_num_batched_tokens = run.max_num_batched_tokens;
}

// Where a file names no class, the engine takes the bare model of its model_type: "LlamaModel".
std::vector<std::string> architectures_of(const config::ModelConfig& model) {
  if (!model.architectures.empty() || !model.inferred_architecture) return model.architectures;
  std::string name = *model.inferred_architecture;
  for (const std::string_view suffix : {"ForCausalLM", "ForConditionalGeneration", "LMHeadModel"}) {
    if (name.ends_with(suffix)) {
      name.replace(name.size() - suffix.size(), suffix.size(), "Model");
      break;
    }
  }
  return {name};
}

constexpr std::array<std::string_view, 2> kDeprecatedQuantization = {"fbgemm_fp8", "fp_quant"};

bool check_quantization(RunState& state) {
  const std::string method = stated_method(state.question.model);
  if (state.flags().allow_deprecated_quantization ||
      std::ranges::find(kDeprecatedQuantization, method) == kDeprecatedQuantization.end()) {
    return true;
  }
  return state.raise(config_error(
      kValidation, "VLLM-QUANT-DEPRECATED",
      fmt::format("The quantization method {} is deprecated and will be removed in future versions "
                  "of vLLM. To bypass, set `--allow-deprecated-quantization`.",
                  method)));
}

bool find_class(RunState& state) {
  const config::ModelConfig& model = state.question.model;
  const RunFlags& flags = state.flags();
  state.out.model_class = resolve_model_class(
      state.question.registry, {.architectures = architectures_of(model),
                                .model_impl = flags.model_impl,
                                .runner = flags.runner,
                                .convert = flags.convert,
                                .has_pooling_config = flags.has_pooling_config,
                                .nested_text_config = !model.text_pointer.empty(),
                                .num_experts = model.moe ? model.moe->num_experts.value_or(0) : 0,
                                .registered = state.question.registered_models});
  const ModelClass& found = state.out.model_class;
  if (!found.error) return true;
  return state.raise(
      config_error(found.error->type, "VLLM-" + found.error->code, found.error->message));
}

}  // namespace

std::int64_t derived_length(const config::ModelConfig& model, const Profile& profile,
                            std::int64_t otherwise) {
  return scaled_length(model, profile, stated_length(model).value_or(otherwise));
}

bool find_model(RunState& state) {
  state.out.requested = requested_config(state.flags());
  state.out.run = state.out.requested;
  if (!check_backend_names(state) || !find_class(state)) return false;
  ModelView view =
      view_model(state.question.model, state.out.model_class, state.flags(), state.profile());
  if (!resolve_dtype(state) || !resolve_length(state)) return false;
  if (!apply_model_hook(state, view) || !check_quantization(state)) return false;
  settle_batch(state, view);
  state.out.view = std::move(view);
  return true;
}

bool configure(RunState& state) {
  RunConfig& run = state.run();
  run.skip_layers = state.flags().skip_layers;
  run.prefix_caching = run.user_prefix_caching.value_or(default_prefix_caching(state));
  resolve_cache_dtype(state);
  if (!keep_boundary_layers(state) || !merge_attention_config(state)) return false;
  force_flash_attn_2(state);
  return true;
}

}  // namespace kernelpath::engines::vllm
