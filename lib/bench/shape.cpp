#include "bench/shape.h"

#include "base/checked.h"
#include "base/text.h"
#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

namespace kernelpath::bench {
namespace {

using attention::DataType;
using kernels::ScaleFormat;
using kernels::WeightFormat;

constexpr std::array kCases = {
    CaseInfo{CaseKind::kReadCeiling, "read-ceiling",
             "reading memory and nothing else, in order and through a page table"},
    CaseInfo{CaseKind::kCopy, "copy", "reading memory and writing it elsewhere"},
    CaseInfo{CaseKind::kMatrixRate, "matrix-rate",
             "the matrix kernel where arithmetic is all there is"},
    CaseInfo{CaseKind::kGqaDecode, "gqa-decode",
             "attention of one token a request over a paged cache: MHA, GQA, MQA"},
    CaseInfo{CaseKind::kPrefill, "prefill", "causal attention of whole prompts over a paged cache"},
    CaseInfo{CaseKind::kKvAppend, "kv-append",
             "writing the keys and values of new tokens into a paged cache"},
    CaseInfo{CaseKind::kGemv, "gemv", "a weight matrix by the activations of a few tokens"},
};

// As the checkpoints of these formats have them: fp8 in blocks of 128 x 128 (DeepSeek-V3), nvfp4 an
// e4m3 scale for 16, mxfp4 an e8m0 scale for 32, ggml's q8_0 and q4_0 an f16 scale for 32.
constexpr std::array kWeights = {
    WeightType{"f32", WeightFormat::kF32, ScaleFormat::kNone, 0, 0},
    WeightType{"bf16", WeightFormat::kBf16, ScaleFormat::kNone, 0, 0},
    WeightType{"f16", WeightFormat::kF16, ScaleFormat::kNone, 0, 0},
    WeightType{"fp8", WeightFormat::kFp8E4m3, ScaleFormat::kF32, 128, 128},
    WeightType{"nvfp4", WeightFormat::kE2m1, ScaleFormat::kE4m3, 1, 16},
    WeightType{"mxfp4", WeightFormat::kE2m1, ScaleFormat::kE8m0, 1, 32},
    WeightType{"q8_0", WeightFormat::kQ8_0, ScaleFormat::kF16, 1, 32},
    WeightType{"q4_0", WeightFormat::kQ4_0, ScaleFormat::kF16, 1, 32},
    WeightType{"q5_0", WeightFormat::kQ5_0, ScaleFormat::kNone, 0, 0},
    WeightType{"q4_k", WeightFormat::kQ4K, ScaleFormat::kNone, 0, 0},
    WeightType{"q5_k", WeightFormat::kQ5K, ScaleFormat::kNone, 0, 0},
    WeightType{"q6_k", WeightFormat::kQ6K, ScaleFormat::kNone, 0, 0},
};

Error bad_shape(std::string message) {
  return {.code = ErrorCode::kUnavailable, .message = std::move(message)};
}

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;  // of one side of a cache, of a matrix

bool is_too_large(std::initializer_list<std::int64_t> factors) {
  std::optional<std::int64_t> product = 1;
  for (const std::int64_t factor : factors) {
    if (product) product = checked_mul(*product, factor);
  }
  return !product || *product > kMostBytes;
}

Result<void> check_attention(const Shape& shape) {
  const attention::Geometry& g = shape.geometry;
  if (g.num_kv_heads < 1 || g.num_heads < 1 || g.num_heads % g.num_kv_heads != 0) {
    return fail(bad_shape(fmt::format("{} query heads for {} KV heads; multiples are supported",
                                      g.num_heads, g.num_kv_heads)));
  }
  for (const std::int64_t dim : {g.head_dim, g.v_head_dim}) {
    if (attention::fits_rows_of(shape.kv_type, dim)) continue;
    return fail(bad_shape(
        fmt::format("a row of {} values; an nvfp4 cache has blocks of {}, and multiples of it "
                    "are supported",
                    dim, attention::kNvfp4Block)));
  }
  const std::int64_t longest = shape.contexts.empty() ? 1 : std::ranges::max(shape.contexts);
  const std::int64_t heads = std::max(g.num_heads, g.num_kv_heads);
  if (is_too_large({longest + shape.page_size, shape.batch, heads, g.head_dim, 4})) {
    return fail(bad_shape("the cache is beyond 2^50 bytes; up to that is supported"));
  }
  for (const std::int64_t context : shape.contexts) {
    if (context >= shape.query_tokens) continue;
    return fail(bad_shape(
        fmt::format("a context of {} tokens cannot hold {} new ones; as many or more are supported",
                    context, shape.query_tokens)));
  }
  return {};
}

Result<void> check_matrix(const Shape& shape) {
  if (is_too_large({shape.rows, shape.cols, shape.batch, 4})) {
    return fail(bad_shape(
        "rows, columns and tokens multiply to more than 2^50 bytes; up to that is supported"));
  }
  const std::int64_t unit = std::max(kernels::weight_block_cols(shape.weight->format),
                                     std::max<std::int64_t>(shape.weight->block_cols, 1));
  if (shape.cols % unit == 0) return {};
  return fail(
      bad_shape(fmt::format("{} columns do not fill blocks of {}, of which {} supports multiples",
                            shape.cols, unit, shape.weight->name)));
}

double value_bytes(DataType type, std::int64_t values) {
  return static_cast<double>(attention::data_bytes(type, values) +
                             attention::block_scale_bytes(type, values));
}

// Keys that each query of a request sees, all queries together.
double visible_keys(const Shape& shape, std::int64_t context) {
  const attention::Geometry& g = shape.geometry;
  double sum = 0;
  for (std::int64_t i = 0; i < shape.query_tokens; ++i) {
    const std::int64_t position = context - shape.query_tokens + i;
    std::int64_t seen = position + 1;
    if (g.window > 0) seen = std::min(seen, g.window);
    if (g.chunk > 0) seen = std::min(seen, position % g.chunk + 1);
    sum += static_cast<double>(seen);
  }
  return sum;
}

// Keys of a request that any query sees: each is read once.
std::int64_t read_keys(const Shape& shape, std::int64_t context) {
  const attention::Geometry& g = shape.geometry;
  const std::int64_t first_position = context - shape.query_tokens;
  std::int64_t first = 0;
  if (g.window > 0) first = std::max(first, first_position + 1 - g.window);
  if (g.chunk > 0) first = std::max(first, first_position / g.chunk * g.chunk);
  return context - first;
}

Work attention_work(const Shape& shape) {
  const attention::Geometry& g = shape.geometry;
  Work out;
  for (const std::int64_t context : shape.contexts) {
    out.bytes += value_bytes(
        shape.kv_type, read_keys(shape, context) * g.num_kv_heads * (g.head_dim + g.v_head_dim));
    out.flops += 2.0 * visible_keys(shape, context) * static_cast<double>(g.num_heads) *
                 static_cast<double>(g.head_dim + g.v_head_dim);
  }
  const std::int64_t rows = shape.batch * shape.query_tokens * g.num_heads;
  out.bytes += value_bytes(shape.dtype, rows * (g.head_dim + g.v_head_dim));  // q and o
  return out;
}

Work append_work(const Shape& shape) {
  const attention::Geometry& g = shape.geometry;
  const std::int64_t values = shape.batch * g.num_kv_heads * (g.head_dim + g.v_head_dim);
  return {.bytes = value_bytes(shape.dtype, values) + value_bytes(shape.kv_type, values)};
}

std::int64_t blocks(std::int64_t count, std::int64_t block) { return (count + block - 1) / block; }

Work matrix_work(const Shape& shape) {
  const WeightType& type = *shape.weight;
  double bytes = static_cast<double>(kernels::weight_row_bytes(type.format, shape.cols)) *
                 static_cast<double>(shape.rows);
  if (type.block_rows > 0) {
    bytes += static_cast<double>(blocks(shape.rows, type.block_rows) *
                                 blocks(shape.cols, type.block_cols) *
                                 kernels::scale_bytes(type.scales));
  }
  const auto batch = static_cast<double>(shape.batch);
  bytes += batch * value_bytes(shape.dtype, shape.rows + shape.cols);
  return {.bytes = bytes,
          .flops = 2.0 * batch * static_cast<double>(shape.rows) * static_cast<double>(shape.cols)};
}

std::string mask_text(const Shape& shape) {
  const attention::Geometry& g = shape.geometry;
  std::string out;
  if (g.window > 0) out += fmt::format(" window {}", g.window);
  if (g.chunk > 0) out += fmt::format(" chunk {}", g.chunk);
  if (g.softcap > 0) out += fmt::format(" softcap {:g}", g.softcap);
  if (shape.sinks) out += " sinks";
  return out;
}

std::string heads_text(const Shape& shape) {
  const attention::Geometry& g = shape.geometry;
  const std::string values = g.v_head_dim == g.head_dim ? "" : fmt::format(" dv{}", g.v_head_dim);
  return fmt::format("kv{} d{}{} page {} {}", g.num_kv_heads, g.head_dim, values, shape.page_size,
                     shape.layout == attention::KvLayout::kHnd ? "HND" : "NHD");
}

}  // namespace

std::span<const CaseInfo> case_table() { return kCases; }

const CaseInfo& case_info(CaseKind kind) {
  return *std::ranges::find_if(kCases, [&](const CaseInfo& info) { return info.kind == kind; });
}

const CaseInfo* find_case(std::string_view name) {
  for (const CaseInfo& info : kCases) {
    if (equal_ignoring_case(info.name, name)) return &info;
  }
  return nullptr;
}

std::span<const WeightType> weight_types() { return kWeights; }

const WeightType* find_weight_type(std::string_view name) {
  for (const WeightType& type : kWeights) {
    if (equal_ignoring_case(type.name, name)) return &type;
  }
  return nullptr;
}

bool Shape::is_ragged() const {
  return std::ranges::any_of(contexts, [&](std::int64_t one) { return one != contexts.front(); });
}

Result<void> check_shape(const Shape& shape) {
  switch (shape.kind) {
    case CaseKind::kGqaDecode:
    case CaseKind::kPrefill:
    case CaseKind::kKvAppend:
      return check_attention(shape);
    case CaseKind::kGemv:
    case CaseKind::kMatrixRate:
      return check_matrix(shape);
    case CaseKind::kReadCeiling:
    case CaseKind::kCopy:
      break;
  }
  if (shape.order == ReadOrder::kGather && shape.bytes % shape.run_bytes != 0) {
    return fail(
        bad_shape(fmt::format("{} bytes are no multiple of runs of {}; multiples are supported",
                              shape.bytes, shape.run_bytes)));
  }
  return {};
}

Work work_of(const Shape& shape) {
  switch (shape.kind) {
    case CaseKind::kGqaDecode:
    case CaseKind::kPrefill:
      return attention_work(shape);
    case CaseKind::kKvAppend:
      return append_work(shape);
    case CaseKind::kGemv:
    case CaseKind::kMatrixRate:
      return matrix_work(shape);
    case CaseKind::kReadCeiling:
      return {.bytes = static_cast<double>(shape.bytes)};
    case CaseKind::kCopy:
      return {.bytes = 2.0 * static_cast<double>(shape.bytes)};
  }
  return {};
}

std::string_view short_type_name(DataType type) {
  switch (type) {
    case DataType::kF32:
      return "f32";
    case DataType::kBf16:
      return "bf16";
    case DataType::kF16:
      return "f16";
    case DataType::kFp8E4m3:
      return "fp8";
    case DataType::kFp8E5m2:
      return "fp8_e5m2";
    case DataType::kNvfp4:
      return "nvfp4";
  }
  return "";
}

std::string describe(const Shape& shape) {
  const std::string_view dtype = short_type_name(shape.dtype);
  const std::string_view kv = short_type_name(shape.kv_type);
  const std::string cache = kv == dtype ? "" : fmt::format(" KV {}", kv);
  switch (shape.kind) {
    case CaseKind::kGqaDecode:
    case CaseKind::kPrefill:
      return fmt::format("{} q{} {}{}{}", dtype, shape.geometry.num_heads, heads_text(shape), cache,
                         mask_text(shape));
    case CaseKind::kKvAppend:
      return fmt::format("{} {}{}", dtype, heads_text(shape), cache);
    case CaseKind::kGemv:
    case CaseKind::kMatrixRate:
      return fmt::format("weights {}", shape.weight->name);
    case CaseKind::kReadCeiling:
    case CaseKind::kCopy:
      break;
  }
  return shape.order == ReadOrder::kLinear
             ? std::string("linear")
             : fmt::format("runs of {} B in random order", shape.run_bytes);
}

std::string variant(const Shape& shape) {
  switch (shape.kind) {
    case CaseKind::kGqaDecode:
    case CaseKind::kPrefill: {
      const std::string context = shape.is_ragged()
                                      ? fmt::format("{} to {}", std::ranges::min(shape.contexts),
                                                    std::ranges::max(shape.contexts))
                                      : fmt::format("{}", shape.contexts.front());
      const bool several = shape.kind == CaseKind::kGqaDecode && shape.query_tokens > 1;
      return fmt::format("batch {} context {}{}", shape.batch, context,
                         several ? fmt::format(" queries {}", shape.query_tokens) : "");
    }
    case CaseKind::kKvAppend:
      return fmt::format("tokens {}", shape.batch);
    case CaseKind::kGemv:
    case CaseKind::kMatrixRate:
      return fmt::format("{} x {} tokens {}", shape.rows, shape.cols, shape.batch);
    case CaseKind::kReadCeiling:
    case CaseKind::kCopy:
      break;
  }
  return format_bytes(shape.bytes);
}

std::string key_of(const Shape& shape) {
  if (!shape.name.empty()) return shape.name;
  return fmt::format("{} {}: {}", case_info(shape.kind).name, describe(shape), variant(shape));
}

}  // namespace kernelpath::bench
