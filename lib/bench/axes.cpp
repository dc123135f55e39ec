#include "bench/axes.h"

#include "base/text.h"
#include "base/units.h"
#include "bench/range.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

namespace kernelpath::bench {
namespace {

using attention::DataType;

enum class Axis : std::uint8_t {
  kHeads,
  kHeadDim,
  kVHeadDim,
  kDtype,
  kKv,
  kPageSize,
  kLayout,
  kWindow,
  kChunk,
  kSoftcap,
  kSinks,
  kBatchSize,
  kContext,
  kContexts,
  kQueryTokens,
  kWeight,
  kRows,
  kCols,
  kSize,
  kOrder,
  kRunBytes,
};

// In the order of Axis, which is the order in which shapes vary: the last one fastest.
constexpr std::array kAxes = {
    AxisInfo{"heads", true, "query heads:KV heads, as 32:8"},
    AxisInfo{"head_dim", true, "values of a row of Q and K"},
    AxisInfo{"v_head_dim", false, "values of a row of V, where they differ"},
    AxisInfo{"dtype", true, "type of activations: f32, bf16, f16"},
    AxisInfo{"kv_cache_dtype", true, "f32, bf16, f16, fp8, fp8_e5m2, nvfp4"},
    AxisInfo{"page_size", true, "tokens in a page"},
    AxisInfo{"layout", false, "order inside a page: HND or NHD"},
    AxisInfo{"window", false, "sliding window in tokens"},
    AxisInfo{"chunk", false, "attention chunk in tokens"},
    AxisInfo{"softcap", false, "cap of the logits"},
    AxisInfo{"sinks", false, "true: one sink a head"},
    AxisInfo{"batch_size", true, "requests; tokens of kv-append, gemv and matrix-rate"},
    AxisInfo{"context", true, "tokens of each request"},
    AxisInfo{"contexts", false, "tokens of the requests of one batch, one by one"},
    AxisInfo{"query_tokens", true, "new tokens of each request"},
    AxisInfo{"weight_dtype", true,
             "f32, bf16, f16, fp8, nvfp4, mxfp4, q8_0, q4_0, q5_0, q4_k, q5_k, q6_k"},
    AxisInfo{"rows", true, "outputs of the matrix"},
    AxisInfo{"cols", true, "inputs of the matrix"},
    AxisInfo{"size", true, "bytes: 512MiB"},
    AxisInfo{"order", false, "linear or gather"},
    AxisInfo{"run_bytes", false, "bytes that lie together in a gather"},
};

constexpr std::int64_t kMostBatch = std::int64_t{1} << 20;
constexpr std::int64_t kMostRequests = std::int64_t{1} << 24;  // of all shapes together

constexpr bool is_attention(CaseKind kind) {
  return kind == CaseKind::kGqaDecode || kind == CaseKind::kPrefill;
}

// A shape that is being put together.
struct Draft {
  Shape shape;
  std::int64_t context = 1;
  bool has_kv_type = false;  // else the cache is of the activations' type
};

Error bad_value(const AxisValues& stated, std::string_view value, std::string message) {
  return {.code = ErrorCode::kUsage,
          .message = std::move(message),
          .where = stated.where,
          .value = shorten(value, 64)};
}

Result<std::int64_t> one_integer(const AxisValues& stated, std::string_view value) {
  const Result<std::int64_t> number = parse_integer(value);
  if (!number || *number < 1) {
    return fail(bad_value(stated, value, "not a whole number of at least 1"));
  }
  return *number;
}

Result<void> set_heads(const AxisValues& stated, std::string_view value, Draft& draft) {
  const std::size_t colon = value.find(':');
  const std::string_view second = colon == std::string_view::npos ? value : value.substr(colon + 1);
  const Result<std::int64_t> heads = parse_integer(value.substr(0, colon));
  const Result<std::int64_t> kv_heads = parse_integer(second);
  constexpr std::int64_t kMost = 1 << 20;
  const bool fits =
      heads && kv_heads && *heads >= 1 && *kv_heads >= 1 && *heads <= kMost && *kv_heads <= kMost;
  if (!fits) {
    return fail(bad_value(stated, value,
                          "heads are QUERY:KV, as 32:8, the first a multiple of the second"));
  }
  draft.shape.geometry.num_heads = *heads;
  draft.shape.geometry.num_kv_heads = *kv_heads;
  return {};
}

Result<DataType> type_of(const AxisValues& stated, std::string_view value, bool activations) {
  const std::optional<DataType> type = attention::find_data_type(value);
  if (type) return *type;
  return fail(bad_value(
      stated, value,
      "not one of " + std::string(activations ? kAxes[3].meaning.substr(21) : kAxes[4].meaning)));
}

Result<void> set_layout(const AxisValues& stated, std::string_view value, Draft& draft) {
  const bool hnd = equal_ignoring_case(value, "HND");
  if (!hnd && !equal_ignoring_case(value, "NHD")) {
    return fail(bad_value(stated, value, "not HND or NHD"));
  }
  draft.shape.layout = hnd ? attention::KvLayout::kHnd : attention::KvLayout::kNhd;
  return {};
}

Result<void> set_softcap(const AxisValues& stated, std::string_view value, Draft& draft) {
  float cap = 0;
  const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), cap);
  const bool whole = error == std::errc() && rest == value.data() + value.size();
  if (!whole || !std::isfinite(cap) || cap <= 0) {
    return fail(bad_value(stated, value, "not a number above 0"));
  }
  draft.shape.geometry.softcap = cap;
  return {};
}

Result<void> set_weight(const AxisValues& stated, std::string_view value, Draft& draft) {
  draft.shape.weight = find_weight_type(value);
  if (draft.shape.weight != nullptr) return {};
  std::vector<std::string_view> names;
  for (const WeightType& type : weight_types()) names.push_back(type.name);
  Error error = bad_value(stated, value, "not a weight type");
  error.hint = "there are " + std::string(kAxes[15].meaning);
  error.near_matches = near_matches(value, names);
  return fail(std::move(error));
}

Result<void> set_size(const AxisValues& stated, std::string_view value, std::int64_t& out) {
  const Result<std::int64_t> bytes = parse_bytes(value);
  if (!bytes) return fail(bad_value(stated, value, bytes.error().message));
  constexpr std::int64_t kUnit = 64;
  if (*bytes < kUnit || *bytes % kUnit != 0) {
    return fail(bad_value(stated, value, "not a multiple of 64 bytes"));
  }
  out = *bytes;
  return {};
}

Result<void> set_word(const AxisValues& stated, std::string_view value, Axis axis, Draft& draft) {
  Shape& shape = draft.shape;
  if (axis == Axis::kSinks) {
    if (value != "true" && value != "false") {
      return fail(bad_value(stated, value, "not true or false"));
    }
    shape.sinks = value == "true";
    return {};
  }
  if (axis == Axis::kOrder) {
    if (value != "linear" && value != "gather") {
      return fail(bad_value(stated, value, "not linear or gather"));
    }
    shape.order = value == "gather" ? ReadOrder::kGather : ReadOrder::kLinear;
    return {};
  }
  const bool activations = axis == Axis::kDtype;
  KERNELPATH_TRY(type, type_of(stated, value, activations));
  (activations ? shape.dtype : shape.kv_type) = type;
  if (!activations) draft.has_kv_type = true;
  return {};
}

// The field of a whole number; null for other axes.
std::int64_t* number_field(Axis axis, Draft& draft) {
  switch (axis) {
    case Axis::kHeadDim:
      return &draft.shape.geometry.head_dim;
    case Axis::kVHeadDim:
      return &draft.shape.geometry.v_head_dim;
    case Axis::kPageSize:
      return &draft.shape.page_size;
    case Axis::kWindow:
      return &draft.shape.geometry.window;
    case Axis::kChunk:
      return &draft.shape.geometry.chunk;
    case Axis::kBatchSize:
      return &draft.shape.batch;
    case Axis::kContext:
      return &draft.context;
    case Axis::kQueryTokens:
      return &draft.shape.query_tokens;
    case Axis::kRows:
      return &draft.shape.rows;
    case Axis::kCols:
      return &draft.shape.cols;
    case Axis::kRunBytes:
      return &draft.shape.run_bytes;
    default:
      return nullptr;
  }
}

Result<void> set_value(const AxisValues& stated, std::string_view value, Draft& draft) {
  const auto axis = static_cast<Axis>(stated.axis - kAxes.data());
  if (std::int64_t* field = number_field(axis, draft); field != nullptr) {
    KERNELPATH_TRY(number, one_integer(stated, value));
    if (axis == Axis::kBatchSize && number > kMostBatch) {
      return fail(bad_value(stated, value, "more than 1048576"));
    }
    *field = number;
    return {};
  }
  switch (axis) {
    case Axis::kHeads:
      return set_heads(stated, value, draft);
    case Axis::kLayout:
      return set_layout(stated, value, draft);
    case Axis::kSoftcap:
      return set_softcap(stated, value, draft);
    case Axis::kWeight:
      return set_weight(stated, value, draft);
    case Axis::kSize:
      return set_size(stated, value, draft.shape.bytes);
    case Axis::kContexts: {
      KERNELPATH_TRY(number, one_integer(stated, value));
      draft.shape.contexts.push_back(number);
      return {};
    }
    default:
      return set_word(stated, value, axis, draft);
  }
}

bool is_number(Axis axis) {
  Draft draft;
  return number_field(axis, draft) != nullptr;
}

// The values of one axis, ranges written out.
Result<std::vector<std::string>> written_out(const AxisValues& stated) {
  const auto axis = static_cast<Axis>(stated.axis - kAxes.data());
  if (!is_number(axis)) return stated.values;
  KERNELPATH_TRY(numbers, parse_ranges(stated.values, stated.where));
  std::vector<std::string> out;
  out.reserve(numbers.size());
  for (const std::int64_t number : numbers) out.push_back(std::to_string(number));
  return out;
}

std::vector<std::string> default_sizes(CaseKind kind, const AxisDefaults& defaults) {
  if (defaults.cuda) return {kind == CaseKind::kCopy ? "4GiB" : "8GiB"};
  return {kind == CaseKind::kCopy ? "256MiB" : "512MiB"};
}

std::vector<std::string> default_weights(CaseKind kind, const AxisDefaults& defaults) {
  if (kind == CaseKind::kMatrixRate) return {"bf16"};
  std::vector<std::string> out;
  for (const WeightType& type : weight_types()) out.emplace_back(type.name);
  if (defaults.cuda) out = {"bf16", "f16", "fp8", "nvfp4"};
  return out;
}

// Of axes that have one apart from that of Shape.
std::vector<std::string> default_values(CaseKind kind, Axis axis, const AxisDefaults& defaults) {
  const bool cuda = defaults.cuda;
  switch (axis) {
    case Axis::kHeads:
      return {"32:8"};
    case Axis::kHeadDim:
      return {"128"};
    case Axis::kDtype:
      return {cuda ? "bf16" : "f32"};
    case Axis::kBatchSize:
      if (kind == CaseKind::kMatrixRate) return {cuda ? "8192" : "256"};
      return {kind == CaseKind::kKvAppend ? "64" : "1"};
    case Axis::kContext:
      if (kind == CaseKind::kPrefill) return {cuda ? "8192" : "512"};
      return {"4096"};
    case Axis::kWeight:
      return default_weights(kind, defaults);
    case Axis::kRows:
    case Axis::kCols:
      if (kind == CaseKind::kMatrixRate) return {cuda ? "8192" : "2048"};
      return {"4096"};
    case Axis::kSize:
      return default_sizes(kind, defaults);
    case Axis::kOrder:
      if (kind == CaseKind::kReadCeiling) return {"linear", "gather"};
      return {};
    case Axis::kRunBytes:
      return {"4096"};
    default:
      return {};
  }
}

// What follows from the axes.
void finish(CaseKind kind, const AxisDefaults& defaults, Draft& draft) {
  Shape& shape = draft.shape;
  if (!draft.has_kv_type) shape.kv_type = shape.dtype;
  if (shape.geometry.v_head_dim == 0) shape.geometry.v_head_dim = shape.geometry.head_dim;
  shape.geometry.softmax_scale =
      1.0F / std::sqrt(static_cast<float>(std::max<std::int64_t>(shape.geometry.head_dim, 1)));
  if (is_attention(kind)) {
    if (shape.contexts.empty()) {
      shape.contexts.assign(static_cast<std::size_t>(shape.batch), draft.context);
    } else {
      shape.batch = static_cast<std::int64_t>(shape.contexts.size());
    }
    if (kind == CaseKind::kPrefill) shape.query_tokens = std::ranges::max(shape.contexts);
  }
  if (kind == CaseKind::kGemv || kind == CaseKind::kMatrixRate) {
    const bool f16 = shape.weight->format == kernels::WeightFormat::kF16;
    shape.dtype = defaults.cuda ? (f16 ? DataType::kF16 : DataType::kBf16) : DataType::kF32;
  }
  if (shape.order == ReadOrder::kLinear) shape.run_bytes = 0;
}

Result<void> check_stated(CaseKind kind, std::span<const AxisValues> stated) {
  const AxisValues* context = nullptr;
  const AxisValues* contexts = nullptr;
  for (const AxisValues& one : stated) {
    const auto axis = static_cast<Axis>(one.axis - kAxes.data());
    if (axis == Axis::kContexts) contexts = &one;
    if (axis == Axis::kContext || axis == Axis::kBatchSize) context = &one;
  }
  if (contexts == nullptr || !is_attention(kind)) return {};
  if (context != nullptr) {
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = "contexts gives every request of the batch; context and batch_size "
                            "have no place beside it",
                 .where = context->where});
  }
  const bool ragged = kind == CaseKind::kPrefill &&
                      std::ranges::any_of(contexts->values, [&](const std::string& value) {
                        return value != contexts->values.front();
                      });
  if (!ragged) return {};
  return fail({.code = ErrorCode::kUsage,
               .message = "prompts of prefill are of one length",
               .where = contexts->where});
}

// Every draft with every value of one axis.
Result<void> vary(const AxisValues& values, std::vector<Draft>& drafts) {
  KERNELPATH_TRY(all, written_out(values));
  if (all.empty()) return {};
  // The requests of one batch are no axis: they go into the same shape.
  const bool together = static_cast<Axis>(values.axis - kAxes.data()) == Axis::kContexts;
  if (!together && drafts.size() * all.size() > kMostShapes) {
    return fail(bad_value(values, all.back(), "more than 4096 combinations"));
  }
  std::vector<Draft> next;
  next.reserve(together ? drafts.size() : drafts.size() * all.size());
  for (const Draft& draft : drafts) {
    if (together) next.push_back(draft);
    for (const std::string& value : all) {
      if (!together) next.push_back(draft);
      KERNELPATH_CHECK_OK(set_value(values, value, next.back()));
    }
  }
  drafts = std::move(next);
  return {};
}

// What the drafts come to.
Result<std::vector<Shape>> finished(CaseKind kind, const AxisDefaults& defaults,
                                    std::vector<Draft> drafts) {
  std::vector<Shape> out;
  out.reserve(drafts.size());
  std::int64_t requests = 0;
  for (Draft& draft : drafts) {
    requests += draft.shape.batch;
    if (requests > kMostRequests) {
      return fail({.code = ErrorCode::kUsage,
                   .message = "the batches of all combinations together have more than 2^24 "
                              "requests",
                   .where = std::string(case_info(kind).name)});
    }
    finish(kind, defaults, draft);
    out.push_back(std::move(draft.shape));
  }
  return out;
}

}  // namespace

std::span<const AxisInfo> axis_table() { return kAxes; }

const AxisInfo* find_axis(std::string_view name) {
  std::string wanted(name);
  std::ranges::replace(wanted, '-', '_');
  for (const AxisInfo& axis : kAxes) {
    if (axis.name == wanted) return &axis;
  }
  return nullptr;
}

bool uses_axis(CaseKind kind, const AxisInfo& info) {
  const auto axis = static_cast<Axis>(&info - kAxes.data());
  const bool matrix = kind == CaseKind::kGemv || kind == CaseKind::kMatrixRate;
  switch (axis) {
    case Axis::kHeads:
    case Axis::kHeadDim:
    case Axis::kVHeadDim:
    case Axis::kDtype:
    case Axis::kKv:
    case Axis::kPageSize:
    case Axis::kLayout:
      return is_attention(kind) || kind == CaseKind::kKvAppend;
    case Axis::kWindow:
    case Axis::kChunk:
    case Axis::kSoftcap:
    case Axis::kSinks:
    case Axis::kContext:
    case Axis::kContexts:
      return is_attention(kind);
    case Axis::kBatchSize:
      return is_attention(kind) || kind == CaseKind::kKvAppend || matrix;
    case Axis::kQueryTokens:
      return kind == CaseKind::kGqaDecode;
    case Axis::kWeight:
    case Axis::kRows:
    case Axis::kCols:
      return matrix;
    case Axis::kSize:
      return kind == CaseKind::kReadCeiling || kind == CaseKind::kCopy;
    case Axis::kOrder:
    case Axis::kRunBytes:
      return kind == CaseKind::kReadCeiling;
  }
  return false;
}

std::string axis_options(CaseKind kind) {
  std::string out;
  for (const AxisInfo& axis : kAxes) {
    if (!axis.has_option || !uses_axis(kind, axis)) continue;
    out += (out.empty() ? "" : ", ") + std::string(axis.name);
  }
  std::ranges::replace(out, '_', '-');
  return out;
}

Result<std::vector<Shape>> expand(CaseKind kind, std::string_view name,
                                  std::span<const AxisValues> stated,
                                  const AxisDefaults& defaults) {
  KERNELPATH_CHECK_OK(check_stated(kind, stated));
  std::vector<Draft> drafts(1);
  drafts.front().shape.kind = kind;
  drafts.front().shape.name = name;
  for (std::size_t i = 0; i < kAxes.size(); ++i) {
    if (!uses_axis(kind, kAxes[i])) continue;
    const auto found =
        std::ranges::find_if(stated, [&](const AxisValues& one) { return one.axis == &kAxes[i]; });
    AxisValues values{.axis = &kAxes[i], .values = {}, .where = std::string(kAxes[i].name)};
    values.values = default_values(kind, static_cast<Axis>(i), defaults);
    if (found != stated.end()) values = *found;
    KERNELPATH_CHECK_OK(vary(values, drafts));
  }
  return finished(kind, defaults, std::move(drafts));
}

}  // namespace kernelpath::bench
