#include "engines/sglang/run.h"

#include <array>

namespace kernelpath::engines::sglang {
namespace {

// Arguments whose final value a rule compares with what was asked.
constexpr auto kCompared = std::to_array<std::string_view>({"attention_backend",
                                                            "prefill_attention_backend",
                                                            "decode_attention_backend",
                                                            "page_size",
                                                            "kv_cache_dtype",
                                                            "dtype",
                                                            "quantization",
                                                            "chunked_prefill_size",
                                                            "disable_radix_cache",
                                                            "disable_overlap_schedule",
                                                            "sampling_backend",
                                                            "moe_runner_backend",
                                                            "moe_a2a_backend",
                                                            "ep_size",
                                                            "attn_dp_size",
                                                            "attn_cp_size",
                                                            "max_running_requests",
                                                            "mamba_radix_cache_strategy",
                                                            "speculative_num_steps",
                                                            "speculative_eagle_topk",
                                                            "speculative_num_draft_tokens",
                                                            "speculative_draft_attention_backend"});

}  // namespace

void append_rule_facts(const Launch& launch, Resolution& resolution) {
  for (const std::string_view name : kCompared) {
    resolution.facts.push_back({"final." + std::string(name), launch.arguments().value(name)});
  }
  const std::int64_t context = launch.model().derived_context_len;
  if (context > 0) {
    resolution.facts.push_back({"final.context_limit", json::Value::integer(context)});
  }
  // A draft has no backend of its own choice: the one that it would have alone does not count.
  resolution.facts.push_back({"draft.backend", text_value(draft_backend(launch))});
}

}  // namespace kernelpath::engines::sglang
