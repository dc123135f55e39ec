#pragma once

#include "attention/layer_request.h"
#include "attention/metadata.h"
#include "attention/params.h"

#include <cstdint>

// Attention layers: built from geometry alone, before any weight or cache exists. What changes from
// step to step comes with the call, and in one way only: nothing that a layer fixes can be given to
// forward() again, and the other way round.
namespace kernelpath::attention {

// What a step gives to an ordinary attention layer.
struct ForwardArgs {
  const float* q = nullptr;   // [tokens, num_heads, head_dim]
  std::int64_t q_stride = 0;  // between tokens; 0: num_heads * head_dim
  float* o = nullptr;         // [tokens, num_heads, v_head_dim]
  std::int64_t o_stride = 0;  // between tokens; 0: num_heads * v_head_dim
  PagedRows k = {};           // this step's rows included
  PagedRows v = {};
  const float* sinks = nullptr;  // [num_heads]; of layers that were built with sinks for one rank
  NaturalLse lse = {};           // [tokens, num_heads]; of layers that were built to return it
  const std::int32_t* selected = nullptr;  // [tokens, selected_stride]; of sparse layers
  std::int64_t selected_stride = 0;
};

class Attention {
 public:
  // Errors: kConfigValue (sizes that do not go together, an MLA request), kUnavailable with every
  // reason against this backend.
  static Result<Attention> make(const BackendRow& row, const LayerRequest& request);

  [[nodiscard]] const BackendRow& backend() const { return *row_; }
  [[nodiscard]] const Geometry& geometry() const { return request_.geometry; }
  [[nodiscard]] MetadataBuilder metadata_builder(const KvShard& shard = {}) const;

  void forward(Kernels& kernels, const StepMetadata& metadata, const ForwardArgs& args) const;

 private:
  Attention(const BackendRow& row, const LayerRequest& request) : row_(&row), request_(request) {}

  const BackendRow* row_;
  LayerRequest request_;
};

// Absorbed queries over the latent rows of the cache.
struct MqaArgs {
  const float* q = nullptr;                // [tokens, num_heads, kv_lora_rank + qk_rope_head_dim]
  std::int64_t q_stride = 0;               // between tokens; 0: dense
  float* o = nullptr;                      // [tokens, num_heads, kv_lora_rank]
  std::int64_t o_stride = 0;               // between tokens; 0: dense
  PagedRows rows = {};                     // latent and rotated part, this step's rows included
  NaturalLse lse = {};                     // of layers that were built to return it
  const std::int32_t* selected = nullptr;  // of sparse layers
  std::int64_t selected_stride = 0;
};

// Queries over keys and values that were expanded from the latents of all tokens of each request,
// one request behind the other and without pages.
struct MhaArgs {
  const float* q = nullptr;             // [tokens, num_heads, qk_nope_head_dim + qk_rope_head_dim]
  std::int64_t q_stride = 0;            // between tokens; 0: dense
  float* o = nullptr;                   // [tokens, num_heads, v_head_dim]
  std::int64_t o_stride = 0;            // between tokens; 0: dense
  const float* k = nullptr;             // [rows, num_heads, qk_nope_head_dim + qk_rope_head_dim]
  const float* v = nullptr;             // [rows, num_heads, v_head_dim]
  const std::int32_t* first = nullptr;  // [num_requests]: row of each request's first token
  NaturalLse lse = {};                  // of layers that were built to return it
};

// Multi-head latent attention. It has two forms and no forward(): which one serves a step is the
// caller's decision, since each reads other inputs.
class MlaAttention {
 public:
  // Errors: kConfigValue (one of the five sizes is missing), kUnavailable with every reason.
  static Result<MlaAttention> make(const BackendRow& row, const LayerRequest& request);

  [[nodiscard]] const BackendRow& backend() const { return *row_; }
  // For forward_mqa(); forward_mha() takes the same metadata.
  [[nodiscard]] MetadataBuilder metadata_builder(const KvShard& shard = {}) const;

  void forward_mqa(Kernels& kernels, const StepMetadata& metadata, const MqaArgs& args) const;
  void forward_mha(Kernels& kernels, const StepMetadata& metadata, const MhaArgs& args) const;

 private:
  MlaAttention(const BackendRow& row, const LayerRequest& request)
      : row_(&row), request_(request) {}

  const BackendRow* row_;
  LayerRequest request_;
};

}  // namespace kernelpath::attention
