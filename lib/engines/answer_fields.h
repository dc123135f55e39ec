#pragma once

#include "base/result.h"
#include "json/value.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::engines {

// Typed access to the fields of a batch request. A field of the wrong type or out of range is
// remembered (the first one only), and the getter returns its default; status() tells at the end.
// Null counts as absent unless a getter says otherwise.
class AnswerFields {
 public:
  // `pointer` is the place of `object` in the line, for messages.
  AnswerFields(const json::Value& object, std::string pointer);

  bool boolean(std::string_view name, bool otherwise);
  std::string text(std::string_view name, std::string otherwise);
  std::string required_text(std::string_view name);
  std::optional<std::string> optional_text(std::string_view name);
  std::int64_t integer(std::string_view name, std::int64_t otherwise);
  std::int64_t required_integer(std::string_view name);
  std::optional<std::int64_t> optional_integer(std::string_view name);
  // At least `least`.
  std::int64_t sized_integer(std::string_view name, std::int64_t otherwise, std::int64_t least);
  double number(std::string_view name, double otherwise);
  std::optional<bool> optional_boolean(std::string_view name);
  std::vector<std::string> text_list(std::string_view name);
  std::vector<std::int64_t> integer_list(std::string_view name);
  // A compute capability as one number (90) or nothing.
  std::optional<int> optional_sm(std::string_view name);
  // A nested object; its faults count as this request's.
  std::optional<AnswerFields> object(std::string_view name);
  // The value as it stands, null included; null pointer where the field is absent.
  [[nodiscard]] const json::Value* raw(std::string_view name) const;

  // Remembers that the field's value cannot be used.
  void refuse(std::string_view name, std::string message);
  // kBatchRequest naming the field, or nothing.
  [[nodiscard]] Result<void> status() const;

 private:
  AnswerFields(const json::Value& object, std::string pointer,
               std::shared_ptr<std::optional<Error>> error);

  const json::Value* object_;
  std::string pointer_;
  std::shared_ptr<std::optional<Error>> error_;
};

// Builds an object in the order of the calls.
class AnswerObject {
 public:
  AnswerObject& add(std::string key, json::Value value);
  AnswerObject& add(std::string key, bool value) {
    return add(std::move(key), json::Value::boolean(value));
  }
  AnswerObject& add(std::string key, std::int64_t value) {
    return add(std::move(key), json::Value::integer(value));
  }
  // An empty text is null.
  AnswerObject& add_text(std::string key, std::string_view value);
  AnswerObject& add_null(std::string key) { return add(std::move(key), json::Value::null()); }
  AnswerObject& add_integer(std::string key, std::optional<std::int64_t> value);
  AnswerObject& add_texts(std::string key, const std::vector<std::string>& values);
  json::Value take() { return json::Value::object(std::move(members_)); }

 private:
  std::vector<json::Member> members_;
};

}  // namespace kernelpath::engines
