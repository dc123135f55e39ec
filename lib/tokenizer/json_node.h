#pragma once

#include "base/result.h"
#include "json/value.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace kernelpath::tokenizer {

// A value of a tokenizer's file together with its place, for reading with errors that name both.
// Does not own the document.
class JsonNode {
 public:
  JsonNode(const json::Value& value, std::string pointer, std::string_view file)
      : value_(&value), pointer_(std::move(pointer)), file_(file) {}

  [[nodiscard]] const json::Value& value() const { return *value_; }
  [[nodiscard]] const std::string& pointer() const { return pointer_; }
  [[nodiscard]] std::string_view file() const { return file_; }

  // A member that is there and is not null; else nothing.
  [[nodiscard]] std::optional<JsonNode> find(std::string_view key) const;
  // The same, or kConfigMissing.
  [[nodiscard]] Result<JsonNode> member(std::string_view key) const;
  [[nodiscard]] JsonNode item(std::size_t index) const;  // of a list that is long enough

  // Members of a type; kConfigMissing where there is none (or null), kConfigType where it has
  // another type. With a default, a missing one is that.
  [[nodiscard]] Result<std::string> string(std::string_view key) const;
  [[nodiscard]] Result<bool> boolean(std::string_view key, bool missing) const;
  // A whole number from 0 to `limit`.
  [[nodiscard]] Result<std::int64_t> integer(std::string_view key, std::int64_t limit) const;
  [[nodiscard]] Result<JsonNode> list(std::string_view key) const;
  // A string of exactly one character.
  [[nodiscard]] Result<std::string> character(std::string_view key) const;

  [[nodiscard]] Result<void> expect(json::Type type) const;

  // kConfigValue for a member that is not null and not among `known`: what a file uses and this
  // code does not know must not be ignored.
  [[nodiscard]] Result<void> allow_only(std::initializer_list<std::string_view> known) const;

  // An error at this place, with the value.
  [[nodiscard]] Error error(ErrorCode code, std::string message, std::string hint = {}) const;

 private:
  const json::Value* value_;
  std::string pointer_;
  std::string_view file_;
};

}  // namespace kernelpath::tokenizer
