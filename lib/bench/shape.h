#pragma once

#include "attention/data_type.h"
#include "attention/params.h"
#include "base/result.h"
#include "kernels/weight_matrix.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::bench {

// What is measured.
enum class CaseKind : std::uint8_t {
  kGqaDecode,    // attention of one token a request (or a few) over a paged cache
  kPrefill,      // causal attention of whole prompts over a paged cache
  kKvAppend,     // writing the keys and values of new tokens into a paged cache
  kGemv,         // a weight matrix by the activations of `batch` tokens
  kReadCeiling,  // reading memory and nothing else
  kMatrixRate,   // the matrix kernel where arithmetic is all there is
  kCopy,         // reading memory and writing it elsewhere
};

struct CaseInfo {
  CaseKind kind;
  std::string_view name;  // "gqa-decode"
  std::string_view does;  // for --list cases
};
// In the order in which a run without cases measures them.
std::span<const CaseInfo> case_table();
const CaseInfo& case_info(CaseKind kind);
const CaseInfo* find_case(std::string_view name);

// Weights of gemv: a format with the scales that its checkpoints carry.
struct WeightType {
  std::string_view name;  // "bf16", "fp8", "q4_k"
  kernels::WeightFormat format;
  kernels::ScaleFormat scales;
  std::int64_t block_rows;  // that share a scale; 0: no scales
  std::int64_t block_cols;
};
std::span<const WeightType> weight_types();
const WeightType* find_weight_type(std::string_view name);

enum class ReadOrder : std::uint8_t {
  kLinear,
  kGather,  // runs of `run_bytes` in the random order of a page table
};

// One benchmark: a case with all its sizes. Fields that the case does not use keep their defaults.
struct Shape {
  std::string name;  // of a case file; else empty
  CaseKind kind = CaseKind::kGqaDecode;
  attention::Geometry geometry = {};
  std::int64_t page_size = 16;
  attention::KvLayout layout = attention::KvLayout::kHnd;
  attention::DataType dtype = attention::DataType::kF32;  // of activations
  attention::DataType kv_type = attention::DataType::kF32;
  bool sinks = false;
  std::int64_t batch = 1;              // requests; tokens of kv-append, gemv and matrix-rate
  std::vector<std::int64_t> contexts;  // [batch]: tokens of each request, the new ones included
  std::int64_t query_tokens = 1;       // new tokens of each request (prefill: all of its tokens)
  const WeightType* weight = nullptr;
  std::int64_t rows = 0;   // of the matrix: outputs
  std::int64_t cols = 0;   // inputs
  std::int64_t bytes = 0;  // of read-ceiling (read) and copy (read, and as much written)
  ReadOrder order = ReadOrder::kLinear;
  std::int64_t run_bytes = 0;

  [[nodiscard]] bool is_ragged() const;
};

// Refuses sizes that no kernel can have (kUnavailable): heads that are no multiple of KV heads,
// rows that do not fill blocks, contexts shorter than their new tokens, sizes beyond 2^50 bytes.
Result<void> check_shape(const Shape& shape);

// What one launch must move and compute at least.
struct Work {
  double bytes = 0;  // read and written once each
  double flops = 0;
};
Work work_of(const Shape& shape);

// What does not vary inside a table: "bf16 q32 kv8 d128 page 16 HND, KV fp8_e4m3".
std::string describe(const Shape& shape);
// What does, and the name that a baseline knows a shape by: "batch 64 context 8192".
std::string variant(const Shape& shape);
// "gqa-decode bf16 q32 kv8 d128 page 16 HND: batch 64 context 8192", or the name of a case file.
std::string key_of(const Shape& shape);

// "bf16" for kBf16: the names of options and reports.
std::string_view short_type_name(attention::DataType type);

}  // namespace kernelpath::bench
