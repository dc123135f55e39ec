#pragma once

#include "base/result.h"
#include "bench/shape.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::bench {

// One value that a case can vary over. Options of the command line have the name with dashes, keys
// of case files with underscores.
struct AxisInfo {
  std::string_view name;     // "kv_cache_dtype"
  bool has_option;           // also on the command line
  std::string_view meaning;  // for error texts and docs: "query heads:KV heads"
};
std::span<const AxisInfo> axis_table();
// By name, "-" read as "_".
const AxisInfo* find_axis(std::string_view name);
// Whether a case varies over it.
bool uses_axis(CaseKind kind, const AxisInfo& info);
// The options that a case varies over: "head-dim, batch-size".
std::string axis_options(CaseKind kind);

// What somebody stated for one axis: values and ranges as written.
struct AxisValues {
  const AxisInfo* axis = nullptr;
  std::vector<std::string> values;
  std::string where;  // "--heads", "h200-decode.toml:12"
};

// What a case has where nothing is stated; it differs between devices.
struct AxisDefaults {
  bool cuda = false;
};

// Shapes that one run may have at most.
inline constexpr std::size_t kMostShapes = 4096;

// Every combination of the stated values, the others at their defaults. `name` becomes that of the
// shapes. Values that the case does not use are ignored. Whether there can be such shapes is
// check_shape()'s to say. Errors: kUsage with the axis' `where`.
Result<std::vector<Shape>> expand(CaseKind kind, std::string_view name,
                                  std::span<const AxisValues> stated, const AxisDefaults& defaults);

}  // namespace kernelpath::bench
