#pragma once

#include "engines/vllm/backend_table.h"
#include "engines/vllm/selector_input.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::engines::vllm {

// The engine's configuration while a run is set up. Hooks and later stages overwrite it, as they do
// in the engine; every change goes through `rewrites`. Source: vllm/config/*.py.
struct RunConfig {
  std::string dtype = "bfloat16";  // the model's, resolved
  std::string cache_dtype = "auto";
  std::vector<std::string> skip_layers = {};  // kv_cache_dtype_skip_layers
  std::optional<std::string> attention_backend = {};
  // Since 0.33: a KV kind's own backend ("sliding_window" → "TRITON_ATTN"); beats the one above.
  std::vector<std::pair<std::string, std::string>> backend_per_kind = {};
  std::optional<std::int64_t> flash_attn_version = {};
  bool use_non_causal = false;
  std::int64_t block_size = 16;
  bool user_block_size = false;  // given by the user, hence asked of the selector
  std::optional<bool> user_prefix_caching = {};
  bool prefix_caching = true;
  std::string mamba_cache_mode = "none";
  std::optional<std::int64_t> mamba_block_size = {};
  std::optional<std::int64_t> mamba_page_size_padded = {};
  std::string mamba_ssm_cache_dtype = "auto";
  std::optional<bool> user_hybrid_manager_off = {};
  bool hybrid_manager_off = false;  // disable_hybrid_kv_cache_manager
  std::string kv_layout = {};       // empty until it is resolved
  std::string cudagraph_mode = {};  // "FULL_AND_PIECEWISE", …
  std::optional<std::string> user_cudagraph_mode = {};
  std::int64_t optimization_level = 2;
  bool enforce_eager = false;
  bool piecewise_compilation = true;  // compilation mode is VLLM_COMPILE
  std::int64_t max_model_len = 0;
  std::int64_t max_num_seqs = 0;
  std::int64_t max_num_batched_tokens = 0;
  std::int64_t tp = 1;
  std::int64_t dcp = 1;
  std::int64_t pcp = 1;
  std::int64_t cp_interleave = 1;
  std::int64_t speculative_tokens = 0;
  std::string speculative_method = {};  // empty: none
  bool v2_runner = false;               // which of the two model runners, where a run speculates
  bool parallel_drafting = false;       // all tokens of a step at once

  // What the engine changed by itself: "block_size: 16 -> 80", in the order of the events.
  std::vector<std::string> rewrites = {};
};

// What keeps something between two tokens, or does not.
enum class LayerRole : std::uint8_t {
  kAttention,    // decoder attention, whatever its window
  kMla,          // multi-head latent attention, dense or sparse
  kIndexer,      // key cache of a sparse attention's indexer
  kEncoderOnly,  // no cache
  kCross,        // cross attention over an encoder's output
  kWindow,       // a window of activations for a convolution, in a cache of blocks
  kState,        // state-space, linear attention, short convolution: a state instead of a cache
};

// One layer that registered itself with the engine, in the order of registration.
// Source: vllm/model_executor/layers/attention/*.py, layers/mamba/*.py.
struct BuiltLayer {
  LayerRole role = LayerRole::kAttention;
  std::int64_t index = 0;                 // of the decoder layer
  std::string name = {};                  // "model.layers.3.self_attn.attn"
  const BackendClass* backend = nullptr;  // null for a state layer without a table row
  std::string reported_backend = {};      // "FLASH_ATTN", "MAMBA1_ATTN"
  std::string class_name = {};            // with the wrapper's prefix: "ChunkedLocalAttention_…"
  std::string implementation = {};        // "FlashAttentionImpl"; empty: the engine has none
  std::optional<std::int64_t> fa_version = {};
  std::string kv_dtype = "auto";
  std::int64_t num_heads = 0;     // of a rank
  std::int64_t num_kv_heads = 0;  // of a rank
  std::int64_t head_size = 0;
  std::int64_t head_size_v = 0;
  std::optional<std::int64_t> window = {};
  std::optional<std::int64_t> chunk = {};
  bool sink = false;
  bool sparse = false;
  std::string mla_prefill = {};  // reported name; empty: none
  // State layers: one shape and one storage type a state.
  std::string state_kind = {};  // "mamba1", "mamba2", "short_conv", "gdn", "linear"
  std::vector<std::vector<std::int64_t>> state_shapes = {};
  std::vector<std::string> state_dtypes = {};
  // What few models set. An indexer's head_size counts the elements of kv_dtype that it keeps of a
  // token: 132 of "uint8" where 128 come with their scale.
  std::optional<std::int64_t> rswa_window = {};
  std::optional<std::int64_t> sink_length = {};     // a static sink's tokens
  std::optional<std::int64_t> own_block_size = {};  // tokens; the run's does not count
  std::int64_t tokens_per_state = 1;                // DeepSeek V4: tokens kept as one
  std::int64_t page_alignment = 1;                  // bytes that a page is rounded up to
  std::string model_version = {};                   // "deepseek_v4": its own packing
  bool clamps_prefix_mask = false;                  // an image's mask stays within the window
  bool shares_cache = false;                        // reads another layer's cache and keeps none
  bool draft = false;                               // of the model that drafts tokens
  // State layers: a prefill checkpoint is kept at multiples of so many tokens; nothing: not kept.
  std::optional<std::int64_t> checkpoint_alignment = {};
};

// What the engine raises while a run is set up; a run may go on after some.
struct RunError {
  std::string stage;  // "config", "model", "dcp", "block size", "metadata builder", …
  std::string type;   // "ValueError"
  std::string text;   // in the engine's words as far as they are known
  std::string rule;   // our id
};
inline RunError run_error(std::string_view stage, std::string_view type, std::string text,
                          std::string_view rule) {
  return {.stage = std::string(stage),
          .type = std::string(type),
          .text = std::move(text),
          .rule = std::string(rule)};
}
inline RunError config_error(std::string_view type, std::string_view rule, std::string text) {
  return run_error("config", type, std::move(text), rule);
}
inline RunError model_error(std::string_view type, std::string_view rule, std::string text) {
  return run_error("model", type, std::move(text), rule);
}

}  // namespace kernelpath::engines::vllm
