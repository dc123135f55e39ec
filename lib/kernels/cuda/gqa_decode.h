#pragma once

#include "attention/params.h"
#include "base/result.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/stream.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Attention of MHA, GQA and MQA over a paged cache, made for decoding: one query a request, or up
// to eight (speculative decoding). More are right as well, and read the keys again for every 32
// rows of queries and heads (fewer with nvfp4 and head size 256). docs/kernels/gqa-decode.md has
// the design and what it reaches.
namespace kernelpath::kernels::cuda {

// All pointers are the device's. Strides and sizes count elements.
struct DecodeParams {
  attention::Geometry geometry = {};
  // query_start, seq_lens and block_table are read by plan_decode() and launch_decode(), not on the
  // host: a captured graph follows what they hold at its replay.
  attention::BatchView batch = {};
  std::int64_t max_queries = 1;  // of any request; more than that are right, and slower
  attention::PagedRows k = {};
  attention::PagedRows v = {};
  // [num_kv_heads], multiplied with the `scale` of the side; null: none.
  const float* k_head_scales = nullptr;
  const float* v_head_scales = nullptr;
  // Of q and o: kBf16 or kF16. Queries take the type of a 16-bit cache where the two differ.
  attention::DataType query_type = attention::DataType::kBf16;
  const void* q = nullptr;         // [tokens, num_heads, head_dim]
  std::int64_t q_stride = 0;       // between tokens; 0: num_heads * head_dim
  void* o = nullptr;               // [tokens, num_heads, v_head_dim]
  std::int64_t o_stride = 0;       // between tokens; 0: num_heads * v_head_dim
  attention::NaturalLse lse = {};  // [tokens, num_heads]
  const float* sinks = nullptr;    // [num_heads]: one more logit in the denominator; null: none
};

// How the work is spread. The zeros mean "the kernel's own choice"; others are for measurements.
struct DecodeTuning {
  std::int32_t tile_tokens = 0;   // of the plan; rounded up to a step of a warp
  std::int32_t item_charge = -1;  // what the plan counts for starting an item, in tiles; -1: own
  std::int32_t workers = 0;       // thread blocks
};

// Memory of one stream's calls: partial results, counters and the plan. The caller allocates it
// once for the largest batch; nothing is allocated by a launch. Two streams need two of them.
struct DecodeWorkspace {
  std::byte* data = nullptr;  // aligned to 256
  std::int64_t bytes = 0;
};

// Whether the kernels can run this call on this device, by kDecodeCapabilities (capabilities.h).
// The error (kUnavailable) names what was asked for and everything that is supported in its place.
// Reads no device memory.
Result<void> check_decode(const DecodeParams& params, const DeviceInfo& device);

// The bytes a workspace needs for calls of this geometry with up to batch.num_requests requests.
std::int64_t decode_workspace_bytes(const DecodeParams& params, const DeviceInfo& device,
                                    const DecodeTuning& tuning = {});

// Cuts the work of a batch, on the device: one small launch per step that serves all layers of the
// same geometry (num_kv_heads, group, window, chunk), whose launch_decode() calls follow it on the
// stream. Capture it with them: lengths may change between replays. Resets the workspace's
// counters, so that a workspace is good again whatever happened to the launch before.
Result<void> plan_decode(const DecodeParams& params, const DeviceInfo& device,
                         const DecodeWorkspace& workspace, StreamView stream,
                         const DecodeTuning& tuning = {});

// One launch: attention over the batch that plan_decode() saw, merged in the order of the keys.
// Equal inputs give equal bits. `tuning` must be the plan's.
Result<void> launch_decode(const DecodeParams& params, const DeviceInfo& device,
                           const DecodeWorkspace& workspace, StreamView stream,
                           const DecodeTuning& tuning = {});

// What would run, for reports: "sm80_gqa<fp8_e4m3, 128, 8>", or "none"; and all that there is.
std::string decode_kernel_name(const DecodeParams& params);
std::vector<std::string> decode_kernel_names();

}  // namespace kernelpath::kernels::cuda
