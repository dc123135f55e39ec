#include "engines/sglang/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::sglang {
namespace {

// In the order of reports; others follow where somebody set them.
constexpr std::array<std::string_view, 28> kShown = {"attention_backend",
                                                     "prefill_attention_backend",
                                                     "decode_attention_backend",
                                                     "page_size",
                                                     "kv_cache_dtype",
                                                     "dtype",
                                                     "quantization",
                                                     "chunked_prefill_size",
                                                     "disable_radix_cache",
                                                     "disable_overlap_schedule",
                                                     "disable_hybrid_swa_memory",
                                                     "sampling_backend",
                                                     "moe_runner_backend",
                                                     "moe_a2a_backend",
                                                     "tp_size",
                                                     "pp_size",
                                                     "dp_size",
                                                     "attn_dp_size",
                                                     "attn_cp_size",
                                                     "dcp_size",
                                                     "ep_size",
                                                     "speculative_algorithm",
                                                     "speculative_num_steps",
                                                     "speculative_eagle_topk",
                                                     "speculative_num_draft_tokens",
                                                     "mamba_radix_cache_strategy",
                                                     "max_running_requests",
                                                     "mem_fraction_static"};

std::string set_by(const Run& run, std::string_view name) {
  const Arguments& arguments = run.launch.arguments();
  const std::string* option = run.arguments.option_of(name);
  const std::string_view rule = arguments.decided_by(name);
  const json::Value* given = arguments.given(name);
  if (rule.empty() || (given != nullptr && *given == arguments.value(name))) {
    return option != nullptr ? *option : std::string("engine default");
  }
  return option != nullptr ? fmt::format("{}, over {}", rule, *option) : std::string(rule);
}

// The rule that last changed the graphs.
std::string graph_set_by(const Launch& launch) {
  std::string out = "engine default";
  for (const Event& event : launch.events()) {
    for (const Event::Change& change : event.changes) {
      if (change.field == "cuda_graph_config") out = event.rule;
    }
  }
  return out;
}

std::string text_of(const json::Value& value) {
  return value.is_string() ? value.as_string() : python_json(value);
}

}  // namespace

void append_final_options(const Run& run, Resolution& resolution) {
  const auto add = [&](std::string_view name) {
    const bool listed =
        std::any_of(resolution.options.begin(), resolution.options.end(),
                    [&](const Resolution::Option& option) { return option.name == name; });
    if (listed || name.starts_with("_")) return;
    resolution.options.push_back(
        {std::string(name), text_of(run.launch.arguments().value(name)), set_by(run, name)});
  };
  for (const std::string_view name : kShown) add(name);
  const std::string by = graph_set_by(run.launch);
  resolution.options.push_back({"cuda_graph_config.decode", run.launch.graph().decode, by});
  resolution.options.push_back({"cuda_graph_config.prefill", run.launch.graph().prefill, by});
  for (const auto& [name, value] : run.launch.arguments().all_given()) add(name);
  for (const std::string& name : run.launch.arguments().decided()) add(name);
}

}  // namespace kernelpath::engines::sglang
