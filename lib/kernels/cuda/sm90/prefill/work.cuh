#pragma once

#include "kernels/cuda/sm80/gqa/ptx.cuh"
#include "kernels/cuda/sm90/prefill/config.h"
#include "kernels/cuda/sm90/prefill/kernel.h"

// What a block of the prefill kernel works on, and where rows lie.
namespace kernelpath::kernels::cuda::sm90 {

struct Work {
  int request = 0;
  int head = 0;
  int kv_head = 0;
  int first_query = 0;  // of the tile, in the request
  int num_queries = 0;  // of the request
  int query_begin = 0;  // row of the request's first query
  int seq_len = 0;
  TokenRange tokens = {};       // that some query of the tile sees
  TokenRange seen_by_all = {};  // that all of them see

  __device__ int position_of(int row) const { return seq_len - num_queries + first_query + row; }
  __device__ bool is_read(int token) const { return token >= tokens.first && token < tokens.last; }
};

// The longest tiles start first.
template <class Config>
__device__ Work find_work(const PrefillKernelParams& params) {
  Work work;
  const int block = static_cast<int>(blockIdx.x);
  work.head = block % params.num_heads;
  const int rest = block / params.num_heads;
  work.request = rest % params.num_requests;
  work.first_query = (params.query_tiles - 1 - rest / params.num_requests) * Config::kQueries;
  work.kv_head = static_cast<int>(params.group.quotient(static_cast<std::uint32_t>(work.head)));
  work.query_begin = params.query_start[work.request];
  work.num_queries = params.query_start[work.request + 1] - work.query_begin;
  work.seq_len = params.seq_lens[work.request];
  if (work.first_query >= work.num_queries) return work;
  const int rows = min(Config::kQueries, work.num_queries - work.first_query);
  const TokenRange first = visible_tokens(params.shape, work.position_of(0), work.seq_len);
  const TokenRange last = visible_tokens(params.shape, work.position_of(rows - 1), work.seq_len);
  // Ranges grow with the position.
  work.tokens = {first.first, last.last};
  work.seen_by_all = {last.first, first.last};
  return work;
}

// Byte offset of a chunk of 16 bytes, 8 elements, of a row in panels of `panel_bytes`.
__device__ __forceinline__ int panel_offset(int panel_bytes, int row, int chunk) {
  return (chunk >> 3) * panel_bytes + row * 128 + ((chunk & 7) ^ (row & 7)) * 16;
}

// 16 rows that a warp copies by LaneMap: this lane's first chunk.
template <class Map>
struct LaneRows {
  int row = 0;  // of the 16
  int chunk = 0;

  __device__ explicit LaneRows(int lane) : row(lane / Map::kLanes), chunk(lane % Map::kLanes) {}
  // From the panel_offset() of that chunk to the one `each` turns along the row and `pass` passes
  // down: bits of both that the swizzle mixes are disjoint.
  static __device__ std::uint32_t move(std::uint32_t address, int panel_bytes, int pass, int each) {
    const int row_bits = pass * Map::kRows & 7;
    const int chunk_bits = each * Map::kLanes & 7;
    return (address ^ (row_bits ^ chunk_bits) * 16) + pass * Map::kRows * 128 +
           (each * Map::kLanes >> 3) * panel_bytes;
  }
  __device__ int row_of(int pass) const { return row + pass * Map::kRows; }
  __device__ int chunk_of(int each) const { return chunk + each * Map::kLanes; }
};

}  // namespace kernelpath::kernels::cuda::sm90
