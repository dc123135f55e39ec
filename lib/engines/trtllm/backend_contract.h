#pragma once

#include "base/result.h"
#include "engines/resolution.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::trtllm {

// The engine's files are not one commit; where two versions decide differently, a request names the
// version whose rule it wants.
enum class Variant : std::uint8_t {
  kDefault,               // the rules that the article and the newest code read agree on
  kStored2a3c95e3,        // backends/utils.py 2a3c95e3: MLA needs qk_rope_head_dim > 0
  kSparseStrictFallback,  // backends/utils.py 2ef79ea1: no fallback for sparse attention
};

// "" or "default", "stored-2a3c95e3", "sparse-strict-fallback". Error kUsageUnknown with the names.
Result<Variant> parse_variant(std::string_view name);

// What an attention backend class answers without an instance.
// Source: _torch/attention/backends/{interface,trtllm,flashinfer,vanilla}.py and backends/sparse/.
struct BackendCapability {
  std::string_view backend_class;
  std::string_view base_class;
  bool fused_rope;
  bool fused_qkv;
  bool mla;
  bool multi_item_scoring;
  bool chunked_attention;      // no class method: the engine asks for the name TRTLLM
  std::string_view kv_layout;  // "HND": [pages, 2, kv_heads, page, head_dim]; "NHD" swaps two
  std::string_view workspace;  // extra run-time workspace per token
  std::string_view file;       // below tensorrt_llm/_torch/attention/backends/
};

// Bases stand before the classes that inherit from them.
std::span<const BackendCapability> backend_capabilities();
const BackendCapability* find_capability(std::string_view backend_class);

// True where `backend_class` is `ancestor` or inherits from it.
bool inherits_from(std::string_view backend_class, std::string_view ancestor);

// How forward options arrive: in one options object, or as keywords, never both.
enum class ForwardArgs : std::uint8_t { kForwardArgs, kFromKwargs, kBoth, kUnknown };
std::string_view forward_args_name(
    ForwardArgs result);  // "FORWARD-ARGS", "FROM-KWARGS", "ERR-BOTH", …

// Unknown keywords are found before the conflict. Source: backends/interface.py, 1262edbc.
ForwardArgs merge_forward_args(bool forward_args_given, std::span<const std::string> keywords);

// Whether the context phase of TRTLLM reads cached pages. Source: backends/trtllm.py, 017aa0ca.
bool use_paged_context_fmha(bool chunked_prefill, bool block_reuse, bool has_draft_tokens);

// The config property, which compares the raw string: "trtllm" is not fused here.
// Source: _torch/model_config.py, 008e0af8.
bool model_config_fuses_positions(std::string_view attn_backend);

}  // namespace kernelpath::engines::trtllm
