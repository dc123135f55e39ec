// What a complete configuration is refused for. Source: vllm/config/{model,vllm,parallel}.py.

#include "engines/vllm/speculation.h"

#include <fmt/format.h>

namespace kernelpath::engines::vllm {
namespace {

RunError refusal(std::string_view rule, std::string text) {
  return config_error("ValidationError", rule, std::move(text));
}

// Which ranks may share the cache of one token, where every rank has KV heads of its own.
bool check_context_parallelism(RunState& state) {
  const RunConfig& run = state.run();
  const ModelView& view = state.view();
  const std::int64_t kv_heads = view.total_kv_heads;
  if (kv_heads == 0 || run.tp <= kv_heads) {
    return state.raise(refusal(
        "VLLM-DCP-KV-HEADS",
        fmt::format("tensor parallel size {} must be greater than total num kv heads {} when "
                    "enable decode context parallel for GQA/MQA",
                    run.tp, kv_heads)));
  }
  if (run.dcp > run.tp / kv_heads) {
    return state.raise(refusal(
        "VLLM-DCP-SIZE",
        fmt::format("decode context parallel size must less than or equal to (tensor parallel size "
                    "{} // total num kv heads {}) = {}, but got {}",
                    run.tp, kv_heads, run.tp / kv_heads, run.dcp)));
  }
  const std::int64_t queries = view.total_heads / kv_heads;
  if (queries % run.dcp != 0) {
    return state.raise(
        refusal("VLLM-DCP-QUERIES", fmt::format("Total number of q per kv attn heads ({}) must be "
                                                "divisible by dcp world size ({})",
                                                queries, run.dcp)));
  }
  return true;
}

// Whether the hybrid KV cache manager is off: by the user, or because a feature needs it.
bool resolve_hybrid_manager(RunState& state) {
  RunConfig& run = state.run();
  bool must_be_off = state.question.machine.platform == hardware::Platform::kCpu;
  if (state.view().attention_chunk_size) {
    const bool eagle =
        is_one_of(run.speculative_method, {"eagle", "eagle3", "mtp", "dflash", "dspark"});
    must_be_off = must_be_off || eagle || !state.flags().chunked_with_hybrid_manager;
  }
  if (!run.user_hybrid_manager_off) {
    run.hybrid_manager_off = must_be_off;
    if (must_be_off) {
      state.note("VLLM-HMA-OFF", "disable_hybrid_kv_cache_manager",
                 "a feature of this run does not go with the hybrid manager", Severity::kWarn);
    }
    return true;
  }
  run.hybrid_manager_off = *run.user_hybrid_manager_off;
  if (run.hybrid_manager_off || !must_be_off) return true;
  return state.raise(refusal("VLLM-HMA-REFUSED",
                             "Hybrid KV cache manager was explicitly enabled but is not supported "
                             "in this configuration."));
}

bool check_latent_cache(RunState& state) {
  const std::string& dtype = state.run().cache_dtype;
  if (!state.view().use_mla) return true;
  const bool refused = state.profile().at_least(0, 33)
                           ? dtype.starts_with("nvfp4") && !dtype.ends_with("_ds_mla")
                           : dtype == "nvfp4";
  if (!refused) return true;
  return state.raise(refusal("VLLM-MLA-NVFP4",
                             "nvfp4 KV cache is not supported with MLA (Multi-head Latent "
                             "Attention) backends. Please use a different --kv-cache-dtype (e.g., "
                             "'fp8' or 'auto') for MLA models such as DeepSeek."));
}

bool check_mamba_block_size(RunState& state) {
  const RunConfig& run = state.run();
  if (!run.mamba_block_size || *run.mamba_block_size == run.max_model_len || run.prefix_caching) {
    return true;
  }
  return state.raise(refusal("VLLM-MAMBA-BLOCK-REFUSED",
                             "--mamba-block-size can only be set with --enable-prefix-caching"));
}

}  // namespace

bool check_parallelism(RunState& state) {
  const RunConfig& run = state.run();
  if (run.tp % run.dcp != 0) {
    return state.raise(
        refusal("VLLM-DCP-TP",
                fmt::format("tp_size={} must be divisible by dcp_size={}.", run.tp, run.dcp)));
  }
  if (state.view().total_heads % run.tp != 0) {
    return state.raise(refusal("VLLM-TP-HEADS",
                               fmt::format("Total number of attention heads ({}) must be divisible "
                                           "by tensor parallel size ({}).",
                                           state.view().total_heads, run.tp)));
  }
  return run.dcp == 1 || state.view().use_mla || check_context_parallelism(state);
}

bool check_configuration(RunState& state) {
  return resolve_hybrid_manager(state) && check_latent_cache(state) &&
         check_mamba_block_size(state);
}

}  // namespace kernelpath::engines::vllm
