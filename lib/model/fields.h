#pragma once

#include "base/result.h"
#include "config/model_config.h"
#include "json/value.h"
#include "model/family.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace kernelpath::model {

// The members of the language model's configuration that ModelConfig has no typed field for, and
// what the family's class takes where the file is silent. The one place where raw JSON is read.
class Fields {
 public:
  // Both must outlive the reader.
  Fields(const config::ModelConfig& config, const Family& family);

  // A stated number; a null counts as "off" (0); where the file is silent, the family's default,
  // else 0. The first of several names that is stated counts. Error kConfigType: not a number.
  [[nodiscard]] Result<double> number(std::initializer_list<std::string_view> names) const;
  [[nodiscard]] Result<std::int64_t> integer(std::initializer_list<std::string_view> names) const;
  [[nodiscard]] Result<bool> flag(std::string_view name) const;
  // A number that something is divided by. Error kConfigValue: 0 or less.
  [[nodiscard]] Result<double> positive(std::string_view name) const;
  // A stated string, else `otherwise`. Error kConfigType: something else is stated.
  [[nodiscard]] Result<std::string> text(std::initializer_list<std::string_view> names,
                                         std::string_view otherwise) const;
  // The member, or null pointer where there is none or a null.
  [[nodiscard]] const json::Value* find(std::string_view name) const;
  [[nodiscard]] std::string pointer(std::string_view name) const;

  [[nodiscard]] const config::ModelConfig& config() const { return config_; }
  [[nodiscard]] const Family& family() const { return family_; }

 private:
  const config::ModelConfig& config_;
  const Family& family_;
  const json::Value* root_ = nullptr;  // of the language model
};

// What the class `class_name` takes for a field that its file does not state: transformers'
// configuration_*.py; 0 where it has none.
double class_default(std::string_view class_name, std::string_view field);

// A member of any JSON object as a finite number. Errors kConfigType and kConfigValue name `where`.
Result<double> number_at(const json::Value& value, const std::string& where);

}  // namespace kernelpath::model
