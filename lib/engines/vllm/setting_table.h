#pragma once

#include "base/result.h"
#include "engines/setting_value.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kernelpath::engines::vllm {

// What an argument's value has to look like, as far as it is checked before the engine reads it.
// One argument of the engine, or a field of one that holds a configuration.
struct SettingInfo {
  std::string name;  // dotted: "attention_config.backend"
  SettingType type = SettingType::kText;
  std::string type_text;      // as the engine declares it
  std::string default_value;  // as JSON; "null" is the engine's None
  std::vector<std::string> choices = {};
  bool open = false;  // other values than the choices pass the declared type
  bool map = false;   // "NAME.key" sets one entry of it
};

// The engine's arguments at one version. Source: engine/arg_utils.py, config/*.py, envs.py.
class SettingTable {
 public:
  SettingTable() = default;
  SettingTable(std::string version, std::vector<std::string> variables)
      : version_(std::move(version)), variables_(std::move(variables)) {}

  void add(SettingInfo info);

  [[nodiscard]] const std::string& version() const { return version_; }
  // Of the environment, that the engine reads.
  [[nodiscard]] const std::vector<std::string>& variables() const { return variables_; }
  [[nodiscard]] const std::vector<SettingInfo>& rows() const { return rows_; }  // engine's order
  // The argument, or for "NAME.key" the map called NAME; null pointer for an unknown name.
  [[nodiscard]] const SettingInfo* find(std::string_view name) const;
  [[nodiscard]] std::vector<std::string_view> names() const;

 private:
  std::string version_;
  std::vector<std::string> variables_;
  std::vector<SettingInfo> rows_;
  std::unordered_map<std::string, std::size_t> index_;
};

// Reads settings.json. `file` is used in errors only. Error kInputSchema.
Result<SettingTable> parse_settings(std::string text, const std::string& file);

// The embedded table of a version of built_in_versions(); parsed at the first call, safe from
// several threads.
const SettingTable& built_in_settings(std::string_view version);

}  // namespace kernelpath::engines::vllm
