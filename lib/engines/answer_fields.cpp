#include "engines/answer_fields.h"

#include "json/document.h"

#include <fmt/format.h>

namespace kernelpath::engines {
namespace {

constexpr std::int64_t kLargestSm = 999;

}  // namespace

AnswerFields::AnswerFields(const json::Value& object, std::string pointer)
    : AnswerFields(object, std::move(pointer), std::make_shared<std::optional<Error>>()) {
  if (!object.is_object()) refuse("", "a request must be an object");
}

AnswerFields::AnswerFields(const json::Value& object, std::string pointer,
                           std::shared_ptr<std::optional<Error>> error)
    : object_(&object), pointer_(std::move(pointer)), error_(std::move(error)) {}

const json::Value* AnswerFields::raw(std::string_view name) const { return object_->find(name); }

void AnswerFields::refuse(std::string_view name, std::string message) {
  if (*error_) return;
  const json::Value* value = name.empty() ? object_ : raw(name);
  *error_ = Error{
      .code = ErrorCode::kBatchRequest,
      .message = std::move(message),
      .where = name.empty() ? pointer_ : fmt::format("{}/{}", pointer_, json::pointer_token(name)),
      .value = value == nullptr ? std::string() : value->brief()};
}

Result<void> AnswerFields::status() const {
  if (*error_) return fail(**error_);
  return {};
}

std::optional<bool> AnswerFields::optional_boolean(std::string_view name) {
  const json::Value* value = object_->find_non_null(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->as_bool();
  refuse(name, "must be true, false or null");
  return std::nullopt;
}

bool AnswerFields::boolean(std::string_view name, bool otherwise) {
  return optional_boolean(name).value_or(otherwise);
}

std::optional<std::string> AnswerFields::optional_text(std::string_view name) {
  const json::Value* value = object_->find_non_null(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->as_string();
  refuse(name, "must be a string or null");
  return std::nullopt;
}

std::string AnswerFields::text(std::string_view name, std::string otherwise) {
  return optional_text(name).value_or(std::move(otherwise));
}

std::string AnswerFields::required_text(std::string_view name) {
  std::optional<std::string> value = optional_text(name);
  if (!value) refuse(name, fmt::format("the field {} is needed, a string", name));
  return std::move(value).value_or("");
}

std::optional<std::int64_t> AnswerFields::optional_integer(std::string_view name) {
  const json::Value* value = object_->find_non_null(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_integer()) return value->as_integer();
  refuse(name, "must be an integer of 64 bits or null");
  return std::nullopt;
}

std::int64_t AnswerFields::integer(std::string_view name, std::int64_t otherwise) {
  return optional_integer(name).value_or(otherwise);
}

std::int64_t AnswerFields::required_integer(std::string_view name) {
  const std::optional<std::int64_t> value = optional_integer(name);
  if (!value) refuse(name, fmt::format("the field {} is needed, an integer", name));
  return value.value_or(0);
}

std::int64_t AnswerFields::sized_integer(std::string_view name, std::int64_t otherwise,
                                         std::int64_t least) {
  const std::int64_t value = integer(name, otherwise);
  if (value >= least) return value;
  refuse(name, fmt::format("must be an integer ≥ {}", least));
  return least;
}

double AnswerFields::number(std::string_view name, double otherwise) {
  const json::Value* value = object_->find_non_null(name);
  if (value == nullptr) return otherwise;
  if (value->is_number()) return value->as_double();
  refuse(name, "must be a number or null");
  return otherwise;
}

std::vector<std::string> AnswerFields::text_list(std::string_view name) {
  std::vector<std::string> texts;
  const json::Value* value = object_->find_non_null(name);
  if (value == nullptr) return texts;
  if (!value->is_array()) {
    refuse(name, "must be a list of strings");
    return texts;
  }
  for (const json::Value& item : value->items()) {
    if (!item.is_string()) {
      refuse(name, "must be a list of strings");
      return texts;
    }
    texts.push_back(item.as_string());
  }
  return texts;
}

std::vector<std::int64_t> AnswerFields::integer_list(std::string_view name) {
  std::vector<std::int64_t> integers;
  const json::Value* value = object_->find_non_null(name);
  if (value == nullptr) return integers;
  if (!value->is_array() || value->items().empty()) {
    refuse(name, "must be a list of integers");
    return integers;
  }
  for (const json::Value& item : value->items()) {
    // The engine counts a layer without attention as no heads.
    if (!item.is_integer() && !item.is_null()) {
      refuse(name, "must be a list of integers");
      return integers;
    }
    integers.push_back(item.is_null() ? 0 : item.as_integer());
  }
  return integers;
}

std::optional<int> AnswerFields::optional_sm(std::string_view name) {
  const std::optional<std::int64_t> value = optional_integer(name);
  if (!value) return std::nullopt;
  if (*value > 0 && *value <= kLargestSm) return static_cast<int>(*value);
  refuse(name, "must be a compute capability such as 90");
  return std::nullopt;
}

std::optional<AnswerFields> AnswerFields::object(std::string_view name) {
  const json::Value* value = object_->find_non_null(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) return AnswerFields(*value, fmt::format("{}/{}", pointer_, name), error_);
  refuse(name, "must be an object or null");
  return std::nullopt;
}

AnswerObject& AnswerObject::add(std::string key, json::Value value) {
  members_.push_back({.key = std::move(key), .value = std::move(value), .key_offset = 0});
  return *this;
}

AnswerObject& AnswerObject::add_text(std::string key, std::string_view value) {
  return add(std::move(key),
             value.empty() ? json::Value::null() : json::Value::string(std::string(value)));
}

AnswerObject& AnswerObject::add_integer(std::string key, std::optional<std::int64_t> value) {
  return add(std::move(key), value ? json::Value::integer(*value) : json::Value::null());
}

AnswerObject& AnswerObject::add_texts(std::string key, const std::vector<std::string>& values) {
  std::vector<json::Value> items;
  items.reserve(values.size());
  for (const std::string& value : values) items.push_back(json::Value::string(value));
  return add(std::move(key), json::Value::array(std::move(items)));
}

}  // namespace kernelpath::engines
