#pragma once

#include "base/result.h"
#include "engines/request.h"
#include "engines/vllm/setting_table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::engines::vllm {

// The values that a user gave to the engine's arguments, each with the option that gave it; all
// others are at the table's default.
class Arguments {
 public:
  struct Value {
    std::string name;    // "kv_cache_dtype"
    std::string text;    // as the engine's table spells it; empty is None
    std::string set_by;  // "--kv-cache-dtype"
  };

  // Merges the common options and --set into the table's arguments. A value that is a JSON object
  // sets the fields of its configuration one by one. Errors: kUsageUnknown (no such argument or
  // choice; it says which other version has it), kUsage (a value of another type), kUsageConflict
  // (an option and --set that differ, a backend given in both ways).
  static Result<Arguments> read(const SettingTable& table, const Deployment& deployment);

  // None: nothing.
  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name) const;  // None is false
  [[nodiscard]] std::optional<bool> optional_flag(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name) const;
  [[nodiscard]] std::optional<double> number(std::string_view name) const;
  // The parts of a list: JSON, or words between commas.
  [[nodiscard]] std::vector<std::string> list(std::string_view name) const;
  // The entries "NAME.key" of a map, in the order in which they were given.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> entries(
      std::string_view name) const;

  [[nodiscard]] const Value* given(std::string_view name) const;  // null pointer: left alone
  [[nodiscard]] const std::vector<Value>& values() const { return values_; }  // as given

  // The attention backend as the user wrote it, whichever argument says so; null pointer: none.
  [[nodiscard]] const Value* backend() const;

 private:
  explicit Arguments(const SettingTable& table) : table_(&table) {}
  Result<void> set(std::string_view name, const std::string& value, std::string_view set_by);
  Result<void> set_fields(std::string_view name, const std::string& text, std::string_view set_by);

  const SettingTable* table_;
  std::vector<Value> values_;
};

// Our own settings beside the engine's: what a plugin registers. "register_backend.NAME" =
// "module.Class" or "module.Class:MEMBER" (the member whose answers the class inherits);
// "register_model.ARCHITECTURE" = "module:Class".
const std::vector<SettingInfo>& plugin_settings();

}  // namespace kernelpath::engines::vllm
