#include "base/float_types.h"
#include "kernels/cuda/append.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// RoPE, quantisation and the write into the cache in one pass.
//
// Tile: a lane owns 8 adjacent elements of a row (Q, K or V of one head of one token), as many rows
// as fit share a warp. Bytes moved: each input once, each output once. Limit: the copy rate.
// Rotation partners that lie half a rotary dimension apart come from another lane of the warp.
namespace kernelpath::kernels::cuda {
namespace {

using attention::DataType;

constexpr int kThreads = 256;
constexpr int kVector = 8;  // elements of a lane

// How rows are numbered: a token's Q heads, its K heads, its V heads.
struct AppendShape {
  int lanes_per_row = 0;
  int rows_per_warp = 0;
  int q_heads = 0;
  int rows_per_token = 0;
};

struct Vector {
  float values[kVector];
};

__device__ Vector load_vector(const void* data, std::int64_t element, bool bf16) {
  const uint4 raw =
      *reinterpret_cast<const uint4*>(static_cast<const std::uint16_t*>(data) + element);
  const std::uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
  Vector out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (bf16) {
      out.values[2 * i] = __uint_as_float(words[i] << 16);
      out.values[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000U);
    } else {
      const float2 pair = __half22float2(*reinterpret_cast<const __half2*>(&words[i]));
      out.values[2 * i] = pair.x;
      out.values[2 * i + 1] = pair.y;
    }
  }
  return out;
}

__device__ std::uint32_t pack(float low, float high, bool bf16) {
  if (bf16) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  }
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

__device__ void store_16(std::byte* to, const Vector& vector, bool bf16) {
  uint4 raw;
  raw.x = pack(vector.values[0], vector.values[1], bf16);
  raw.y = pack(vector.values[2], vector.values[3], bf16);
  raw.z = pack(vector.values[4], vector.values[5], bf16);
  raw.w = pack(vector.values[6], vector.values[7], bf16);
  *reinterpret_cast<uint4*>(to) = raw;
}

template <class Narrow>
__device__ void store_8(std::byte* to, const Vector& vector, Narrow narrow) {
  uint2 raw = {0, 0};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    raw.x |= static_cast<std::uint32_t>(narrow(vector.values[i])) << (8 * i);
    raw.y |= static_cast<std::uint32_t>(narrow(vector.values[4 + i])) << (8 * i);
  }
  *reinterpret_cast<uint2*>(to) = raw;
}

// Half a block of 16: the other half lies in the next or the previous lane. `lanes` are those that
// come here together.
__device__ void store_nvfp4(const attention::PagedRows& rows, std::int64_t element,
                            const Vector& vector, float tensor_scale, bool first_half) {
  float largest = 0.0F;
#pragma unroll
  for (const float value : vector.values) largest = fmaxf(largest, fabsf(value));
  largest = fmaxf(largest, __shfl_xor_sync(__activemask(), largest, 1));
  const std::uint8_t scale = nvfp4_block_scale(largest, tensor_scale);
  const float divisor = e4m3_to_f32(scale) * tensor_scale;
  std::uint32_t codes = 0;
  if (divisor != 0.0F) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      codes |= static_cast<std::uint32_t>(f32_to_e2m1(vector.values[i] / divisor)) << (4 * i);
    }
  }
  *reinterpret_cast<std::uint32_t*>(rows.data + element / 2) = codes;
  if (first_half) rows.block_scales[element / attention::kNvfp4Block] = std::byte{scale};
}

__device__ void store_cached(const attention::PagedRows& rows, std::int64_t element, Vector vector,
                             float scale, bool first_half) {
  if (rows.type != DataType::kNvfp4 && scale != 1.0F) {
#pragma unroll
    for (float& value : vector.values) value /= scale;
  }
  switch (rows.type) {
    case DataType::kF32:
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        reinterpret_cast<float*>(rows.data)[element + i] = vector.values[i];
      }
      break;
    case DataType::kBf16:
      store_16(rows.data + element * 2, vector, true);
      break;
    case DataType::kF16:
      store_16(rows.data + element * 2, vector, false);
      break;
    case DataType::kFp8E4m3:
      store_8(rows.data + element, vector, [](float value) { return f32_to_e4m3(value); });
      break;
    case DataType::kFp8E5m2:
      store_8(rows.data + element, vector, [](float value) { return f32_to_e5m2(value); });
      break;
    case DataType::kNvfp4:
      store_nvfp4(rows, element, vector, scale, first_half);
      break;
  }
}

// Rotates a row's vectors by the angles of its position. All lanes of the warp call it, with
// `rotate` false where nothing is to be turned.
__device__ Vector rotate_vector(const RopeAppendParams& params, const Vector& own, int first,
                                std::int32_t position, bool rotate) {
  const int half = static_cast<int>(params.rotary_dim) / 2;
  const float* const cosines =
      params.cos_sin + static_cast<std::int64_t>(position) * params.rotary_dim;
  Vector out = own;
  if (params.interleaved) {
    if (!rotate) return out;
#pragma unroll
    for (int i = 0; i < kVector; i += 2) {
      const float c = cosines[(first + i) / 2];
      const float s = cosines[half + (first + i) / 2];
      out.values[i] = own.values[i] * c - own.values[i + 1] * s;
      out.values[i + 1] = own.values[i + 1] * c + own.values[i] * s;
    }
    return out;
  }
  const bool lower = first < half;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int partner = (rotate ? lane + (lower ? half : -half) / kVector : lane) & 31;
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    const float other = __shfl_sync(~0U, own.values[i], partner);
    if (!rotate) continue;
    const int angle = first + i - (lower ? 0 : half);
    const float c = cosines[angle];
    const float s = cosines[half + angle];
    out.values[i] = lower ? own.values[i] * c - other * s : own.values[i] * c + other * s;
  }
  return out;
}

__global__ void __launch_bounds__(kThreads)
    append_kernel(const __grid_constant__ RopeAppendParams params, const AppendShape shape,
                  std::int64_t num_rows) {
  const bool bf16 = params.type == DataType::kBf16;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t warp = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  const int lane_row = lane / shape.lanes_per_row;
  const std::int64_t row = warp * shape.rows_per_warp + lane_row;
  const int first = lane % shape.lanes_per_row * kVector;
  const bool has_row = lane_row < shape.rows_per_warp && row < num_rows;

  const std::int64_t token = has_row ? row / shape.rows_per_token : 0;
  int head = has_row ? static_cast<int>(row % shape.rows_per_token) : 0;
  const int kv_heads = static_cast<int>(params.num_kv_heads);
  const bool is_q = head < shape.q_heads;
  if (!is_q) head -= shape.q_heads;
  const bool is_v = !is_q && head >= kv_heads;
  if (is_v) head -= kv_heads;

  const std::int64_t dim = is_v ? params.v_head_dim : params.head_dim;
  const void* const from = is_q ? params.q : is_v ? params.v : params.k;
  const std::int64_t stride = is_q ? params.q_stride : is_v ? params.v_stride : params.k_stride;
  const std::int64_t at = token * stride + head * dim + first;
  const bool active = has_row && first < dim;
  Vector vector = {};
  if (active) vector = load_vector(from, at, bf16);
  if (params.rotary_dim > 0) {
    const bool rotate = active && !is_v && first < params.rotary_dim;
    const std::int32_t position = rotate ? params.positions[token] : 0;
    vector = rotate_vector(params, vector, first, position, rotate);
  }
  if (!active) return;
  if (is_q) {
    store_16(reinterpret_cast<std::byte*>(static_cast<std::uint16_t*>(params.q) + at), vector,
             bf16);
    return;
  }
  const std::int64_t slot = params.slot_mapping[token];
  if (slot < 0) return;
  const attention::PagedRows& rows = is_v ? params.v_rows : params.k_rows;
  const float* const head_scales = is_v ? params.v_head_scales : params.k_head_scales;
  const float scale = rows.scale * (head_scales != nullptr ? head_scales[head] : 1.0F);
  const std::int64_t element = slot / params.page_size * rows.page_stride +
                               slot % params.page_size * rows.token_stride +
                               head * rows.head_stride + first;
  store_cached(rows, element, vector, scale, first % attention::kNvfp4Block == 0);
}

}  // namespace

cudaError_t launch_append_kernel(const RopeAppendParams& params, cudaStream_t stream) {
  const std::int64_t dim =
      params.head_dim > params.v_head_dim ? params.head_dim : params.v_head_dim;
  AppendShape shape;
  shape.lanes_per_row = static_cast<int>(dim / kVector);
  shape.rows_per_warp = 32 / shape.lanes_per_row;
  shape.q_heads = params.rotary_dim > 0 ? static_cast<int>(params.num_heads) : 0;
  const auto kv_sides = params.v_head_dim > 0 ? 2 : 1;
  shape.rows_per_token = shape.q_heads + kv_sides * static_cast<int>(params.num_kv_heads);
  const std::int64_t rows = params.num_tokens * shape.rows_per_token;
  if (rows == 0) return cudaSuccess;
  const std::int64_t per_block = std::int64_t{kThreads} / 32 * shape.rows_per_warp;
  const auto blocks = static_cast<unsigned>((rows + per_block - 1) / per_block);
  append_kernel<<<blocks, kThreads, 0, stream>>>(params, shape, rows);
  return cudaGetLastError();
}

}  // namespace kernelpath::kernels::cuda
