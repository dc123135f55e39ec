#pragma once

#include "base/result.h"
#include "json/value.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines {

// Typed access to the members of one JSON object (a line of --batch, a table file). Every error
// names the member by its JSON pointer, what stands there and what is allowed.
class JsonFields {
 public:
  // Where the object comes from, for errors.
  struct Origin {
    ErrorCode code = ErrorCode::kBatchRequest;
    std::string file = {};
  };

  // Error if `value` is no object. `pointer` is the place of `value`, "" for the top. The fields
  // refer to `value`, which must outlive them.
  static Result<JsonFields> of(const json::Value& value, Origin origin, std::string pointer = "");

  // Refuses every member that is not in the list; empty names in it count for nothing.
  [[nodiscard]] Result<void> allow_only(std::initializer_list<std::string_view> names) const;

  // Required members.
  [[nodiscard]] Result<std::string> string(std::string_view name) const;
  [[nodiscard]] Result<std::int64_t> integer(std::string_view name) const;
  [[nodiscard]] Result<std::vector<std::string>> strings(std::string_view name) const;
  [[nodiscard]] Result<JsonFields> object(std::string_view name) const;
  [[nodiscard]] Result<std::vector<JsonFields>> objects(std::string_view name) const;  // a list

  // Members that may be absent or null.
  [[nodiscard]] Result<std::optional<std::string>> optional_string(std::string_view name) const;
  [[nodiscard]] Result<std::optional<std::int64_t>> optional_integer(std::string_view name) const;
  [[nodiscard]] Result<bool> boolean_or(std::string_view name, bool otherwise) const;
  [[nodiscard]] Result<std::vector<std::string>> optional_strings(std::string_view name) const;
  // Members of an object whose values are strings, in file order; empty if it is not there.
  [[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> optional_string_map(
      std::string_view name) const;

  [[nodiscard]] const json::Value& value() const { return *value_; }
  // The member itself, or null pointer.
  [[nodiscard]] const json::Value* find(std::string_view name) const { return value_->find(name); }
  // Fields of a member's value, which must be an object.
  [[nodiscard]] Result<JsonFields> fields_of(const json::Member& member) const;

  // An error about a member ("" for the object itself); `message` says what is wrong.
  [[nodiscard]] Error error(std::string_view name, std::string message) const;

 private:
  JsonFields(const json::Value& value, Origin origin, std::string pointer)
      : value_(&value), origin_(std::move(origin)), pointer_(std::move(pointer)) {}

  [[nodiscard]] std::string pointer_to(std::string_view name) const;
  [[nodiscard]] Error wrong_type(std::string_view name, std::string_view wanted) const;
  [[nodiscard]] Error missing(std::string_view name, std::string_view wanted) const;

  const json::Value* value_;
  Origin origin_;
  std::string pointer_;
};

}  // namespace kernelpath::engines
