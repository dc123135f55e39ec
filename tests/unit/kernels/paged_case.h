#pragma once

#include "attention/params.h"
#include "kernels/cpu/isa.h"
#include "kv/layout.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace kernelpath::testing {

// How the tokens of a case are kept.
struct Storage {
  attention::DataType type = attention::DataType::kF32;
  attention::KvLayout layout = attention::KvLayout::kNhd;
  std::int64_t page_size = 16;
  float k_scale = 1.0F;
  float v_scale = 1.0F;
};

// Heads of one size for K and V (V: `v_head_dim`, where it is another), with the usual scale.
attention::Geometry heads(std::int64_t num_heads, std::int64_t num_kv_heads,
                          std::int64_t head_dim = 128,
                          std::optional<std::int64_t> v_head_dim = std::nullopt);

struct Lengths {
  std::int64_t queries = 1;
  std::int64_t seq_len = 1;
};

struct Output {
  std::vector<float> o;    // [tokens, num_heads, v_head_dim]
  std::vector<float> lse;  // [tokens, num_heads]
};

// A step's requests with their keys and values in a paged cache: pages in shuffled order, and
// every slot that holds no token filled with bytes that are NaN in every type.
class PagedCase {
 public:
  // Random queries, keys and values.
  PagedCase(const attention::Geometry& geometry, std::vector<Lengths> lengths,
            const Storage& storage, unsigned seed = 1);
  // The values of one request: q [queries, num_heads, head_dim], k and v [seq_len, num_kv_heads,
  // …].
  struct Values {
    std::vector<float> q, k, v;
  };
  PagedCase(const attention::Geometry& geometry, const Lengths& lengths, const Storage& storage,
            Values values);

  [[nodiscard]] Output run(kernels::cpu::Isa isa, int threads = 1);

  // For tests that need other pages than the shuffled ones; write them with fill() again.
  std::vector<std::int32_t> block_table;
  std::int64_t block_table_stride = 0;
  std::vector<std::int32_t> query_start{0};
  std::vector<std::int32_t> seq_lens;
  std::vector<float> sinks;
  std::vector<std::int32_t> selected;
  std::int64_t selected_stride = 0;
  attention::Geometry geometry;
  attention::KvShard shard;
  Storage storage;
  std::vector<float> q;               // of all requests
  std::vector<std::vector<float>> k;  // [requests]: [seq_len, num_kv_heads, head_dim]
  std::vector<std::vector<float>> v;  // [requests]: [seq_len, num_kv_heads, v_head_dim]

  // Writes k and v into fresh pages; `shard` says which tokens.
  void fill();
  [[nodiscard]] attention::AttentionParams params(Output& output) const;

 private:
  void add_request(const Lengths& lengths, Values values);
  void make_block_table(unsigned seed);

  std::vector<std::byte> k_bytes_, v_bytes_, k_scales_, v_scales_;
  attention::PagedRows k_rows_, v_rows_;
};

// Largest differences of two outputs; infinite where only one of two values is finite, or where
// infinities differ.
struct Difference {
  double o = 0;
  double lse = 0;
};
Difference difference(const Output& a, const Output& b);

// The instruction sets of this machine.
std::vector<kernels::cpu::Isa> isas();

}  // namespace kernelpath::testing
