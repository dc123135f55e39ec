#include "base/text.h"
#include "base/utf8.h"
#include "tokenizer/bpe.h"
#include "tokenizer/model.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace kernelpath::tokenizer {
namespace {

constexpr std::int64_t kMaxId = std::numeric_limits<TokenId>::max() - 1;

std::size_t count_bytes(const json::Value& vocabulary) {
  std::size_t bytes = 0;
  for (const json::Member& member : vocabulary.members()) bytes += member.key.size();
  return bytes;
}

Result<Vocabulary> read_vocabulary(const JsonNode& model, std::vector<Warning>& warnings) {
  KERNELPATH_TRY(node, model.member("vocab"));
  KERNELPATH_CHECK_OK(node.expect(json::Type::kObject));
  Vocabulary vocabulary(count_bytes(node.value()), node.value().members().size());
  for (const json::Member& member : node.value().members()) {
    const bool is_id = member.value.is_integer() && member.value.as_integer() >= 0 &&
                       member.value.as_integer() <= kMaxId;
    if (!is_id) {
      return fail(node.find(member.key)
                      .value_or(node)
                      .error(ErrorCode::kConfigValue,
                             "must be a token id, a whole number from 0 to 2147483646"));
    }
    const auto id = static_cast<TokenId>(member.value.as_integer());
    if (vocabulary.add(member.key, id)) continue;
    warnings.push_back({.file = std::string(node.file()),
                        .where = node.pointer(),
                        .message = "the tokens " + std::string(*vocabulary.token(id)) + " and " +
                                   member.key + " have the same id " + std::to_string(id) +
                                   "; decoding gives the first"});
  }
  return vocabulary;
}

struct MergeTexts {
  std::string_view left;
  std::string_view right;
};

// ["a", "b"] or "a b".
Result<MergeTexts> merge_texts(const JsonNode& list, std::size_t index) {
  const json::Value& entry = list.value().items()[index];
  const auto is_text = [](const json::Value& value) { return value.is_string(); };
  if (entry.is_array() && entry.items().size() == 2 &&
      std::ranges::all_of(entry.items(), is_text)) {
    return MergeTexts{entry.items()[0].as_string(), entry.items()[1].as_string()};
  }
  if (entry.is_string()) {
    const std::string_view text = entry.as_string();
    const std::size_t space = text.find(' ');
    if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos) {
      return MergeTexts{text.substr(0, space), text.substr(space + 1)};
    }
  }
  return fail(list.item(index).error(ErrorCode::kConfigValue,
                                     R"(must be two tokens: ["a", "b"] or "a b")"));
}

Unexpected missing_token(const JsonNode& list, std::size_t index, std::string_view token) {
  return fail(list.item(index).error(
      ErrorCode::kConfigValue,
      "the merge names \"" + shorten(token, 40) + "\", which is not in the vocabulary",
      "the file is incomplete or was edited by hand; fetch it again"));
}

std::uint32_t last_code_point(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<std::uint8_t>(text[begin]) & 0xc0U) == 0x80U) --begin;
  return decode_utf8(text.substr(begin)).value;
}

Result<void> read_merges(const JsonNode& model, BpeParts& parts) {
  KERNELPATH_TRY(list, model.list("merges"));
  const std::size_t count = list.value().items().size();
  parts.merges = MergeTable(count);
  parts.joints = MergeTable(count);
  std::uint32_t rank = 0;
  std::string joined;
  for (std::size_t i = 0; i < count; ++i) {
    const json::Value& entry = list.value().items()[i];
    if (entry.is_string() && entry.as_string().starts_with("#version")) continue;
    KERNELPATH_TRY(texts, merge_texts(list, i));
    const auto left = parts.vocabulary.find(texts.left);
    if (!left) return missing_token(list, i, texts.left);
    const auto right = parts.vocabulary.find(texts.right);
    if (!right) return missing_token(list, i, texts.right);
    joined = texts.left;
    joined += texts.right.substr(std::min(parts.continuing_prefix.size(), texts.right.size()));
    const auto id = parts.vocabulary.find(joined);
    if (!id) return missing_token(list, i, joined);
    parts.merges.set(static_cast<std::uint32_t>(*left), static_cast<std::uint32_t>(*right),
                     {.rank = rank++, .id = *id});
    if (texts.left.empty() || texts.right.empty()) continue;
    parts.joints.set(last_code_point(texts.left), decode_utf8(texts.right).value, {});
  }
  return {};
}

Result<std::string> optional_text(const JsonNode& node, std::string_view key) {
  if (!node.find(key)) return std::string();
  return node.string(key);
}

Result<void> read_options(const JsonNode& node, BpeParts& parts, std::vector<Warning>& warnings) {
  KERNELPATH_TRY(fuse_unknown, node.boolean("fuse_unk", false));
  parts.fuse_unknown = fuse_unknown;
  KERNELPATH_TRY(byte_fallback, node.boolean("byte_fallback", false));
  parts.byte_fallback = byte_fallback;
  KERNELPATH_TRY(ignore_merges, node.boolean("ignore_merges", false));
  parts.ignore_merges = ignore_merges;
  KERNELPATH_TRY(prefix, optional_text(node, "continuing_subword_prefix"));
  parts.continuing_prefix = prefix;
  KERNELPATH_TRY(suffix, optional_text(node, "end_of_word_suffix"));
  parts.end_suffix = suffix;
  if (node.find("unk_token")) {
    KERNELPATH_TRY(unknown, node.string("unk_token"));
    parts.unknown = parts.vocabulary.find(unknown);
    if (!parts.unknown) {
      return fail(
          node.member("unk_token")->error(ErrorCode::kConfigValue, "is not in the vocabulary"));
    }
  }
  if (const auto dropout = node.find("dropout")) {
    if (!dropout->value().is_number()) return dropout->expect(json::Type::kDouble);
    if (dropout->value().as_double() == 0) return {};
    warnings.push_back({.file = std::string(node.file()),
                        .where = dropout->pointer(),
                        .message = "dropout is for training; texts are encoded without it"});
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Model>> read_bpe(const JsonNode& node, std::vector<Warning>& warnings) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "dropout", "unk_token", "continuing_subword_prefix",
                                       "end_of_word_suffix", "fuse_unk", "byte_fallback",
                                       "ignore_merges", "vocab", "merges"}));
  KERNELPATH_TRY(vocabulary, read_vocabulary(node, warnings));
  BpeParts parts{
      .vocabulary = std::move(vocabulary), .merges = MergeTable(0), .joints = MergeTable(0)};
  KERNELPATH_CHECK_OK(read_options(node, parts, warnings));
  KERNELPATH_CHECK_OK(read_merges(node, parts));
  return std::make_unique<Bpe>(std::move(parts));
}

}  // namespace kernelpath::tokenizer
