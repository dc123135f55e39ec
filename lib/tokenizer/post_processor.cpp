#include "tokenizer/post_processor.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kernelpath::tokenizer {
namespace {

constexpr std::int64_t kMaxId = std::numeric_limits<TokenId>::max() - 1;

Result<std::vector<TokenId>> read_ids(const JsonNode& token) {
  KERNELPATH_CHECK_OK(token.allow_only({"id", "ids", "tokens"}));
  KERNELPATH_TRY(list, token.list("ids"));
  std::vector<TokenId> ids;
  ids.reserve(list.value().items().size());
  for (std::size_t i = 0; i < list.value().items().size(); ++i) {
    const json::Value& id = list.value().items()[i];
    if (!id.is_integer() || id.as_integer() < 0 || id.as_integer() > kMaxId) {
      return fail(list.item(i).error(ErrorCode::kConfigValue,
                                     "must be a token id, a whole number from 0 to 2147483646"));
    }
    ids.push_back(static_cast<TokenId>(id.as_integer()));
  }
  return ids;
}

// {"Sequence": {"id": "A"}} or {"SpecialToken": {"id": "<s>"}}.
Result<PostProcessor::Part> read_part(const JsonNode& part, const JsonNode& processor) {
  KERNELPATH_CHECK_OK(part.allow_only({"Sequence", "SpecialToken"}));
  if (const auto sequence = part.find("Sequence")) {
    KERNELPATH_TRY(id, sequence->string("id"));
    if (id == "A") return PostProcessor::Part{.is_text = true};
    return fail(sequence->error(ErrorCode::kConfigValue,
                                "a template for one text may hold the sequence A only"));
  }
  KERNELPATH_TRY(special, part.member("SpecialToken"));
  KERNELPATH_TRY(name, special.string("id"));
  const auto tokens = processor.find("special_tokens");
  const auto token = tokens ? tokens->find(name) : std::nullopt;
  if (!token) {
    return fail(special.error(ErrorCode::kConfigValue,
                              "the template names a token that special_tokens does not hold"));
  }
  KERNELPATH_TRY(ids, read_ids(*token));
  return PostProcessor::Part{.ids = std::move(ids)};
}

Result<PostProcessor> read_template(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "single", "pair", "special_tokens"}));
  KERNELPATH_TRY(list, node.list("single"));
  PostProcessor processor{.parts = {}};
  processor.parts.reserve(list.value().items().size());
  for (std::size_t i = 0; i < list.value().items().size(); ++i) {
    KERNELPATH_TRY(part, read_part(list.item(i), node));
    processor.parts.push_back(std::move(part));
  }
  return processor;
}

// ["[SEP]", 102]
Result<TokenId> read_named_id(const JsonNode& node, std::string_view key) {
  KERNELPATH_TRY(pair, node.list(key));
  const auto items = pair.value().items();
  const bool is_pair = items.size() == 2 && items[0].is_string() && items[1].is_integer() &&
                       items[1].as_integer() >= 0 && items[1].as_integer() <= kMaxId;
  if (is_pair) return static_cast<TokenId>(items[1].as_integer());
  return fail(pair.error(ErrorCode::kConfigValue, "must be a token and its id"));
}

Result<PostProcessor> read_enclosing(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "sep", "cls", "trim_offsets", "add_prefix_space"}));
  KERNELPATH_TRY(cls, read_named_id(node, "cls"));
  KERNELPATH_TRY(sep, read_named_id(node, "sep"));
  return PostProcessor{.parts = {{.ids = {cls}}, {.is_text = true}, {.ids = {sep}}}};
}

bool changes_nothing(const PostProcessor& processor) {
  return processor.parts.size() == 1 && processor.parts.front().is_text;
}

Result<PostProcessor> read_sequence(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "processors"}));
  KERNELPATH_TRY(list, node.list("processors"));
  PostProcessor processor;
  for (std::size_t i = 0; i < list.value().items().size(); ++i) {
    KERNELPATH_TRY(next, PostProcessor::read(list.item(i)));
    if (changes_nothing(next)) continue;
    if (!changes_nothing(processor)) {
      return fail(list.item(i).error(
          ErrorCode::kUnavailable,
          "only one processor of a sequence may add tokens; this is the second"));
    }
    processor = std::move(next);
  }
  return processor;
}

}  // namespace

Result<PostProcessor> PostProcessor::read(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.expect(json::Type::kObject));
  KERNELPATH_TRY(type, node.string("type"));
  if (type == "TemplateProcessing") return read_template(node);
  if (type == "Sequence") return read_sequence(node);
  if (type == "BertProcessing" || type == "RobertaProcessing") return read_enclosing(node);
  if (type == "ByteLevel") {
    KERNELPATH_CHECK_OK(node.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    return PostProcessor{};
  }
  return fail(node.member("type")->error(
      ErrorCode::kUnavailable,
      "this post-processor is not supported; known are BertProcessing, ByteLevel, "
      "RobertaProcessing, Sequence and TemplateProcessing"));
}

std::vector<TokenId> PostProcessor::apply(std::vector<TokenId> text, bool add_special) const {
  if (changes_nothing(*this)) return text;
  std::vector<TokenId> out;
  out.reserve(text.size() + parts.size());
  for (const Part& part : parts) {
    if (part.is_text) {
      out.insert(out.end(), text.begin(), text.end());
    } else if (add_special) {
      out.insert(out.end(), part.ids.begin(), part.ids.end());
    }
  }
  return out;
}

}  // namespace kernelpath::tokenizer
