#include "engines/json_fields.h"

#include "base/text.h"
#include "json/document.h"

#include <algorithm>
#include <utility>

namespace kernelpath::engines {

Result<JsonFields> JsonFields::of(const json::Value& value, Origin origin, std::string pointer) {
  JsonFields fields(value, std::move(origin), std::move(pointer));
  if (!value.is_object()) return fail(fields.wrong_type("", "an object"));
  return fields;
}

std::string JsonFields::pointer_to(std::string_view name) const {
  return name.empty() ? pointer_ : pointer_ + "/" + json::pointer_token(name);
}

Error JsonFields::error(std::string_view name, std::string message) const {
  Error error = {.code = origin_.code,
                 .message = std::move(message),
                 .file = origin_.file,
                 .where = pointer_to(name)};
  const json::Value* member = name.empty() ? value_ : value_->find(name);
  if (member != nullptr) error.value = member->brief();
  return error;
}

Error JsonFields::wrong_type(std::string_view name, std::string_view wanted) const {
  const json::Value* member = name.empty() ? value_ : value_->find(name);
  return error(name, "found " + std::string(json::type_name(member->type())) + ", expected " +
                         std::string(wanted));
}

Error JsonFields::missing(std::string_view name, std::string_view wanted) const {
  return error(name, "missing, expected " + std::string(wanted));
}

Result<void> JsonFields::allow_only(std::initializer_list<std::string_view> names) const {
  for (const json::Member& member : value_->members()) {
    if (std::find(names.begin(), names.end(), member.key) != names.end()) continue;
    std::vector<std::string_view> known(names);
    std::erase(known, std::string_view());
    Error unknown = error(member.key, "unknown member");
    unknown.near_matches = near_matches(member.key, known);
    unknown.hint =
        "known here: " + join_words(std::vector<std::string>(known.begin(), known.end()));
    return fail(std::move(unknown));
  }
  return {};
}

Result<std::string> JsonFields::string(std::string_view name) const {
  KERNELPATH_TRY(text, optional_string(name));
  if (!text) return fail(missing(name, "a string"));
  return std::move(*text);
}

Result<std::optional<std::string>> JsonFields::optional_string(std::string_view name) const {
  const json::Value* member = value_->find_non_null(name);
  if (member == nullptr) return std::nullopt;
  if (!member->is_string()) return fail(wrong_type(name, "a string"));
  return member->as_string();
}

Result<std::int64_t> JsonFields::integer(std::string_view name) const {
  KERNELPATH_TRY(number, optional_integer(name));
  if (!number) return fail(missing(name, "an integer"));
  return *number;
}

Result<std::optional<std::int64_t>> JsonFields::optional_integer(std::string_view name) const {
  const json::Value* member = value_->find_non_null(name);
  if (member == nullptr) return std::nullopt;
  if (!member->is_integer()) return fail(wrong_type(name, "an integer"));
  return member->as_integer();
}

Result<bool> JsonFields::boolean_or(std::string_view name, bool otherwise) const {
  const json::Value* member = value_->find_non_null(name);
  if (member == nullptr) return otherwise;
  if (!member->is_bool()) return fail(wrong_type(name, "true or false"));
  return member->as_bool();
}

Result<std::vector<std::string>> JsonFields::strings(std::string_view name) const {
  if (value_->find_non_null(name) == nullptr) return fail(missing(name, "a list of strings"));
  return optional_strings(name);
}

Result<std::vector<std::string>> JsonFields::optional_strings(std::string_view name) const {
  std::vector<std::string> texts;
  const json::Value* member = value_->find_non_null(name);
  if (member == nullptr) return texts;
  if (!member->is_array()) return fail(wrong_type(name, "a list of strings"));
  for (const json::Value& item : member->items()) {
    if (!item.is_string()) return fail(error(name, "expected a list of strings only"));
    texts.push_back(item.as_string());
  }
  return texts;
}

Result<std::vector<std::pair<std::string, std::string>>> JsonFields::optional_string_map(
    std::string_view name) const {
  std::vector<std::pair<std::string, std::string>> rows;
  if (value_->find_non_null(name) == nullptr) return rows;
  KERNELPATH_TRY(map, object(name));
  for (const json::Member& member : map.value().members()) {
    KERNELPATH_TRY(text, map.string(member.key));
    rows.emplace_back(member.key, std::move(text));
  }
  return rows;
}

Result<JsonFields> JsonFields::object(std::string_view name) const {
  const json::Value* member = value_->find_non_null(name);
  if (member == nullptr) return fail(missing(name, "an object"));
  return of(*member, origin_, pointer_to(name));
}

Result<std::vector<JsonFields>> JsonFields::objects(std::string_view name) const {
  const json::Value* member = value_->find_non_null(name);
  if (member == nullptr) return fail(missing(name, "a list of objects"));
  if (!member->is_array()) return fail(wrong_type(name, "a list of objects"));
  std::vector<JsonFields> list;
  for (const json::Value& item : member->items()) {
    KERNELPATH_TRY(fields, of(item, origin_, pointer_to(name) + "/" + std::to_string(list.size())));
    list.push_back(std::move(fields));
  }
  return list;
}

Result<JsonFields> JsonFields::fields_of(const json::Member& member) const {
  return of(member.value, origin_, pointer_to(member.key));
}

}  // namespace kernelpath::engines
