#pragma once

#include "base/result.h"
#include "engines/resolution.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::engines::llamacpp {

// Values of the settings as text, with who set them; each is at its default until then.
class SettingValues {
 public:
  SettingValues();

  // Errors: kUsageUnknown (no such setting; near matches), kUsageConflict (another value by
  // somebody else).
  Result<void> set(std::string_view name, const std::string& value, std::string_view set_by);
  // Leaves a value alone that somebody stated.
  void set_if_open(std::string_view name, const std::string& value, std::string_view set_by);
  // The same value in other letters.
  void respell(std::string_view name, std::string value) { find(name)->value = std::move(value); }

  [[nodiscard]] const Resolution::Option& get(std::string_view name) const;
  [[nodiscard]] bool is_stated(std::string_view name) const;

  // A reading of the text. Errors: kUsage (a value of another kind), kUsageUnknown with near
  // matches (none of the choices).
  [[nodiscard]] Result<std::int64_t> integer(std::string_view name, std::int64_t least = 0) const;
  [[nodiscard]] Result<bool> flag(std::string_view name) const;
  [[nodiscard]] Result<std::size_t> choice(std::string_view name,
                                           std::span<const std::string_view> choices) const;
  // What stands between commas, or slashes.
  [[nodiscard]] std::vector<std::string> list(std::string_view name) const;
  [[nodiscard]] Result<std::vector<double>> numbers(std::string_view name) const;

  [[nodiscard]] Error error(std::string_view name, std::string expected) const;
  [[nodiscard]] std::vector<Resolution::Option> take() { return std::move(values_); }

 private:
  Resolution::Option* find(std::string_view name);

  std::vector<Resolution::Option> values_;
};

// "on" for on, enabled, true and 1; "off" and "auto" likewise; other words as they are.
// Source: common/arg.cpp, is_truthy, is_falsey, is_autoy.
std::string switch_word(std::string_view word);

}  // namespace kernelpath::engines::llamacpp
