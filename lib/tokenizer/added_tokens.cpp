#include "tokenizer/added_tokens.h"

#include "base/utf8.h"
#include "tokenizer/unicode.h"

#include <algorithm>
#include <utility>

namespace kernelpath::tokenizer {
namespace {

// The last code point of valid UTF-8, and where it begins.
struct LastCharacter {
  std::uint32_t value = 0;
  std::size_t begin = 0;
};
LastCharacter last_character(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<std::uint8_t>(text[begin]) & 0xc0U) == 0x80U) --begin;
  return {decode_utf8(text.substr(begin)).value, begin};
}

bool is_within_word(std::string_view text, std::size_t begin, std::size_t end) {
  const bool word_before = begin > 0 && is_word(last_character(text.substr(0, begin)).value);
  return word_before || (end < text.size() && is_word(decode_utf8(text.substr(end)).value));
}

// Where the white space that ends at `begin` begins, but not before `limit`.
std::size_t space_start(std::string_view text, std::size_t begin, std::size_t limit) {
  while (begin > limit) {
    const LastCharacter last = last_character(text.substr(0, begin));
    if (!is_white_space(last.value) || last.begin < limit) break;
    begin = last.begin;
  }
  return begin;
}

std::size_t space_end(std::string_view text, std::size_t end) {
  while (end < text.size()) {
    const CodePoint c = decode_utf8(text.substr(end));
    if (!is_white_space(c.value)) break;
    end += c.length;
  }
  return end;
}

}  // namespace

void AddedTokens::add(AddedToken token, std::string_view pattern) {
  const TokenId id = token.id;
  (token.normalized ? normalized_ : plain_).add(pattern, id);
  // An earlier token of this id may have had another pattern.
  patterns_.erase(id);
  if (pattern != token.content) patterns_.emplace(id, pattern);
  contents_.insert_or_assign(token.content, id);
  tokens_.insert_or_assign(id, std::move(token));
}

TextPart AddedTokens::longest_at(std::string_view text, std::size_t at, bool normalized) const {
  TextPart out{.begin = at, .end = at};
  const ByteTrie& trie = normalized ? normalized_ : plain_;
  if (!trie.has_start(text[at])) return out;
  trie.for_each_prefix(text.substr(at), [&](std::size_t length, std::int32_t id) {
    // A token that was replaced by one of the other kind is still in this trie.
    if (tokens_.at(id).normalized != normalized) return;
    out.end = at + length;
    out.token = id;
  });
  return out;
}

std::vector<TextPart> AddedTokens::find(std::string_view text, bool normalized,
                                        bool parse_special) const {
  const ByteTrie& trie = normalized ? normalized_ : plain_;
  std::vector<TextPart> parts;
  std::size_t covered = 0;
  for (std::size_t at = 0; at < text.size() && !trie.empty();) {
    const TextPart found = longest_at(text, at, normalized);
    if (found.token == kNoToken) {
      ++at;
      continue;
    }
    std::size_t begin = found.begin;
    std::size_t end = found.end;
    at = end;
    const AddedToken& token = tokens_.at(found.token);
    if (token.special && !parse_special) continue;
    if (token.single_word && is_within_word(text, begin, end)) continue;
    if (token.lstrip) begin = space_start(text, begin, covered);
    if (token.rstrip) end = space_end(text, end);
    // What the token before took along is not there again; the library drops the empty rest.
    if (token.lstrip) begin = std::max(begin, covered);
    if (covered < begin) parts.push_back({.begin = covered, .end = begin});
    if (begin < end) parts.push_back({.begin = begin, .end = end, .token = found.token});
    covered = std::max(covered, end);
  }
  if (covered < text.size()) parts.push_back({.begin = covered, .end = text.size()});
  return parts;
}

const AddedToken* AddedTokens::by_id(TokenId id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

const AddedToken* AddedTokens::by_content(std::string_view content) const {
  const auto found = contents_.find(std::string(content));
  return found == contents_.end() ? nullptr : by_id(found->second);
}

std::optional<std::string_view> AddedTokens::text(TokenId id) const {
  const auto pattern = patterns_.find(id);
  if (pattern != patterns_.end()) return pattern->second;
  const AddedToken* token = by_id(id);
  if (token == nullptr) return std::nullopt;
  return token->content;
}

bool AddedTokens::is_special(std::string_view text) const {
  const AddedToken* token = by_content(text);
  return token != nullptr && token->special;
}

}  // namespace kernelpath::tokenizer
