// dtype: of the whole file first, then of its language model.

#include "base/text.h"
#include "config/derive.h"

#include <fmt/format.h>

#include <array>

namespace kernelpath::config {
namespace {

struct Spelling {
  std::string_view written;
  std::string_view normal;
};

// PyTorch's names, its short names, and those of older files.
constexpr std::array<Spelling, 18> kDtypes = {{{"bfloat16", "bfloat16"},
                                               {"bf16", "bfloat16"},
                                               {"float16", "float16"},
                                               {"half", "float16"},
                                               {"fp16", "float16"},
                                               {"float32", "float32"},
                                               {"float", "float32"},
                                               {"fp32", "float32"},
                                               {"float64", "float64"},
                                               {"double", "float64"},
                                               {"float8_e4m3fn", "float8_e4m3fn"},
                                               {"float8_e5m2", "float8_e5m2"},
                                               {"fp8", "float8_e4m3fn"},
                                               {"float4_e2m1fn_x2", "float4_e2m1fn_x2"},
                                               {"int8", "int8"},
                                               {"uint8", "uint8"},
                                               {"int4", "int4"},
                                               {"auto", ""}}};

Result<StringField> to_dtype(const Found& found) {
  KERNELPATH_TRY(name, to_name(*found.value, found.origin.where));
  std::string_view bare = name;
  if (bare.starts_with("torch.")) bare.remove_prefix(6);
  for (const Spelling& spelling : kDtypes) {
    if (bare != spelling.written) continue;
    if (spelling.normal.empty()) return StringField{std::nullopt, found.origin};
    return StringField{std::string(spelling.normal), found.origin};
  }
  return fail(value_error(*found.value, found.origin.where, "unknown dtype",
                          "known: bfloat16, float16, float32, float64, float8_e4m3fn, …"));
}

// One object's word: dtype is the newer name of torch_dtype.
Result<StringField> dtype_of(const Derivation& d, bool outer) {
  const auto find = [&](Names names) {
    return outer ? d.read.find_outer(names) : d.read.find_stated(names);
  };
  const Found newer = find({"dtype"});
  const Found older = find({"torch_dtype", "params_dtype"});
  const Found& chosen = newer ? newer : older;
  if (!chosen) return StringField{};
  KERNELPATH_TRY(dtype, to_dtype(chosen));
  if (newer && older) {
    KERNELPATH_TRY(other, to_dtype(older));
    if (other.value != dtype.value) {
      d.read.warn("CONFIG-DTYPE-CONFLICT", newer.origin.where,
                  fmt::format("dtype is {} and {} is {}; dtype counts", dtype.value_or("auto"),
                              older.name, other.value_or("auto")));
    }
  }
  return dtype;
}

// First-generation Qwen files: one of three booleans.
Result<StringField> dtype_of_flags(const Derivation& d) {
  for (const std::string_view flag : {"bf16", "fp16", "fp32"}) {
    const Found found = d.read.find_outer({flag});
    if (!found || !found.value->is_bool() || !found.value->as_bool()) continue;
    for (const Spelling& spelling : kDtypes) {
      if (spelling.written == flag) return StringField{std::string(spelling.normal), found.origin};
    }
  }
  return StringField{};
}

}  // namespace

Result<void> derive_dtype(Derivation& d) {
  KERNELPATH_TRY(outer, dtype_of(d, true));
  d.out.dtype = outer;
  if (!outer && d.read.nested()) {
    KERNELPATH_TRY(inner, dtype_of(d, false));
    d.out.dtype = inner;
  }
  if (!d.out.dtype) {
    KERNELPATH_TRY(flags, dtype_of_flags(d));
    d.out.dtype = flags;
  }
  return {};
}

}  // namespace kernelpath::config
