#pragma once

#include "report/inspect.h"

namespace kernelpath::report {

// One answer with something in every field.
inline InputAnswer sample_answer() {
  using namespace engines;
  InputAnswer answer;
  answer.model.name = "Llama-3.1-8B";
  answer.model.path = "Llama-3.1-8B/config.json";
  answer.model.sha256 = "abc";
  answer.model.architectures = {"LlamaForCausalLM"};
  answer.model.num_attention_heads.value = 32;
  answer.model.num_key_value_heads.value = 8;
  answer.model.head_dim.value = 128;
  answer.model.max_position_embeddings.value = 131072;
  answer.model.warnings = {{"JSON-BOM", "1:1", "byte-order mark \x1b[31m"}};
  answer.device.id = "h100-sxm";
  answer.device.capability = hardware::Capability{9, 0};
  answer.device.memory_bytes = std::int64_t{80} << 30;
  answer.lacks = {"flashinfer"};

  Resolution resolution;
  resolution.engine = "trtllm";
  resolution.version = "2026-11";
  resolution.status = Status::kFallback;
  resolution.model_class = "LlamaForCausalLM";
  resolution.model_module = "tensorrt_llm._torch.models.modeling_llama";
  resolution.requested_backend = "FLASHINFER";
  resolution.requested_by = "user";
  resolution.selected_backend = "TRTLLM";
  resolution.backend_class = "TrtllmAttention";
  resolution.fallback_reason = "FLASHINFER is not installed";
  resolution.fallback_rule = "TRT-ATTN-FALLBACK";
  resolution.layers = {{.kind = config::LayerKind::kFull,
                        .layers = {0, 1, 2, 5},
                        .window = 4096,
                        .backend = "TrtllmAttention",
                        .prefill = {"FMHA", {{"trtllm-gen", "R-1", "needs sm100"}}, ""},
                        .decode = {"XQA", {}, "when it fits"},
                        .kv = {"bf16", "HND", 32, "[pages, 2, heads, page, dim]"},
                        .rope_fused = true,
                        .cuda_graph = "",
                        .kv_bytes_per_token = 131072,
                        .kv_parts = {.values = 65536, .data_bytes = 131072}}};
  resolution.memory.weight_bytes = 16060522496;
  resolution.memory.weight_source = "geometry";
  resolution.memory.kv_bytes_per_token = 131072;
  resolution.memory.kv_bytes_per_token_estimate = 131072;
  resolution.memory.sequence_tokens = 131072;
  resolution.memory.kv_bytes_per_sequence = std::int64_t{131072} * 131072;
  resolution.steps = {{.rule = "R1-ARCH0",
                       .candidate = "LlamaForCausalLM",
                       .verdict = Verdict::kSelected,
                       .reason = "the first name",
                       .source = {"TensorRT-LLM", "a.py", "abc"},
                       .stage = Stage::kModelClass},
                      {.rule = "TRT-ATTN-FALLBACK",
                       .candidate = "FLASHINFER",
                       .verdict = Verdict::kRejected,
                       .severity = Severity::kWarn,
                       .reason = "package flashinfer is not installed",
                       .source = {"TensorRT-LLM", "utils.py", "abc"},
                       .stage = Stage::kFallback},
                      {.rule = "TRT-VALUE",
                       .candidate = "",
                       .verdict = Verdict::kNoted,
                       .reason = "the user's value",
                       .source = {},
                       .stage = Stage::kFinalValue}};
  resolution.warnings = {"attention falls back"};
  resolution.options = {{"attn_backend", "FLASHINFER", "user"}};
  answer.engines.push_back({.resolution = std::move(resolution), .why_not_backend = ""});
  return answer;
}

}  // namespace kernelpath::report
