#pragma once

#include "attention/backend_table.h"
#include "attention/params.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::attention {

// The five sizes of multi-head latent attention. All of them are needed before a layer is built;
// only q_lora_rank may be 0, where queries have no latent of their own.
struct MlaDims {
  std::optional<std::int64_t> q_lora_rank = {};
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;

  friend bool operator==(const MlaDims&, const MlaDims&) = default;
};

// Everything that an attention layer needs of a backend. An immutable value: the selector answers
// for it and remembers the answer under it.
struct LayerRequest {
  hardware::Platform platform = hardware::Platform::kCpu;
  // Of what the kernels see; MLA: num_kv_heads, head_dim and v_head_dim follow from `mla`.
  Geometry geometry = {};
  std::optional<MlaDims> mla = {};
  bool sparse = false;
  bool sinks = false;
  DataType kv_type = DataType::kF32;
  KvLayout layout = KvLayout::kNhd;
  std::int64_t page_size = 16;
  // The base in which the caller merges log-sum-exps; nothing: it asks for none.
  std::optional<LogBase> lse_base = {};
  std::int64_t context_parallel = 1;
  bool fused_rope = false;
  bool fused_qkv = false;
  // A KV compression that changes how many rows a position has (then rows have no position left by
  // which a kernel could rotate them).
  bool compressed_length = false;
  GraphLevel graph_level = GraphLevel::kNever;  // that the caller needs
  // The longest sequence that the layer will see; 0: unknown.
  std::int64_t max_seq_len = 0;

  [[nodiscard]] FeatureSet features() const;

  friend bool operator==(const LayerRequest&, const LayerRequest&) = default;
};

// The geometry that kernels see of MLA's two forms: over the latent (one KV head, values inside the
// keys), and over keys and values that were expanded for every head.
Geometry mqa_geometry(const Geometry& layer, const MlaDims& dims);
Geometry mha_geometry(const Geometry& layer, const MlaDims& dims);

// One reason against a backend.
struct Refusal {
  std::string rule;    // "KP-HEAD-DIM"
  std::string reason;  // one sentence: what was asked, what there is
};

// Everything that speaks against a layer of this kind on this backend, in the order of the rules;
// empty: it can be built. Chunked attention on a backend without it is refused unless the longest
// sequence is known to fit into one chunk, where the answers are the same.
std::vector<Refusal> refusals(const BackendRow& row, const LayerRequest& request);

// What is wrong with the request itself, whatever the backend: sizes that do not go together.
std::vector<Refusal> request_faults(const LayerRequest& request);

// Whether the backend rotates inside: asked for, claimed, and not ruled out by a compression of the
// cache.
bool rope_fused(const BackendRow& row, const LayerRequest& request);

// Ids and one-sentence summaries of all rules above.
struct RefusalRule {
  std::string_view id;
  std::string_view summary;
};
std::span<const RefusalRule> refusal_rules();

}  // namespace kernelpath::attention
