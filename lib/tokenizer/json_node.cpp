#include "tokenizer/json_node.h"

#include "base/text.h"
#include "base/utf8.h"
#include "json/document.h"

#include <algorithm>
#include <vector>

namespace kernelpath::tokenizer {

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  const json::Value* found = value_->find_non_null(key);
  if (found == nullptr) return std::nullopt;
  return JsonNode(*found, pointer_ + "/" + json::pointer_token(key), file_);
}

Result<JsonNode> JsonNode::member(std::string_view key) const {
  auto found = find(key);
  if (found) return *std::move(found);
  return fail({.code = ErrorCode::kConfigMissing,
               .message = "the field \"" + std::string(key) + "\" is missing",
               .file = std::string(file_),
               .where = pointer_ + "/" + json::pointer_token(key)});
}

JsonNode JsonNode::item(std::size_t index) const {
  return {value_->items()[index], pointer_ + "/" + std::to_string(index), file_};
}

Result<void> JsonNode::expect(json::Type type) const {
  if (value_->type() == type) return {};
  return fail(error(ErrorCode::kConfigType, "must be of type " +
                                                std::string(json::type_name(type)) + ", not " +
                                                std::string(json::type_name(value_->type()))));
}

Result<std::string> JsonNode::string(std::string_view key) const {
  KERNELPATH_TRY(node, member(key));
  KERNELPATH_CHECK_OK(node.expect(json::Type::kString));
  return node.value().as_string();
}

Result<bool> JsonNode::boolean(std::string_view key, bool missing) const {
  const auto node = find(key);
  if (!node) return missing;
  KERNELPATH_CHECK_OK(node->expect(json::Type::kBool));
  return node->value().as_bool();
}

Result<std::int64_t> JsonNode::integer(std::string_view key, std::int64_t limit) const {
  KERNELPATH_TRY(node, member(key));
  KERNELPATH_CHECK_OK(node.expect(json::Type::kInteger));
  const std::int64_t number = node.value().as_integer();
  if (number >= 0 && number <= limit) return number;
  return fail(node.error(ErrorCode::kConfigValue,
                         "must be a whole number from 0 to " + std::to_string(limit)));
}

Result<JsonNode> JsonNode::list(std::string_view key) const {
  KERNELPATH_TRY(node, member(key));
  KERNELPATH_CHECK_OK(node.expect(json::Type::kArray));
  return node;
}

Result<std::string> JsonNode::character(std::string_view key) const {
  KERNELPATH_TRY(text, string(key));
  if (!text.empty() && decode_utf8(text).length == text.size()) return text;
  return fail(member(key)->error(ErrorCode::kConfigValue, "must be exactly one character"));
}

Result<void> JsonNode::allow_only(std::initializer_list<std::string_view> known) const {
  KERNELPATH_CHECK_OK(expect(json::Type::kObject));
  for (const json::Member& member : value_->members()) {
    if (member.value.is_null() || std::ranges::find(known, member.key) != known.end()) continue;
    std::vector<std::string> words(known.begin(), known.end());
    return fail(find(member.key)
                    ->error(ErrorCode::kConfigValue,
                            "this field is not supported; known are " + join_words(words)));
  }
  return {};
}

Error JsonNode::error(ErrorCode code, std::string message, std::string hint) const {
  return {.code = code,
          .message = std::move(message),
          .file = std::string(file_),
          .where = pointer_,
          .value = value_->brief(),
          .hint = std::move(hint)};
}

}  // namespace kernelpath::tokenizer
