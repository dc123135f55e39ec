#include "tokenizer/vocabulary.h"

#include "base/assert.h"

#include <algorithm>

namespace kernelpath::tokenizer {

Vocabulary::Vocabulary(std::size_t bytes, std::size_t count) {
  arena_.reserve(bytes);
  ids_.reserve(count);
  tokens_.reserve(count);
}

bool Vocabulary::add(std::string_view token, TokenId id) {
  if (ids_.contains(token)) return false;
  KERNELPATH_ASSERT(arena_.size() + token.size() <= arena_.capacity());
  const std::size_t begin = arena_.size();
  arena_.insert(arena_.end(), token.begin(), token.end());
  const std::string_view kept(arena_.data() + begin, token.size());
  ids_.emplace(kept, id);
  highest_id_ = std::max(highest_id_, id);
  longest_token_ = std::max(longest_token_, token.size());
  return tokens_.emplace(id, kept).second;
}

std::optional<TokenId> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string_view> Vocabulary::token(TokenId id) const {
  const auto found = tokens_.find(id);
  if (found == tokens_.end()) return std::nullopt;
  return found->second;
}

}  // namespace kernelpath::tokenizer
