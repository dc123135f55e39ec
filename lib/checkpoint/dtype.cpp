#include "checkpoint/dtype.h"

#include "base/checked.h"

#include <algorithm>
#include <array>

namespace kernelpath::checkpoint {
namespace {

constexpr std::array kDtypes = {
    Dtype{"BOOL", 8},    Dtype{"F4", 4},          Dtype{"F6_E2M3", 6},     Dtype{"F6_E3M2", 6},
    Dtype{"U8", 8},      Dtype{"I8", 8},          Dtype{"F8_E5M2", 8},     Dtype{"F8_E4M3", 8},
    Dtype{"F8_E8M0", 8}, Dtype{"F8_E4M3FNUZ", 8}, Dtype{"F8_E5M2FNUZ", 8}, Dtype{"I16", 16},
    Dtype{"U16", 16},    Dtype{"F16", 16},        Dtype{"BF16", 16},       Dtype{"I32", 32},
    Dtype{"U32", 32},    Dtype{"F32", 32},        Dtype{"C64", 64},        Dtype{"F64", 64},
    Dtype{"I64", 64},    Dtype{"U64", 64},
};

}  // namespace

const Dtype* find_dtype(std::string_view name) {
  const auto* const found = std::find_if(kDtypes.begin(), kDtypes.end(),
                                         [&](const Dtype& dtype) { return dtype.name == name; });
  return found == kDtypes.end() ? nullptr : found;
}

std::optional<std::int64_t> dtype_bytes(const Dtype& dtype, std::int64_t elements) {
  const auto bits = checked_mul(elements, dtype.bits);
  if (!bits || *bits % 8 != 0) return std::nullopt;
  return *bits / 8;
}

}  // namespace kernelpath::checkpoint
