#pragma once

#include "base/result.h"
#include "tokenizer/byte_trie.h"
#include "tokenizer/token_id.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kernelpath::tokenizer {

// A token that is found in the text before anything else is done with it.
struct AddedToken {
  std::string content;
  TokenId id = kNoToken;
  bool special = false;      // left out by decoding where that is asked for
  bool normalized = false;   // looked for in the normalised text
  bool single_word = false;  // not within a word
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and behind it
};

// A part of a text: an added token, or what lies between two (token == kNoToken).
struct TextPart {
  std::size_t begin = 0;
  std::size_t end = 0;
  TokenId token = kNoToken;
};

// The added tokens of a tokenizer.
class AddedTokens {
 public:
  // Longer ones are refused: every place in a text is compared with the longest token.
  static constexpr std::size_t kMaxTokenBytes = 1024;

  // `pattern` is what to look for: the content, or for a normalised token what the normalizer makes
  // of it. A later token of the same content replaces the earlier one.
  void add(AddedToken token, std::string_view pattern);

  // Cuts a text at the tokens that are looked for in it: those that are (or are not) `normalized`.
  // Where several fit, the first in the text counts, then the longest. Without `parse_special`
  // special tokens are ordinary text. The parts cover the text.
  [[nodiscard]] std::vector<TextPart> find(std::string_view text, bool normalized,
                                           bool parse_special) const;

  [[nodiscard]] const AddedToken* by_id(TokenId id) const;
  [[nodiscard]] const AddedToken* by_content(std::string_view content) const;
  // What decoding takes for the token: its pattern.
  [[nodiscard]] std::optional<std::string_view> text(TokenId id) const;
  // By content; special ones are skipped whatever their id.
  [[nodiscard]] bool is_special(std::string_view text) const;
  [[nodiscard]] std::size_t size() const { return contents_.size(); }
  [[nodiscard]] const std::unordered_map<TokenId, AddedToken>& tokens() const { return tokens_; }

 private:
  // The longest token that begins at `at`; kNoToken where none does.
  [[nodiscard]] TextPart longest_at(std::string_view text, std::size_t at, bool normalized) const;

  std::unordered_map<TokenId, AddedToken> tokens_;
  std::unordered_map<TokenId, std::string> patterns_;  // where they differ from the content
  std::unordered_map<std::string, TokenId> contents_;
  ByteTrie plain_;
  ByteTrie normalized_;
};

}  // namespace kernelpath::tokenizer
