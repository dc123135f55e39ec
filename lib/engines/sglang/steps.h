#pragma once

#include "engines/sglang/launch.h"

// The steps of the engine's argument resolution, each named after the function that it restates.
// Source: sglang/srt/arg_groups/*. pipeline.cpp runs them in the engine's order.
namespace kernelpath::engines::sglang {

void check_command_line(Launch& launch);

// early_steps.cpp
void deprecated_dp_attention(Launch& launch);
void mega_moe(Launch& launch);
void deprecated_args(Launch& launch);
void missing_default_values(Launch& launch);
void pd_disaggregation(Launch& launch);
void prefill_only_arguments(Launch& launch);
void decode_context_parallelism(Launch& launch);
void read_model_config(Launch& launch);
void cpu_backends(Launch& launch);

// graph_steps.cpp
void cuda_graph_config(Launch& launch);
void gpu_memory_settings(Launch& launch);
void deepseek_trtllm_mla_graph(Launch& launch);

// memory_fraction.cpp
void static_memory_fraction(Launch& launch);

// model_steps.cpp
void model_specific_adjustments(Launch& launch);

// sparse_steps.cpp
void dsa_kv_cache_dtype(Launch& launch);
void dsa_split_backends(Launch& launch);
void deepseek_moe_quantization(Launch& launch);
void deepseek_v4_defaults(Launch& launch);

// attention_steps.cpp
void sampling_backend_default(Launch& launch);
void deterministic_inference(Launch& launch);
void attention_backend_compatibility(Launch& launch);
void multi_item_scoring(Launch& launch);
std::string default_attention_backend(const Launch& launch);

// kv_steps.cpp
void nvfp4_prefill_dequant(Launch& launch);
void fp4_compatibility(Launch& launch);
void mxfp8_compatibility(Launch& launch);
void page_size_default(Launch& launch);
void prefill_only_kv_cache(Launch& launch);
void cache_compatibility(Launch& launch);

// linear_steps.cpp
void mamba_radix_cache(Launch& launch);
void mamba_backend(Launch& launch);
void linear_attention_backend(Launch& launch);

// parallel_steps.cpp
void data_parallelism(Launch& launch);
void context_parallelism(Launch& launch);
void pipeline_parallel_overlap(Launch& launch);

// moe_steps.cpp
void moe_kernel_config(Launch& launch);
void all_to_all_moe(Launch& launch);
void mega_moe_token_budget(Launch& launch);

// speculative_steps.cpp
void speculative_decoding(Launch& launch);
// The limit of requests that every kind of draft has where the user states none.
void limit_draft_requests(Launch& launch);

// dflash_steps.cpp
void dflash(Launch& launch);
void dspark(Launch& launch);

// final_steps.cpp
void language_model_only(Launch& launch);
void diffusion_inference(Launch& launch);
void model_capabilities(Launch& launch);

// The resolution, up to the first refusal.
void run_pipeline(Launch& launch);

}  // namespace kernelpath::engines::sglang
