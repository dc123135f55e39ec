#pragma once

#include "tokenizer/token_id.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kernelpath::tokenizer {

// Tokens of a model and their ids, both ways. The texts lie in one arena; ids may have gaps.
class Vocabulary {
 public:
  // `bytes` and `count` are what the caller is about to add; adding more is a bug.
  Vocabulary(std::size_t bytes, std::size_t count);
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  // The maps point into the arena.
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;
  ~Vocabulary() = default;

  // False where the id has a token already (the first one stays) or the token an id.
  bool add(std::string_view token, TokenId id);

  [[nodiscard]] std::optional<TokenId> find(std::string_view token) const;
  // Nothing where no token has the id.
  [[nodiscard]] std::optional<std::string_view> token(TokenId id) const;
  [[nodiscard]] std::size_t size() const { return ids_.size(); }
  [[nodiscard]] TokenId highest_id() const { return highest_id_; }            // -1 if there is none
  [[nodiscard]] std::size_t longest_token() const { return longest_token_; }  // in bytes

 private:
  std::vector<char> arena_;
  std::unordered_map<std::string_view, TokenId> ids_;
  std::unordered_map<TokenId, std::string_view> tokens_;
  TokenId highest_id_ = -1;
  std::size_t longest_token_ = 0;
};

}  // namespace kernelpath::tokenizer
