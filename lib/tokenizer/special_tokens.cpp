#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "json/document.h"
#include "tokenizer/parts.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace kernelpath::tokenizer {
namespace {

constexpr std::int64_t kMaxId = std::numeric_limits<TokenId>::max() - 1;

// The tokens that transformers knows by name; the files may name more ("image_token").
constexpr std::array<std::string_view, 7> kNamedKeys = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

// Nothing where the folder has no such file.
Result<std::optional<json::Document>> read_optional(const std::string& folder,
                                                    std::string_view name) {
  const std::string path = join_path(folder, name);
  KERNELPATH_TRY(kind, path_kind(path));
  if (kind == PathKind::kMissing) return std::optional<json::Document>();
  KERNELPATH_TRY(contents, read_file(path, json::Limits{}.max_bytes));
  KERNELPATH_TRY(document, json::parse_object(std::move(contents.text), path));
  return std::optional<json::Document>(std::move(document));
}

void warn(const JsonNode& node, std::string message, Tokenizer::Parts& parts) {
  parts.warnings.push_back(
      {.file = std::string(node.file()), .where = node.pointer(), .message = std::move(message)});
}

// "added_tokens_decoder": {"128009": {"content": …}}; what it says of a token counts more than
// tokenizer.json.
Result<void> read_added_tokens_decoder(const JsonNode& config, Tokenizer::Parts& parts) {
  const auto list = config.find("added_tokens_decoder");
  if (!list) return {};
  KERNELPATH_CHECK_OK(list->expect(json::Type::kObject));
  for (const json::Member& member : list->value().members()) {
    KERNELPATH_TRY(node, list->member(member.key));
    KERNELPATH_TRY(token, read_added_token(node));
    const auto key = parse_integer(member.key);
    if (!key || *key > kMaxId) {
      return fail(node.error(ErrorCode::kConfigValue, "the key must be a token id"));
    }
    if (token.content.empty()) continue;
    const auto known = parts.find(token.content);
    token.id = known.value_or(static_cast<TokenId>(*key));
    if (token.id != static_cast<TokenId>(*key)) {
      warn(node, "\"" + token.content + "\" has the id " + std::to_string(token.id), parts);
    }
    KERNELPATH_CHECK_OK(add_token(std::move(token), parts));
  }
  return {};
}

// "<s>" or {"content": "<s>", "lstrip": false, …}.
Result<AddedToken> read_special(const JsonNode& node) {
  if (node.value().is_object()) return read_added_token(node);
  KERNELPATH_CHECK_OK(node.expect(json::Type::kString));
  return AddedToken{.content = node.value().as_string()};
}

// A token that the configuration calls special is special, also where tokenizer.json has it in the
// vocabulary only.
Result<std::optional<TokenId>> use_special(const JsonNode& node, AddedToken token,
                                           Tokenizer::Parts& parts) {
  const auto id = parts.find(token.content);
  if (!id || parts.added.by_content(token.content) != nullptr) return id;
  token.id = *id;
  token.special = true;
  token.normalized = false;
  if (token.content.size() > AddedTokens::kMaxTokenBytes) {
    return fail(node.error(ErrorCode::kInputLimit, "a special token may be 1024 bytes long"));
  }
  KERNELPATH_CHECK_OK(add_token(std::move(token), parts));
  return id;
}

bool is_special_key(std::string_view key, const json::Value& value) {
  if (std::ranges::find(kNamedKeys, key) != kNamedKeys.end()) return true;
  return key.ends_with("_token") && (value.is_string() || value.find("content") != nullptr);
}

Result<void> read_named(const JsonNode& config, Tokenizer::Parts& parts) {
  for (const json::Member& member : config.value().members()) {
    if (member.value.is_null() || !is_special_key(member.key, member.value)) continue;
    KERNELPATH_TRY(node, config.member(member.key));
    KERNELPATH_TRY(token, read_special(node));
    const std::string content = token.content;
    if (content.empty()) continue;
    KERNELPATH_TRY(id, use_special(node, std::move(token), parts));
    const bool is_needed = member.key == "bos_token" || member.key == "eos_token";
    if (!id && is_needed) {
      return fail(node.error(ErrorCode::kConfigValue, "names a token that the vocabulary lacks",
                             "the tokenizer's files do not belong together; fetch them again"));
    }
    if (!id) warn(node, "the vocabulary has no token \"" + content + "\"", parts);
    parts.special.named.push_back({.key = member.key, .content = content, .id = id});
  }
  return {};
}

// Lists of more special tokens, which have no name of their own.
Result<void> read_more(const JsonNode& config, Tokenizer::Parts& parts) {
  for (const std::string_view key : {"additional_special_tokens", "extra_special_tokens"}) {
    const auto list = config.find(key);
    if (!list || !list->value().is_array()) continue;
    for (std::size_t i = 0; i < list->value().items().size(); ++i) {
      const JsonNode node = list->item(i);
      KERNELPATH_TRY(token, read_special(node));
      if (token.content.empty()) continue;
      const std::string content = token.content;
      KERNELPATH_TRY(id, use_special(node, std::move(token), parts));
      if (!id) warn(node, "the vocabulary has no token \"" + content + "\"", parts);
    }
  }
  return {};
}

std::optional<TokenId> named_id(std::string_view key, const SpecialTokens& special) {
  const auto found = std::ranges::find(special.named, key, &SpecialToken::key);
  return found == special.named.end() ? std::nullopt : found->id;
}

// A number or a list of numbers; an empty list where there is none.
Result<std::vector<TokenId>> read_ids(const JsonNode& config, std::string_view key) {
  const auto node = config.find(key);
  std::vector<TokenId> ids;
  if (!node) return ids;
  const json::Value& value = node->value();
  const std::size_t count = value.is_array() ? value.items().size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    const json::Value& id = value.is_array() ? value.items()[i] : value;
    // -1 is written for "none".
    if (id.is_integer() && id.as_integer() < 0) continue;
    if (!id.is_integer() || id.as_integer() > kMaxId) {
      return fail((value.is_array() ? node->item(i) : *node)
                      .error(ErrorCode::kConfigValue, "must be a token id or a list of them"));
    }
    ids.push_back(static_cast<TokenId>(id.as_integer()));
  }
  return ids;
}

// The first of the files that has the key.
Result<std::vector<TokenId>> first_ids(std::span<const JsonNode> files, std::string_view key) {
  for (const JsonNode& file : files) {
    if (file.find(key)) return read_ids(file, key);
  }
  return std::vector<TokenId>();
}

std::optional<TokenId> first_of(std::optional<TokenId> id, const std::vector<TokenId>& others) {
  if (id || others.empty()) return id;
  return others.front();
}

Result<void> read_roles(std::span<const JsonNode> files, Tokenizer::Parts& parts) {
  SpecialTokens& special = parts.special;
  KERNELPATH_TRY(bos, first_ids(files, "bos_token_id"));
  KERNELPATH_TRY(pad, first_ids(files, "pad_token_id"));
  KERNELPATH_TRY(eos, first_ids(files, "eos_token_id"));
  special.bos = first_of(named_id("bos_token", special), bos);
  special.pad = first_of(named_id("pad_token", special), pad);
  special.unk = named_id("unk_token", special);
  if (const auto id = named_id("eos_token", special)) eos.push_back(*id);
  special.eos.clear();
  for (const TokenId id : eos) {
    if (std::ranges::find(special.eos, id) == special.eos.end()) special.eos.push_back(id);
  }
  return {};
}

}  // namespace

Result<void> read_special_tokens(const std::string& folder, Tokenizer::Parts& parts) {
  KERNELPATH_TRY(config, read_optional(folder, "tokenizer_config.json"));
  if (config) {
    const JsonNode node(config->root, "", config->file);
    KERNELPATH_CHECK_OK(read_added_tokens_decoder(node, parts));
    KERNELPATH_CHECK_OK(read_named(node, parts));
    KERNELPATH_CHECK_OK(read_more(node, parts));
  }
  KERNELPATH_TRY(generation, read_optional(folder, "generation_config.json"));
  KERNELPATH_TRY(model, read_optional(folder, "config.json"));
  std::vector<JsonNode> files;
  if (generation) files.emplace_back(generation->root, "", generation->file);
  if (model) files.emplace_back(model->root, "", model->file);
  return read_roles(files, parts);
}

}  // namespace kernelpath::tokenizer
