#include "base/file.h"
#include "json/document.h"
#include "tokenizer/parts.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace kernelpath::tokenizer {
namespace {

// Gemma's file of 262 144 tokens has 33 MB and 2.4 million values.
constexpr json::Limits kLimits = {
    .max_bytes = std::size_t{1} << 28, .max_depth = 64, .max_members = 16'000'000};

constexpr std::int64_t kMaxId = std::numeric_limits<TokenId>::max() - 1;

// The id that the `tokenizers` library gives to a token that the model does not have.
TokenId next_id(const Tokenizer::Parts& parts) {
  const auto size = static_cast<TokenId>(parts.model->size());
  TokenId highest = kNoToken;
  for (const auto& [id, token] : parts.added.tokens()) highest = std::max(highest, id);
  return std::max(static_cast<TokenId>(highest + 1), size);
}

Result<void> read_added_tokens(const JsonNode& root, Tokenizer::Parts& parts) {
  const auto list = root.find("added_tokens");
  if (!list) return {};
  KERNELPATH_CHECK_OK(list->expect(json::Type::kArray));
  TokenId next = next_id(parts);
  for (std::size_t i = 0; i < list->value().items().size(); ++i) {
    const JsonNode node = list->item(i);
    KERNELPATH_TRY(token, read_added_token(node));
    KERNELPATH_TRY(id, node.integer("id", kMaxId));
    if (token.content.empty()) continue;
    const auto known = parts.find(token.content);
    token.id = known ? *known : next;
    if (!known) ++next;
    if (token.id != static_cast<TokenId>(id)) {
      parts.warnings.push_back({.file = parts.file,
                                .where = node.pointer() + "/id",
                                .message = "\"" + token.content + "\" has the id " +
                                           std::to_string(token.id) + " and not " +
                                           std::to_string(id)});
    }
    KERNELPATH_CHECK_OK(add_token(std::move(token), parts));
  }
  return {};
}

// What the file asks for and neither transformers nor this code does on its own.
void warn_of_ignored(const JsonNode& root, Tokenizer::Parts& parts) {
  for (const std::string_view key : {"truncation", "padding"}) {
    if (const auto node = root.find(key)) {
      parts.warnings.push_back({.file = parts.file,
                                .where = node->pointer(),
                                .message = "not applied: texts are neither cut nor padded"});
    }
  }
}

Result<void> read_stages(const JsonNode& root, Tokenizer::Parts& parts) {
  KERNELPATH_CHECK_OK(
      root.allow_only({"version", "truncation", "padding", "added_tokens", "normalizer",
                       "pre_tokenizer", "post_processor", "decoder", "model"}));
  if (const auto version = root.find("version")) {
    KERNELPATH_TRY(text, root.string("version"));
    if (text != "1.0") {
      return fail(version->error(ErrorCode::kUnavailable,
                                 "this version of the format is not supported; known is 1.0"));
    }
  }
  if (const auto node = root.find("normalizer")) {
    KERNELPATH_TRY(normalizer, read_normalizer(*node));
    parts.normalizer = std::move(normalizer);
  }
  if (const auto node = root.find("pre_tokenizer")) {
    KERNELPATH_TRY(pre_tokenizer, read_pre_tokenizer(*node));
    parts.pre_tokenizer = std::move(pre_tokenizer);
  }
  if (const auto node = root.find("post_processor")) {
    KERNELPATH_TRY(post_processor, PostProcessor::read(*node));
    parts.post_processor = std::move(post_processor);
  }
  if (const auto node = root.find("decoder")) {
    KERNELPATH_TRY(decoder, Decoder::read(*node));
    parts.decoder = std::move(decoder);
  }
  KERNELPATH_TRY(model_node, root.member("model"));
  KERNELPATH_TRY(model, read_model(model_node, parts.warnings));
  parts.model = std::move(model);
  return {};
}

}  // namespace

Result<AddedToken> read_added_token(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only(
      {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special", "__type"}));
  AddedToken token;
  KERNELPATH_TRY(content, node.string("content"));
  token.content = content;
  if (content.size() > AddedTokens::kMaxTokenBytes) {
    return fail(node.member("content")->error(ErrorCode::kInputLimit,
                                              "an added token may be 1024 bytes long"));
  }
  KERNELPATH_TRY(special, node.boolean("special", false));
  token.special = special;
  KERNELPATH_TRY(normalized, node.boolean("normalized", !special));
  token.normalized = normalized;
  KERNELPATH_TRY(single_word, node.boolean("single_word", false));
  token.single_word = single_word;
  KERNELPATH_TRY(lstrip, node.boolean("lstrip", false));
  token.lstrip = lstrip;
  KERNELPATH_TRY(rstrip, node.boolean("rstrip", false));
  token.rstrip = rstrip;
  return token;
}

Result<void> add_token(AddedToken token, Tokenizer::Parts& parts) {
  std::string pattern = token.content;
  if (token.normalized && parts.normalizer != nullptr) {
    auto normalized = parts.normalizer->apply(std::move(pattern));
    if (!normalized) return fail(std::move(normalized).error());
    pattern = *std::move(normalized);
  }
  parts.added.add(std::move(token), pattern);
  return {};
}

Result<std::unique_ptr<Tokenizer::Parts>> parse_tokenizer_json(std::string text,
                                                               const std::string& file) {
  KERNELPATH_TRY(document, json::parse_object(std::move(text), file, kLimits));
  const JsonNode root(document.root, "", file);
  auto parts = std::make_unique<Tokenizer::Parts>();
  parts->file = file;
  KERNELPATH_CHECK_OK(read_stages(root, *parts));
  KERNELPATH_CHECK_OK(read_added_tokens(root, *parts));
  warn_of_ignored(root, *parts);
  return parts;
}

Result<std::unique_ptr<Tokenizer::Parts>> read_tokenizer_json(const std::string& path) {
  KERNELPATH_TRY(contents, read_file(path, kLimits.max_bytes));
  return parse_tokenizer_json(std::move(contents.text), path);
}

}  // namespace kernelpath::tokenizer
