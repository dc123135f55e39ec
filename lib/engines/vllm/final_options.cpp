#include "engines/vllm/final_options.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kByEngine = "engine";
constexpr std::string_view kByDefault = "engine default";

template <class Value>
std::string text_of(const std::optional<Value>& value) {
  return value ? fmt::format("{}", *value) : std::string("null");
}

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(std::int64_t value) { return fmt::to_string(value); }
std::string text_of(const std::string& value) { return value.empty() ? "null" : value; }

// The run's options by the engine's names.
using Values = std::vector<std::pair<std::string_view, std::string>>;

Values values_of(const RunConfig& run) {
  return {
      {"dtype", text_of(run.dtype)},
      {"kv_cache_dtype", text_of(run.cache_dtype)},
      {"kv_cache_dtype_skip_layers", run.skip_layers.empty() ? "[]" : join(run.skip_layers, ",")},
      {"attention_backend", text_of(run.attention_backend)},
      {"attention_config.flash_attn_version", text_of(run.flash_attn_version)},
      {"attention_config.use_non_causal", text_of(run.use_non_causal)},
      {"block_size", text_of(run.block_size)},
      {"enable_prefix_caching", text_of(run.prefix_caching)},
      {"mamba_cache_mode", text_of(run.mamba_cache_mode)},
      {"mamba_block_size", text_of(run.mamba_block_size)},
      {"mamba_page_size_padded", text_of(run.mamba_page_size_padded)},
      {"mamba_ssm_cache_dtype", text_of(run.mamba_ssm_cache_dtype)},
      {"disable_hybrid_kv_cache_manager", text_of(run.hybrid_manager_off)},
      {"kv_layout", text_of(run.kv_layout)},
      {"compilation_config.cudagraph_mode", text_of(run.cudagraph_mode)},
      {"max_model_len", text_of(run.max_model_len)},
      {"max_num_seqs", text_of(run.max_num_seqs)},
      {"max_num_batched_tokens", text_of(run.max_num_batched_tokens)},
      {"tensor_parallel_size", text_of(run.tp)},
      {"decode_context_parallel_size", text_of(run.dcp)},
      {"prefill_context_parallel_size", text_of(run.pcp)},
      {"speculative_config.method", text_of(run.speculative_method)},
      {"speculative_config.num_speculative_tokens", text_of(run.speculative_tokens)}};
}

}  // namespace

void append_final_options(const Arguments& arguments, const RunResult& run,
                          Resolution& resolution) {
  // Without a complete configuration only what the user gave is known.
  const Values values = run.view ? values_of(run.run) : Values{};
  const Values requested = values_of(run.requested);
  resolution.options.push_back({"runner", text_of(run.model_class.runner),
                                arguments.given("runner") != nullptr
                                    ? arguments.given("runner")->set_by
                                    : std::string(kByEngine)});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& [name, value] = values[i];
    const Arguments::Value* given = arguments.given(name);
    const bool changed = value != requested[i].second;
    std::string set_by(changed ? kByEngine : kByDefault);
    if (given != nullptr && !changed) set_by = given->set_by;
    if (given != nullptr && changed) set_by = fmt::format("engine, over {}", given->set_by);
    resolution.options.push_back({std::string(name), value, std::move(set_by)});
  }
  resolution.options.push_back({"gpu_memory_utilization",
                                arguments.text("gpu_memory_utilization").value_or("null"),
                                arguments.given("gpu_memory_utilization") != nullptr
                                    ? arguments.given("gpu_memory_utilization")->set_by
                                    : std::string(kByDefault)});
  for (const Arguments::Value& value : arguments.values()) {
    const bool listed =
        std::any_of(resolution.options.begin(), resolution.options.end(),
                    [&](const Resolution::Option& option) { return option.name == value.name; });
    if (!listed) resolution.options.push_back({value.name, text_of(value.text), value.set_by});
  }
}

}  // namespace kernelpath::engines::vllm
