#pragma once

#include "attention/data_type.h"
#include "attention/lse.h"

#include <cstddef>
#include <cstdint>

// What attention kernels read: plain data without ownership. All strides count elements (two to a
// byte for kNvfp4) and are 64 bits wide: a page times its stride passes 2^31 in caches of a few
// GiB.
namespace kernelpath::attention {

// The order of tokens and heads inside a page.
enum class KvLayout : std::uint8_t {
  kNhd,  // [page_size, num_kv_heads, head_dim]
  kHnd,  // [num_kv_heads, page_size, head_dim]
};

// One side, K or V, of one layer's paged cache. The row of slot s of page p for head h starts at
// element p * page_stride + s * token_stride + h * head_stride; its elements are adjacent.
struct PagedRows {
  std::byte* data = nullptr;
  std::byte* block_scales = nullptr;  // kNvfp4: e4m3; the one of element e lies at e / kNvfp4Block
  std::int64_t page_stride = 0;
  std::int64_t token_stride = 0;
  std::int64_t head_stride = 0;
  DataType type = DataType::kF32;
  float scale = 1.0F;  // value = stored value (times its block scale) * scale
};

// What the layer fixes, and no step changes.
struct Geometry {
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;  // divides num_heads; query head h reads KV head h / (ratio)
  std::int64_t head_dim = 0;      // of Q and K
  std::int64_t v_head_dim = 0;  // of V and the output; at most head_dim where V lies inside K (MLA)
  float softmax_scale = 1.0F;
  float softcap = 0.0F;     // c: score -> c * tanh(score / c), before the mask; 0: none
  std::int64_t window = 0;  // w: keys at q_pos - w < k_pos <= q_pos only; 0: all
  std::int64_t chunk = 0;   // c: keys with k_pos / c == q_pos / c, k_pos <= q_pos only; 0: all
  bool causal = true;       // keys with k_pos <= q_pos only

  friend bool operator==(const Geometry&, const Geometry&) = default;
};

// Which tokens of every request this rank's cache holds (decode context parallelism). The local
// slot j is position (j / interleave * count + rank) * interleave + j % interleave.
struct KvShard {
  std::int64_t rank = 0;
  std::int64_t count = 1;
  std::int64_t interleave = 1;

  // How many of the positions [0, position) this rank holds; non-decreasing, so that a range of
  // positions is a range of local slots.
  [[nodiscard]] constexpr std::int64_t slots_before(std::int64_t position) const {
    if (count == 1) return position;
    const std::int64_t round = interleave * count;
    std::int64_t rest = position % round - rank * interleave;
    rest = rest < 0 ? 0 : rest;
    return position / round * interleave + (rest < interleave ? rest : interleave);
  }
  [[nodiscard]] constexpr std::int64_t position_of(std::int64_t slot) const {
    return (slot / interleave * count + rank) * interleave + slot % interleave;
  }
  [[nodiscard]] constexpr bool holds(std::int64_t position) const {
    return position / interleave % count == rank;
  }
};

// The requests of a step. Query i of request r sits at position seq_lens[r] - query_len(r) + i.
struct BatchView {
  std::int64_t num_requests = 0;
  const std::int32_t* query_start = nullptr;  // [num_requests + 1]: first token row of each request
  const std::int32_t* seq_lens = nullptr;     // [num_requests]: tokens, this step's included
  const std::int32_t* block_table = nullptr;  // [num_requests, block_table_stride]: page ids
  std::int64_t block_table_stride = 0;
  std::int64_t page_size = 0;
};

struct AttentionPlan;  // attention/plan.h

// Attention of query rows over a paged cache. The output of a row that sees no key is 0 and its lse
// -inf. Slots that no row sees may hold anything, NaN included.
//
// K and V that lie together without pages (request r from row first[r] on) are read by
// page_size = the longest request, block_table = first, block_table_stride = 1 and
// page_stride = token_stride.
struct AttentionParams {
  Geometry geometry = {};
  BatchView batch = {};
  KvShard shard = {};
  PagedRows k = {};
  PagedRows v;                // MLA: the same storage as k, of which v_head_dim elements are read
  const float* q = nullptr;   // [tokens, num_heads, head_dim]
  std::int64_t q_stride = 0;  // between tokens; 0: num_heads * head_dim
  float* o = nullptr;         // [tokens, num_heads, v_head_dim]
  std::int64_t o_stride = 0;  // between tokens; 0: num_heads * v_head_dim
  NaturalLse lse = {};        // [tokens, num_heads]
  const float* sinks = nullptr;  // [num_heads]: one more logit in the denominator; null: none
  // Index-sparse attention: the positions each query row may see, in any order, without repetition,
  // -1 for "no more"; the masks of the geometry hold as well. Null: every position.
  const std::int32_t* selected = nullptr;  // [tokens, selected_stride]
  std::int64_t selected_stride = 0;
  // The work of this batch and geometry, where it was planned for several layers at once; null: the
  // kernels plan for themselves. Not used with `selected`.
  const AttentionPlan* plan = nullptr;
  bool reference = false;  // by definition, sums in float64 (backend VANILLA)
};

// Writes the K and V rows of a step's tokens into the cache, converted to its type (saturating).
struct AppendParams {
  std::int64_t num_tokens = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t v_head_dim = 0;  // 0: no V side (MLA keeps one row for both)
  const float* k = nullptr;     // [num_tokens, num_kv_heads, head_dim]
  std::int64_t k_stride = 0;    // between tokens; 0: num_kv_heads * head_dim
  const float* v = nullptr;     // [num_tokens, num_kv_heads, v_head_dim]
  std::int64_t v_stride = 0;    // between tokens; 0: num_kv_heads * v_head_dim
  // [num_tokens]: page * page_size + slot in the page; -1 skips the token
  const std::int64_t* slot_mapping = nullptr;
  std::int64_t page_size = 0;
  PagedRows k_rows = {};
  PagedRows v_rows = {};
};

// What a device offers to attention layers. A call does the calling thread's share of the work and
// returns when all of it is done.
class Kernels {
 public:
  virtual ~Kernels() = default;
  virtual void append(const AppendParams& params) = 0;
  virtual void attention(const AttentionParams& params) = 0;
};

}  // namespace kernelpath::attention
