#include "engines/sglang/steps.h"

#include <array>

// Source: arg_groups/pipeline.py (run_resolution_pipeline), from which the steps are left out that
// neither change nor refuse anything about attention, its cache, graphs, experts or speculation.
namespace kernelpath::engines::sglang {
namespace {

using Step = void (*)(Launch&);

constexpr std::array kSteps = {
    Step{check_command_line},
    Step{deprecated_dp_attention},
    Step{mega_moe},
    Step{deprecated_args},
    Step{missing_default_values},
    Step{pd_disaggregation},
    Step{prefill_only_arguments},
    Step{decode_context_parallelism},
    Step{read_model_config},
    Step{cuda_graph_config},
    Step{cpu_backends},
    Step{gpu_memory_settings},
    Step{static_memory_fraction},
    Step{model_specific_adjustments},
    Step{sampling_backend_default},
    Step{deterministic_inference},
    Step{nvfp4_prefill_dequant},
    Step{attention_backend_compatibility},
    Step{deepseek_trtllm_mla_graph},
    Step{mamba_backend},
    Step{linear_attention_backend},
    Step{fp4_compatibility},
    Step{mxfp8_compatibility},
    Step{page_size_default},
    Step{multi_item_scoring},
    Step{prefill_only_kv_cache},
    Step{data_parallelism},
    Step{context_parallelism},
    Step{moe_kernel_config},
    Step{all_to_all_moe},
    Step{pipeline_parallel_overlap},
    Step{speculative_decoding},
    Step{mega_moe_token_budget},
    Step{language_model_only},
    Step{cache_compatibility},
    Step{diffusion_inference},
    Step{model_capabilities},
};

}  // namespace

void run_pipeline(Launch& launch) {
  for (const Step step : kSteps) {
    step(launch);
    if (launch.refused()) return;
  }
}

}  // namespace kernelpath::engines::sglang
