#include "engines/resolution.h"

#include "engines/request.h"

#include <array>

namespace kernelpath::engines {
namespace {

template <class Enum, std::size_t N>
std::string_view name_of(Enum value, const std::array<std::string_view, N>& names) {
  return names.at(static_cast<std::size_t>(value));
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  static constexpr std::array<std::string_view, 5> kNames = {"selected", "rejected", "applied",
                                                             "skipped", "noted"};
  return name_of(verdict, kNames);
}

std::string_view severity_name(Severity severity) {
  static constexpr std::array<std::string_view, 3> kNames = {"info", "warn", "error"};
  return name_of(severity, kNames);
}

std::string_view status_name(Status status) {
  static constexpr std::array<std::string_view, 4> kNames = {"ok", "fallback", "unsupported",
                                                             "error"};
  return name_of(status, kNames);
}

std::string_view phase_name(Phase phase) {
  static constexpr std::array<std::string_view, 2> kNames = {"prefill", "decode"};
  return name_of(phase, kNames);
}

}  // namespace kernelpath::engines
