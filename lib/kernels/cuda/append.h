#pragma once

#include "attention/params.h"
#include "base/result.h"
#include "kernels/cuda/stream.h"

#include <cstdint>

// Puts the keys and values of a step's tokens into the paged cache: rotates K (and Q), quantises
// and writes in one launch.
namespace kernelpath::kernels::cuda {

// All pointers are the device's. Strides count elements.
struct RopeAppendParams {
  std::int64_t num_tokens = 0;
  std::int64_t num_heads = 0;  // of q; 0: there is no q to rotate
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t v_head_dim = 0;
  attention::DataType type = attention::DataType::kBf16;  // of q, k and v: kBf16 or kF16
  void* q = nullptr;          // [num_tokens, num_heads, head_dim], rotated in place
  std::int64_t q_stride = 0;  // between tokens; 0: num_heads * head_dim
  const void* k = nullptr;    // [num_tokens, num_kv_heads, head_dim]
  std::int64_t k_stride = 0;
  const void* v = nullptr;  // [num_tokens, num_kv_heads, v_head_dim]
  std::int64_t v_stride = 0;
  // Rotation: the first rotary_dim elements of each Q and K row by cos_sin[position]; 0: none.
  std::int64_t rotary_dim = 0;
  bool interleaved = false;                 // pairs (2i, 2i + 1); otherwise (i, i + rotary_dim / 2)
  const float* cos_sin = nullptr;           // [positions, rotary_dim]: cosines, then sines
  const std::int32_t* positions = nullptr;  // [num_tokens]
  // [num_tokens]: page * page_size + slot in the page; -1 skips the cache for this token
  const std::int64_t* slot_mapping = nullptr;
  std::int64_t page_size = 0;
  attention::PagedRows k_rows = {};
  attention::PagedRows v_rows = {};
  const float* k_head_scales = nullptr;  // [num_kv_heads], multiplied with k_rows.scale; or null
  const float* v_head_scales = nullptr;
};

// Refuses (kUnavailable) shapes and types that the kernel does not have, with what it has.
Result<void> check_append(const RopeAppendParams& params);
// One launch. fp8 saturates; nvfp4 scales a block by its largest magnitude over 6, as the CPU's.
Result<void> launch_append(const RopeAppendParams& params, StreamView stream);

}  // namespace kernelpath::kernels::cuda
