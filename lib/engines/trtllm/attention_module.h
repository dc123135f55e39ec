#pragma once

#include "engines/resolution.h"
#include "engines/trtllm/dispatch.h"
#include "hardware/device.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::trtllm {

// --- identity and geometry of the module (facts 4, A1–A4)
// -----------------------------------------

// The key under which an attention module registers itself: str(layer_idx), or "<idx>_0", "<idx>_1"
// where it is taken; a module without an index registers as "None".
// Source: _torch/attention/attention.py, 047098b7.
std::string register_layer(std::optional<std::int64_t> layer_idx, std::vector<std::string>& taken);

struct ModuleGeometryRequest {
  std::int64_t hidden_size = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::optional<std::int64_t> head_dim_argument;  // given by the layer's class
  std::optional<std::int64_t> head_dim_config;    // only where the config's value is an integer
  std::int64_t tp = 1;
  std::int64_t cp = 1;
  bool attention_dp = false;
  std::string cp_type = "HELIX";
};

// Heads of one rank. All positive sizes; `error` where the module's assertions fail.
struct ModuleGeometry {
  std::int64_t head_dim = 0;
  std::string head_dim_from;           // "argument", "config", "hidden_size // num_heads"
  std::int64_t heads_per_rank = 0;     // before context parallelism
  std::int64_t kv_heads_per_rank = 0;  // ceil: KV heads are replicated where tp > KV heads
  bool kv_heads_replicated = false;
  std::optional<EngineError> error;
};
ModuleGeometry module_geometry(const ModuleGeometryRequest& request);
void append_steps(const ModuleGeometry& geometry, std::vector<Step>& steps);

// Which module carries hooks for a sparse algorithm: "attention", "mla" or "" (none).
// Source: _torch/attention/attention.py, 047098b7.
std::string_view sparse_hook_module(std::string_view algorithm);

// --- instance checks (facts 6.2)
// ------------------------------------------------------------------

// Dimensions of multi-head latent attention; absent is Python's None.
struct MlaDimensions {
  std::optional<std::int64_t> q_lora_rank;
  std::optional<std::int64_t> kv_lora_rank;
  std::optional<std::int64_t> qk_rope_head_dim;
  std::optional<std::int64_t> qk_nope_head_dim;
  std::optional<std::int64_t> v_head_dim;
};

struct CreateAttentionRequest {
  DispatchRequest dispatch;
  std::optional<std::int64_t> attention_chunk_size;       // zero counts as given
  std::optional<MlaDimensions> mla;                       // set: the layer is MLA
  std::optional<std::string> flashinfer_mla_kernel = {};  // variant sparse-strict-fallback only
};

struct CreateAttentionDecision {
  std::optional<DispatchDecision> dispatch;  // not reached where the chunk check fails
  std::string backend_class;                 // empty on error
  std::optional<EngineError> error;
};

// Checks of a backend instance, in the engine's order: chunk, dispatch, MLA, inner MLA kernel.
// Source: _torch/attention/backends/utils.py, 2a3c95e3 and 2ef79ea1.
CreateAttentionDecision create_attention(const CreateAttentionRequest& request);
void append_steps(const CreateAttentionDecision& decision, std::vector<Step>& steps);

// --- RoPE gates (facts 4.1)
// -----------------------------------------------------------------------

struct RopeGateRequest {
  std::string backend_class;
  std::optional<bool> rope_fusion = {};     // what the layer's class asks for
  bool changes_physical_kv_length = false;  // by KV cache compression
  std::string pos_embd;                     // "" (none), "rope", "mrope", or a non-rotary name
};

enum class UnfusedRope : std::uint8_t { kNone, kRotary, kMrope };
std::string_view unfused_rope_name(UnfusedRope module);  // "none", "rotary", "mrope"

struct RopeGateDecision {
  bool rope_fusion = false;
  std::vector<std::string> warnings;  // "ROPE-OFF-KV-EVICTION", "ROPE-OFF-BACKEND"
  UnfusedRope unfused_module = UnfusedRope::kNone;
  bool pos_params_passed_to_backend = false;
};

// Asserts that the capability table holds `backend_class`.
// Source: _torch/attention/attention.py, 047098b7.
RopeGateDecision rope_gate(const RopeGateRequest& request);
void append_steps(const RopeGateDecision& decision, std::vector<Step>& steps);

// --- Llama 4 (facts 4.2)
// --------------------------------------------------------------------------

struct Llama4ChunkRequest {
  std::string attn_backend;  // raw: case matters
  int sm = 0;
  bool spec_config = false;
  std::optional<std::int64_t> max_seq_len;
  std::optional<std::int64_t> attention_chunk_size;
};

struct Llama4ChunkDecision {
  std::optional<std::int64_t> attention_chunk_size;
  std::string rule;  // "L4-KEEP", "L4-BACKEND", "L4-PREBLACKWELL-SPEC", "L4-SHORT-SEQ"
};

// Source: _torch/models/modeling_llama.py (Llama4Attention).
Llama4ChunkDecision llama4_chunk(const Llama4ChunkRequest& request);
void append_steps(const Llama4ChunkDecision& decision, std::vector<Step>& steps);

struct Llama4SeqLenDecision {
  std::int64_t inferred_max_seq_len = 0;
  bool warning = false;                    // the backend is not TRTLLM in any case: 8192
  bool attention_chunk_size_kept = false;  // the backend is exactly "TRTLLM"
  bool uncapped_without_chunking = false;  // neither: long prompts get full attention silently
};

// `uncapped` is what max_seq_len inference gives without this model's own rule.
// Source: _torch/models/modeling_llama.py.
Llama4SeqLenDecision llama4_inferred_max_seq_len(std::string_view attn_backend,
                                                 std::int64_t uncapped);
void append_steps(const Llama4SeqLenDecision& decision, std::vector<Step>& steps);

// --- MLA (facts 4.3) and skip-correction (7.1)
// ----------------------------------------------------

struct FlashMlaDecision {
  bool enabled = false;
  std::optional<std::int64_t> latent_head_dim;  // kv_lora_rank + qk_rope_head_dim
};

// The flag of ModelConfig: backend exactly "TRTLLM", both ranks non-zero, sum 576, capability 9.0.
// Source: _torch/model_config.py, 008e0af8.
FlashMlaDecision enable_flash_mla(std::string_view attn_backend, hardware::Capability capability,
                                  std::optional<std::int64_t> kv_lora_rank,
                                  std::optional<std::int64_t> qk_rope_head_dim);
void append_steps(const FlashMlaDecision& decision, std::vector<Step>& steps);

// The two backend instances of an MLA layer: one MQA over the latent cache for generation, and a
// dense one for context where the sparse algorithm needs it.
struct MlaInstances {
  std::int64_t mqa_head_dim = 0;  // kv_lora_rank + qk_rope_head_dim, one KV head
  std::int64_t mha_head_dim = 0;  // qk_nope_head_dim + qk_rope_head_dim
  std::int64_t mha_v_head_dim = 0;
};
MlaInstances mla_instances(const MlaDimensions& dimensions);

struct SkipCorrectionDecision {
  double requested = 0;
  double effective = 0;
  bool warning = false;
};

// Source: _torch/attention/backends/trtllm.py, 017aa0ca.
SkipCorrectionDecision skip_correction_threshold(int sm, bool mla, double threshold);
void append_steps(const SkipCorrectionDecision& decision, std::vector<Step>& steps);

}  // namespace kernelpath::engines::trtllm
