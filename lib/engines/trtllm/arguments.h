#pragma once

#include "base/result.h"
#include "engines/request.h"
#include "engines/setting_value.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::trtllm {

// One argument of the engine's LLM API that the resolution reads.
struct ArgumentInfo {
  std::string_view name;  // dotted, as in an options file: "kv_cache_config.dtype"
  SettingType type;
  std::string_view default_value;  // as written; empty is the engine's None
  std::string_view option;         // the common option that states it: "--kv"; may be empty
  std::string_view about;
};

// Sorted as reports show them. Source: llmapi/llm_args.py, 00043967.
std::span<const ArgumentInfo> argument_table();
const ArgumentInfo* find_argument(std::string_view name);

// Final values of all arguments, each with who set it: "engine default", "model default", or the
// option that the user gave.
class Arguments {
 public:
  // Merges the common options and --set into the table. Errors: kUsageUnknown (no such argument),
  // kUsage (a value of the wrong type), kUsageConflict (an option and --set that differ).
  static Result<Arguments> read(const Deployment& deployment);

  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;  // None: nothing
  [[nodiscard]] bool flag(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name) const;
  [[nodiscard]] std::optional<double> number(std::string_view name) const;
  [[nodiscard]] bool set_by_user(std::string_view name) const;
  [[nodiscard]] const std::string& set_by(std::string_view name) const;

  // Sets an argument that the user left alone; true if it took effect.
  bool set_model_default(std::string_view name, std::string value);

  struct Value {
    std::string text;
    std::string set_by = "engine default";
    bool user = false;
  };
  [[nodiscard]] std::span<const Value> values() const { return values_; }  // as argument_table()

 private:
  Arguments();
  Result<void> set(std::string_view name, const std::string& value, std::string_view set_by);
  [[nodiscard]] const Value& value(std::string_view name) const;

  std::vector<Value> values_;
};

}  // namespace kernelpath::engines::trtllm
