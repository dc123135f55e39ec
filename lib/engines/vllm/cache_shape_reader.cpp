#include "engines/vllm/profile_readers.h"
#include "engines/vllm/table_fields.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kernelpath::engines::vllm {
namespace {

// [3, 2] of "head_size" with 4 more: "3/2 * head_size + 4".
std::string line_text(std::int64_t numerator, std::int64_t denominator, std::string_view of,
                      std::int64_t plus) {
  std::string out;
  if (denominator != 1) {
    out = fmt::format("{}/{} * {}", numerator, denominator, of);
  } else if (numerator != 1) {
    out = fmt::format("{} * {}", numerator, of);
  } else {
    out = of;
  }
  return plus == 0 ? out : fmt::format("{} + {}", out, plus);
}

std::int64_t integer_or(const json::Value* value, std::int64_t otherwise) {
  return value != nullptr && value->is_integer() ? value->as_integer() : otherwise;
}

// {"num_kv_heads_times": n} or {"head_size_times": [n, d], "plus": n}; nothing for anything else.
std::optional<std::string> scaled_axis(const json::Value& axis) {
  const std::int64_t heads = integer_or(axis.find("num_kv_heads_times"), 0);
  if (heads != 0) return fmt::format("{} * num_kv_heads", heads);
  const json::Value* times = axis.find("head_size_times");
  if (times == nullptr || !times->is_array() || times->items().size() != 2) return std::nullopt;
  const std::int64_t denominator = integer_or(&times->items()[1], 0);
  if (denominator == 0) return std::nullopt;
  const std::int64_t plus = integer_or(axis.find("plus"), 0);
  const std::string line =
      line_text(integer_or(times->items().data(), 0), denominator, "head_size", plus);
  const json::Value* of = axis.find("of");
  if (of == nullptr || !of->is_string()) return line;
  return plus == 0 ? fmt::format("{} * {}", of->as_string(), line)
                   : fmt::format("{} * ({})", of->as_string(), line);
}

Result<std::vector<std::string>> read_axes(const JsonFields& row) {
  const json::Value* shape = row.find("shape");
  if (shape == nullptr) return fail(row.error("shape", "missing"));
  std::vector<std::string> axes;
  if (shape->find("rule") != nullptr) return axes;
  if (!shape->is_array()) return fail(row.error("shape", "expected a list of axes or a rule"));
  for (const json::Value& item : shape->items()) {
    if (item.is_string()) {
      axes.push_back(item.as_string());
    } else if (item.is_integer()) {
      axes.push_back(fmt::to_string(item.as_integer()));
    } else {
      std::optional<std::string> text = scaled_axis(item);
      if (!text) return fail(row.error("shape", "an axis is no name, number or multiple"));
      axes.push_back(std::move(*text));
    }
  }
  return axes;
}

Result<void> read_stride_orders(const JsonFields& row, BackendClass& backend) {
  if (row.value().find_non_null("stride_order") == nullptr) return {};
  KERNELPATH_TRY(layouts, row.object("stride_order"));
  for (const json::Member& member : layouts.value().members()) {
    KERNELPATH_TRY(layout, layouts.fields_of(member));
    KERNELPATH_TRY(plain, read_integers(layout, "plain"));
    backend.stride_orders.push_back({.layout = member.key, .order = std::move(plain)});
  }
  return {};
}

}  // namespace

Result<void> read_cache_shapes(const JsonFields& row, BackendClass& backend) {
  if (row.value().find_non_null("kv_shapes") != nullptr) {
    KERNELPATH_TRY(shapes, row.objects("kv_shapes"));
    for (const JsonFields& shape : shapes) {
      KERNELPATH_TRY(kv_dtypes, shape.strings("kv_dtypes"));
      KERNELPATH_TRY(axes, read_axes(shape));
      backend.kv_shapes.push_back({.kv_dtypes = std::move(kv_dtypes), .axes = std::move(axes)});
    }
  }
  return read_stride_orders(row, backend);
}

}  // namespace kernelpath::engines::vllm
