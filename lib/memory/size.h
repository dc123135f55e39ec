#pragma once

#include "base/checked.h"

#include <cstdint>

namespace kernelpath::memory {

// A count of parameters or bytes. One that does not fit 64 bits, or is negative, stays "overflowed"
// through all further arithmetic, so that a long sum needs a single check at its end.
class Size {
 public:
  constexpr Size() = default;
  constexpr Size(std::int64_t value) : value_(value), fits_(value >= 0) {}  // NOLINT: implicit

  [[nodiscard]] constexpr bool fits() const { return fits_; }
  // Of a size that fits; 0 otherwise.
  [[nodiscard]] constexpr std::int64_t value() const { return fits_ ? value_ : 0; }

  friend Size operator*(Size a, Size b) { return combine(a, b, checked_mul(a.value_, b.value_)); }
  friend Size operator+(Size a, Size b) { return combine(a, b, checked_add(a.value_, b.value_)); }
  Size& operator+=(Size other) { return *this = *this + other; }

 private:
  static Size combine(Size a, Size b, std::optional<std::int64_t> result) {
    Size out;
    out.fits_ = a.fits_ && b.fits_ && result.has_value();
    out.value_ = out.fits_ ? *result : 0;
    return out;
  }

  std::int64_t value_ = 0;
  bool fits_ = true;
};

// ceil(a / b); b > 0.
inline Size ceil_div(Size a, std::int64_t b) {
  if (!a.fits()) return a;
  return kernelpath::ceil_div(a.value(), b);
}

}  // namespace kernelpath::memory
