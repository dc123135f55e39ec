// What changed between two configurations of a run, as recorded answers spell it.

#include "engines/vllm/kv_cache_plan.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kDefaultGraphs = "FULL_AND_PIECEWISE";  // of the default level

std::string python(const std::string& value) { return value; }
std::string python(std::int64_t value) { return fmt::to_string(value); }
std::string python(bool value) { return value ? "True" : "False"; }

template <class Value>
std::string python(const std::optional<Value>& value) {
  return value ? python(*value) : "None";
}

std::string python(const std::vector<std::string>& values) {
  std::string out;
  for (const std::string& value : values) {
    out += fmt::format("{}'{}'", out.empty() ? "" : ", ", value);
  }
  return fmt::format("[{}]", out);
}

class Rewrites {
 public:
  template <class Value>
  void compare(std::string_view field, const Value& before, const Value& after) {
    if (before == after) return;
    lines_.push_back(fmt::format("{}: {} -> {}", field, python(before), python(after)));
  }
  void add(std::string line) { lines_.push_back(std::move(line)); }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> list_rewrites(const RunConfig& before, const RunConfig& after,
                                       std::string_view requested_graphs) {
  Rewrites rewrites;
  rewrites.compare("kv_cache_dtype", before.cache_dtype, after.cache_dtype);
  rewrites.compare("block_size", before.block_size, after.block_size);
  rewrites.compare("attention_backend", before.attention_backend, after.attention_backend);
  rewrites.compare("flash_attn_version", before.flash_attn_version, after.flash_attn_version);
  rewrites.compare("mamba_cache_mode", before.mamba_cache_mode, after.mamba_cache_mode);
  rewrites.compare("mamba_ssm_cache_dtype", before.mamba_ssm_cache_dtype,
                   after.mamba_ssm_cache_dtype);
  rewrites.compare("kv_cache_dtype_skip_layers", before.skip_layers, after.skip_layers);
  rewrites.compare("use_non_causal", before.use_non_causal, after.use_non_causal);
  if (after.mamba_page_size_padded) {
    rewrites.add(fmt::format("mamba page padded to {}", *after.mamba_page_size_padded));
  }
  if (!after.prefix_caching) rewrites.add("prefix caching off");
  if (after.hybrid_manager_off) rewrites.add("hybrid KV cache manager disabled");
  if (requested_graphs.empty()) return rewrites.take();
  const std::string configured(requested_graphs);
  rewrites.compare("cudagraph_mode (config)", std::string(kDefaultGraphs), configured);
  rewrites.compare("cudagraph_mode (backend)", configured, after.cudagraph_mode);
  return rewrites.take();
}

}  // namespace kernelpath::engines::vllm
