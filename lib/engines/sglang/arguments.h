#pragma once

#include "engines/sglang/profile.h"
#include "json/value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::engines::sglang {

// Values that a rule decides together; the order is that of the engine's record.
using Declaration = std::vector<std::pair<std::string, json::Value>>;

// The server arguments while they are resolved: what the user gave never changes, each rule appends
// declarations, and a read gives the last declaration, else what the user gave, else the default.
// Source: sglang/srt/arg_groups/overrides.py (declare_resolution, resolving_view).
class Arguments {
 public:
  using Given = std::vector<std::pair<std::string, json::Value>>;

  Arguments(const Profile& profile, Given given);

  [[nodiscard]] const json::Value& value(std::string_view name) const;
  // Empty while the field is unset.
  [[nodiscard]] std::string text(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name) const;
  [[nodiscard]] std::int64_t integer_or(std::string_view name, std::int64_t otherwise) const;
  // A field that is unset is false.
  [[nodiscard]] bool flag(std::string_view name) const;
  [[nodiscard]] bool unset(std::string_view name) const { return value(name).is_null(); }
  // What the user gave, or null pointer.
  [[nodiscard]] const json::Value* given(std::string_view name) const;
  // The rule that decided the value, or an empty view: the user's, or the default.
  [[nodiscard]] std::string_view decided_by(std::string_view name) const;

  void declare(std::string_view rule, std::string_view name, json::Value value);

  [[nodiscard]] const Given& all_given() const { return given_; }
  // Fields that a rule decided, in the order of the first declaration.
  [[nodiscard]] std::vector<std::string> decided() const;

 private:
  struct Decided {
    std::string name;
    json::Value value;
    std::string rule;
  };
  [[nodiscard]] const Decided* find_decided(std::string_view name) const;

  const Profile* profile_;
  Given given_;
  std::vector<Decided> decided_;
};

json::Value text_value(std::string_view text);  // an empty text is null
json::Value integer_value(std::optional<std::int64_t> value);
json::Value boolean_value(bool value);

// A value as Python's json.dumps spells it.
std::string python_json(const json::Value& value);

}  // namespace kernelpath::engines::sglang
