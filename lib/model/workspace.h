#pragma once

#include "base/huge_memory.h"
#include "base/result.h"
#include "comm/placement.h"
#include "model/model.h"
#include "model/spec.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernelpath::model {

// The activations of a step; n tokens, m of them with logits. Parts that no layer of the model
// needs are null.
struct Buffers {
  float* x = nullptr;                  // [n, hidden]: the residual stream
  float* h = nullptr;                  // [n, hidden]: its norm
  float* y = nullptr;                  // [n, hidden]: what a block adds
  float* y2 = nullptr;                 // [n, hidden]: the second part of it
  float* last = nullptr;               // [m, hidden]
  float* qkv = nullptr;                // [n, q + 2 * kv]
  float* o = nullptr;                  // [n, heads * v_head_dim]
  float* q_a = nullptr;                // [n, q_lora_rank]
  float* q = nullptr;                  // [n, heads, nope + rope]
  float* latent = nullptr;             // [n, kv_lora_rank + rope]
  float* absorbed = nullptr;           // [n, heads, kv_lora_rank + rope]
  float* latent_out = nullptr;         // [n, heads, kv_lora_rank]
  float* index_q = nullptr;            // [n, index heads, index head_dim]
  float* index_k = nullptr;            // [n, index head_dim]
  float* index_weights = nullptr;      // [n, index heads]
  float* index_scores = nullptr;       // [threads, longest]
  std::int32_t* selected = nullptr;    // [n, index_topk]
  float* delta_in = nullptr;           // 3 x [n, width]: q, k, v before the convolution
  float* delta = nullptr;              // 3 x [n, width]: after it
  float* delta_low = nullptr;          // 2 x [n, head_dim]
  float* delta_decay = nullptr;        // [n, width]
  float* delta_gate = nullptr;         // [n, width]
  float* delta_beta = nullptr;         // [n, heads]
  float* delta_out = nullptr;          // [n, width]
  float* gate_up = nullptr;            // [n, 2 * intermediate]
  float* inner = nullptr;              // [n, intermediate]
  float* router = nullptr;             // [n, experts]
  std::int32_t* expert_ids = nullptr;  // [n, top_k]
  float* expert_weights = nullptr;     // [n, top_k]
  float* expert_scratch = nullptr;
  std::int32_t* expert_rows = nullptr;
  std::vector<float*> cos = {};  // one a rotary table: [n, dims / 2]
  std::vector<float*> sin = {};
  float* temperature = nullptr;          // [n]
  std::int64_t* rope_lengths = nullptr;  // [n]
  // Ranks that split tensors.
  std::int32_t* rank_tokens = nullptr;  // [n]: rows of this rank's embedding, -1: another's
  float* rank_logits = nullptr;         // [m, widest part of the vocabulary]
  float* all_logits = nullptr;          // [tp, m, widest part of the vocabulary]
  float* norm_part = nullptr;           // [n, q], of norms over all heads
  float* norm_parts = nullptr;          // [tp, n, q]
  float* norm_rows = nullptr;           // [n, tp * q]
  // Ranks that split the cache.
  float* lse = nullptr;                 // [n, heads]
  float* shard_o = nullptr;             // [dcp, n, heads, v_head_dim or kv_lora_rank]
  float* shard_lse = nullptr;           // [dcp, n, heads]
  std::int64_t* index_slots = nullptr;  // [n]: of index keys, which every rank keeps
};

// The memory of the buffers; grows to the largest step seen.
class Workspace {
 public:
  // Bytes that a step of that size needs.
  static std::int64_t bytes(const DecoderSpec& spec, const comm::Placement& ranks,
                            const StepSize& size);

  // Lays out the buffers of a step. Error: kResource.
  Result<void> prepare(const DecoderSpec& spec, const comm::Placement& ranks, const StepSize& size);
  [[nodiscard]] const Buffers& buffers() const { return buffers_; }

 private:
  HugeMemory memory_;
  Buffers buffers_;
};

}  // namespace kernelpath::model
