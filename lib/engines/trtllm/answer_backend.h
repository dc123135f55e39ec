#pragma once

#include "base/result.h"
#include "json/value.h"

#include <span>
#include <string_view>

namespace kernelpath::engines::trtllm {

// The ops of the recorded questions about the attention side ("get_attention_backend", …).
std::span<const std::string_view> backend_ops();

// Answers one of them: `in` is the question, the value has exactly the fields of the recorded
// `out`. Fields that are absent or null have these defaults:
//   flashinfer_available, cute_dsl_available, native_ops_available, fused_qkv, paged,
//   update_kv_cache, has_kv_cache_manager, fused_context_kernel_exists: true;
//   every other flag: false; tp, pp, beam, seq_len_q: 1; pp_rank, num_contexts, num_generations: 0;
//   tokens_per_block 32; input_type "mixed"; flashinfer_backend "fa2"; kv_dtype and q_dtype "bf16";
//   o_dtype as q_dtype; kv_cache_dtype "auto"; attn_backend of the Llama-4 and FlashMLA questions
//   "TRTLLM"; variant "default".
// Error kBatchRequest names the field at fault, or the unknown op.
Result<json::Value> answer_backend(const json::Value& in);

}  // namespace kernelpath::engines::trtllm
