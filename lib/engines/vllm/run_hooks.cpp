// What a model's class changes of the configuration.
// Source: vllm/model_executor/models/config.py.

#include "engines/vllm/flash_attn_version.h"
#include "engines/vllm/run_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::int64_t kLargestFa4Head = 512;

// --- hooks of the engine's configuration ---------------------------------------------------------

bool deepseek_v32_hook(RunState& state) {
  if (!has_text_field(state.question.model, "index_topk")) {
    return state.raise(config_error("ValidationError", "VLLM-HOOK-INDEX-TOPK",
                                    "Assertion failed, the configuration has no index_topk"));
  }
  if (state.run().cache_dtype == "bfloat16") {
    state.run().cache_dtype = "auto";
    state.note("VLLM-HOOK-DSA-BF16", "kv_cache_dtype",
               "bfloat16 is the model's own dtype: the cache is auto");
  }
  return true;
}

// GLM's sparse models keep a quantized cache on data-centre Blackwell.
bool glm_hook(RunState& state, std::string dtype) {
  if (state.run().cache_dtype != "auto" || !state.question.machine.family(10)) return true;
  if (!has_text_field(state.question.model, "index_topk")) return true;
  state.run().cache_dtype = std::move(dtype);
  state.note("VLLM-HOOK-GLM-FP8", "kv_cache_dtype",
             fmt::format("the class sets {} on SM10x", state.run().cache_dtype), Severity::kWarn);
  return true;
}

bool glm_dsa_hook(RunState& state) { return glm_hook(state, "fp8_e4m3"); }
bool glm5_next_hook(RunState& state) { return glm_hook(state, "fp8"); }

// Two head sizes in one model: one version of FlashAttention for both, or Triton.
bool gemma4_hook(RunState& state) {
  RunConfig& run = state.run();
  const auto head = text_integer(state.question.model, "head_dim");
  const auto global = text_integer(state.question.model, "global_head_dim");
  if (!head || !global || *head == *global) return true;
  const bool usable = flash_attn_supported(state.question.machine, 4);
  if (usable && std::max(*head, *global) <= kLargestFa4Head) {
    const bool free = !run.attention_backend || *run.attention_backend == "FLASH_ATTN";
    if (run.flash_attn_version || !free) return true;
    const bool per_layer = state.profile().at_least(0, 33) && state.question.machine.family(9) &&
                           run.cache_dtype.starts_with("fp8");
    if (per_layer) {
      state.note("VLLM-HOOK-GEMMA4-PER-LAYER", "flash_attn_version",
                 "with an fp8 cache each layer takes FlashAttention 3 or 4 by its head size");
      return true;
    }
    run.flash_attn_version = 4;
    state.note("VLLM-HOOK-GEMMA4-FA4", "flash_attn_version",
               fmt::format("heads of {} and {}: FlashAttention 4 serves both", *head, *global));
  } else if (!run.attention_backend) {
    run.attention_backend = "TRITON_ATTN";
    state.note("VLLM-HOOK-GEMMA4-TRITON", "attention_backend",
               fmt::format("heads of {} and {} without FlashAttention 4: Triton", *head, *global));
  }
  return true;
}

bool embedding_gemma_hook(RunState& state) {
  if (!gemma4_hook(state)) return false;
  if (!state.run().attention_backend) {
    state.run().attention_backend = "TRITON_ATTN";
    state.note("VLLM-HOOK-EMBEDDING-GEMMA", "attention_backend", "the class asks for Triton");
  }
  return true;
}

bool diffusion_gemma_hook(RunState& state) {
  if (!gemma4_hook(state)) return false;
  RunConfig& run = state.run();
  if (run.attention_backend == "FLASHINFER") {
    return state.raise(config_error("ValidationError", "VLLM-HOOK-DIFFUSION-FLASHINFER",
                                    "FlashInfer does not support DiffusionGemma's mixed "
                                    "causal/bidirectional attention. Use --attention-backend "
                                    "FLASH_ATTN or TRITON_ATTN instead."));
  }
  if (!run.attention_backend && !run.use_non_causal) {
    run.use_non_causal = true;
    state.note("VLLM-HOOK-DIFFUSION-NON-CAUSAL", "use_non_causal",
               "attention is causal and bidirectional within a batch: FlashInfer is left out");
  }
  if (!state.flags().max_num_seqs) run.max_num_seqs = 8;
  return true;
}

bool unlimited_ocr_hook(RunState& state) {
  RunConfig& run = state.run();
  const bool usable = flash_attn_supported(state.question.machine, 4);
  if (!run.attention_backend) {
    run.attention_backend = usable ? "FLASH_ATTN" : "TRITON_ATTN";
    state.note("VLLM-HOOK-OCR-BACKEND", "attention_backend",
               fmt::format("the class asks for {}", *run.attention_backend));
  }
  const std::string& backend = *run.attention_backend;
  if (backend == "FLASH_ATTN" && !usable) {
    return state.raise(config_error("RuntimeError", "VLLM-HOOK-OCR-FA4",
                                    "Unlimited-OCR: --attention-config backend=FLASH_ATTN requires "
                                    "FA4 (rswa_mask_mod), but FA4 is not available on this "
                                    "device/installation."));
  }
  if (backend != "FLASH_ATTN" && backend != "TRITON_ATTN" && backend != "FLEX_ATTENTION") {
    return state.raise(config_error(
        "ValidationError", "VLLM-HOOK-OCR-OTHER",
        fmt::format("Unlimited-OCR: unsupported attention backend {} for R-SWA. Use FLASH_ATTN "
                    "(FA4), TRITON_ATTN or FLEX_ATTENTION.",
                    backend)));
  }
  if (backend == "FLASH_ATTN" && run.flash_attn_version.value_or(0) < 4) {
    run.flash_attn_version = 4;
    state.note("VLLM-HOOK-OCR-FA4", "flash_attn_version",
               "only FlashAttention 4 can express the mask of R-SWA");
  }
  if (run.prefix_caching) {
    run.prefix_caching = false;
    state.note("VLLM-HOOK-OCR-PREFIX", "enable_prefix_caching",
               "a generated token's cache depends on more than the prefix: prefix caching is off",
               Severity::kWarn);
  }
  return true;
}

void set_ssm_dtype(RunState& state, std::string_view dtype) {
  if (state.run().mamba_ssm_cache_dtype != "auto" || dtype.empty()) return;
  state.run().mamba_ssm_cache_dtype = dtype;
  state.note("VLLM-HOOK-SSM-DTYPE", "mamba_ssm_cache_dtype",
             fmt::format("the class keeps its state in {}", dtype));
}

bool nemotron_h_hook(RunState& state) {
  const std::string_view stated = text_string(state.question.model, "mamba_ssm_cache_dtype");
  set_ssm_dtype(state, stated.empty() ? "float32" : stated);
  return true;
}

bool qwen3_5_hook(RunState& state) {
  set_ssm_dtype(state, text_string(state.question.model, "mamba_ssm_dtype"));
  return true;
}

// The mode in which states are cached, and the tokens of one of their blocks.
bool mamba_hook(RunState& state) {
  RunConfig& run = state.run();
  if (!run.prefix_caching) {
    if (run.mamba_cache_mode != "none") {
      run.mamba_cache_mode = "none";
      state.note("VLLM-MAMBA-MODE-OFF", "mamba_cache_mode",
                 "without prefix caching no state is kept: mode none", Severity::kWarn);
    }
    if (!run.mamba_block_size) run.mamba_block_size = run.max_model_len;
    return true;
  }
  const bool all =
      !state.profile().at_least(0, 33) && state.out.model_class.info.supports_mamba_prefix_caching;
  const std::string before = run.mamba_cache_mode;
  if (run.mamba_cache_mode == "none") run.mamba_cache_mode = all ? "all" : "align";
  if (run.mamba_cache_mode == "all" && !all) run.mamba_cache_mode = "align";
  if (run.mamba_cache_mode != before) {
    state.note("VLLM-MAMBA-MODE", "mamba_cache_mode",
               fmt::format("prefix caching of states: mode {}", run.mamba_cache_mode));
  }
  if (!run.mamba_block_size) run.mamba_block_size = run.block_size;
  return true;
}

// LongCat-Flash's n-gram variant is neither compiled nor captured in pieces.
bool longcat_ngram_hook(RunState& state) {
  RunConfig& run = state.run();
  if (!state.flags().compilation_mode) run.piecewise_compilation = false;
  if (!run.user_cudagraph_mode) run.user_cudagraph_mode = "FULL";
  state.note("VLLM-HOOK-LONGCAT-NGRAM", "cudagraph_mode",
             "the class sets no compilation and full graphs");
  return true;
}

struct EngineHook {
  std::string_view name;  // of the hook's class
  bool (*apply)(RunState&);
};

constexpr auto kEngineHooks = std::to_array<EngineHook>({
    {"DeepseekV32ForCausalLM", deepseek_v32_hook},
    {"GlmMoeDsaForCausalLM", glm_dsa_hook},
    {"Glm5NextModelConfig", glm5_next_hook},
    {"Gemma4Config", gemma4_hook},
    {"EmbeddingGemma2ModelConfig", embedding_gemma_hook},
    {"DiffusionGemmaModelForBlockDiffusionConfig", diffusion_gemma_hook},
    {"UnlimitedOCRForCausalLMConfig", unlimited_ocr_hook},
    {"MambaModelConfig", mamba_hook},
    {"NemotronHForCausalLMConfig", nemotron_h_hook},
    {"NemotronHNanoVLV2Config", nemotron_h_hook},
    {"Qwen3_5ForConditionalGenerationConfig", qwen3_5_hook},
    {"Qwen3_5ForCausalLMConfig", qwen3_5_hook},
    {"Qwen4ExpForConditionalGenerationConfig", qwen3_5_hook},
    {"Qwen4ExpForCausalLMConfig", qwen3_5_hook},
    {"Qwen4ExpMTPConfig", qwen3_5_hook},
    {"ColQwen3_5Config", qwen3_5_hook},
    {"D3ForSequenceClassificationConfig", qwen3_5_hook},
    {"LongcatFlashNgramForCausalLMConfig", longcat_ngram_hook},
});

// Hook classes that make the attention bidirectional, whatever the configuration says.
constexpr std::array<std::string_view, 4> kBidirectional = {
    "LlamaBidirectionalConfig", "LlamaNemotronVLConfig", "ColQwen3_5Config",
    "VoyageQwen3BidirectionalEmbedModelConfig"};

// The hook of the first architecture; nothing for most.
std::string_view hook_of(const RunState& state) {
  const auto& hooks = state.question.registry.hooks;
  const ModelClass& found = state.out.model_class;
  for (const std::string& name : {found.architecture, found.normalised_from}) {
    const auto hook = std::ranges::find(hooks, name, [](const auto& pair) { return pair.first; });
    if (!name.empty() && hook != hooks.end()) return hook->second;
  }
  return {};
}

// "avg" and its kin, as the pooler calls them; empty for anything else.
std::string_view pooling_name(std::string_view stated) {
  if (stated == "avg") return "MEAN";
  if (stated == "cls") return "CLS";
  return stated == "last" ? "LAST" : "";
}

}  // namespace

bool apply_model_hook(RunState& state, ModelView& view) {
  const config::ModelConfig& model = state.question.model;
  const std::string_view hook = hook_of(state);
  view.causal = text_integer(model, "is_causal").value_or(1) != 0;
  if (hook == "Gemma3TextModelConfig") {
    view.causal = text_integer(model, "use_bidirectional_attention").value_or(0) == 0;
  }
  const bool bidirectional = std::ranges::find(kBidirectional, hook) != kBidirectional.end();
  if (bidirectional) view.causal = false;
  if (hook == "LlamaBidirectionalConfig" || hook == "LlamaNemotronVLConfig") {
    const std::string_view stated = text_string(model, "pooling");
    const bool optional = hook == "LlamaNemotronVLConfig" && stated.empty();
    view.pooling_type = pooling_name(optional ? "avg" : stated);
    if (view.pooling_type.empty()) {
      return state.raise(config_error("ValidationError", "VLLM-HOOK-POOLING",
                                      fmt::format("pool_type '{}' not supported", stated)));
    }
  }
  if (!view.causal) {
    state.note("VLLM-HOOK-BIDIRECTIONAL", "is_causal",
               "the attention has no causal mask: its layers are encoder-only");
  }
  if (view.pooling && !view.causal) view.encoder_only = true;
  return true;
}

bool apply_engine_hooks(RunState& state) {
  const std::string_view name = hook_of(state);
  const auto* const hook = std::ranges::find(kEngineHooks, name, &EngineHook::name);
  if (hook != kEngineHooks.end() && !hook->apply(state)) return false;
  return !state.view().hybrid || mamba_hook(state);
}

}  // namespace kernelpath::engines::vllm
