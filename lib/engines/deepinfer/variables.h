#pragma once

#include "engines/deepinfer/fault.h"
#include "json/value.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::engines::deepinfer {

enum class VariableKind : std::uint8_t {
  kBoolean,
  kInteger,
  kNumber,
  kText,
  kSeconds,
  kTruncationMode,  // one of "off", "mask", "compact"
  kTemperatures,    // one number, or one for each drafted token
};

// An environment variable that the engine reads. Source: environ.py.
struct VariableInfo {
  std::string_view name;  // with the prefix: "DEEPINFER_ENFORCE_EAGER"
  VariableKind kind = VariableKind::kText;
  std::string_view fallback;  // its default as a value of the variable; empty: none
  std::string_view about;
};

// In the order of the engine's documentation; those without the prefix come last.
std::span<const VariableInfo> variables();

using TextPairs = std::vector<std::pair<std::string, std::string>>;

// The engine's view of its environment. A value that cannot be read is found at its first use.
class Variables {
 public:
  Variables(TextPairs values, bool ascend) : values_(std::move(values)), ascend_(ascend) {}

  [[nodiscard]] const std::string* text(std::string_view name) const;
  // Without the prefix; each name must be of the table. Fault "env-value" in `stage`.
  [[nodiscard]] Checked<std::int64_t> integer(std::string_view name, std::string_view stage) const;
  // The same for a count: beyond 2^31 no deployment means it, and sizes made of it could not be
  // told any more.
  [[nodiscard]] Checked<std::int64_t> count(std::string_view name, std::string_view stage) const;
  [[nodiscard]] Checked<double> number(std::string_view name, std::string_view stage) const;
  // Anything but "", "0", "false" and "False" is true.
  [[nodiscard]] bool flag(std::string_view name) const;
  [[nodiscard]] std::optional<bool> stated_flag(std::string_view name) const;
  [[nodiscard]] Checked<std::string> truncation_mode(std::string_view stage) const;
  [[nodiscard]] Checked<std::vector<double>> temperatures(std::string_view stage) const;

  // Tokens drafted a step: DEEPINFER_USE_NEXTN_DECODE.
  [[nodiscard]] Checked<std::int64_t> draft_length(std::string_view stage) const;
  // Tokens that a step may take back: at least draft length + 1.
  [[nodiscard]] Checked<std::int64_t> backtracking_tokens(std::string_view stage) const;

  // The value as the engine's code sees it, for any name of the table.
  [[nodiscard]] Checked<json::Value> value(const VariableInfo& variable,
                                           std::string_view stage) const;

 private:
  [[nodiscard]] std::string_view text_or_default(std::string_view name) const;

  TextPairs values_;
  bool ascend_ = false;
};

}  // namespace kernelpath::engines::deepinfer
