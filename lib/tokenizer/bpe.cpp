#include "tokenizer/bpe.h"

#include "base/utf8.h"

#include <utility>

namespace kernelpath::tokenizer {
namespace {

constexpr std::size_t kTableCharacters = 0x800;

}  // namespace

struct Bpe::Scratch {
  PieceCache cache;
  std::vector<TokenId> tokens;
  std::string text;
};

Bpe::Bpe(BpeParts parts) : parts_(std::move(parts)), characters_(kTableCharacters, kNoToken) {
  for (std::uint32_t c = 0; c < kTableCharacters; ++c) {
    std::string character;
    append_utf8(character, c);
    characters_[c] = parts_.vocabulary.find(character).value_or(kNoToken);
  }
  bytes_.reserve(256);
  for (unsigned byte = 0; byte < 256; ++byte) {
    bytes_.push_back(
        parts_.vocabulary.find(byte_token(static_cast<std::uint8_t>(byte))).value_or(kNoToken));
  }
}

Bpe::~Bpe() = default;

std::optional<TokenId> Bpe::find(std::string_view token) const {
  return parts_.vocabulary.find(token);
}

std::optional<std::string_view> Bpe::token(TokenId id) const { return parts_.vocabulary.token(id); }

std::unique_ptr<Bpe::Scratch> Bpe::take_scratch() const {
  std::unique_ptr<Scratch> out;
  {
    const std::lock_guard lock(mutex_);
    out = std::move(scratch_);
  }
  if (out == nullptr) out = std::make_unique<Scratch>();
  return out;
}

void Bpe::give_back(std::unique_ptr<Scratch> scratch) const {
  const std::lock_guard lock(mutex_);
  scratch_ = std::move(scratch);
}

Result<void> Bpe::encode(const PieceList& list, std::vector<TokenId>& out) const {
  auto scratch = take_scratch();
  for (const Piece& piece : list.pieces) {
    if (piece.token != kNoToken) {
      out.push_back(piece.token);
    } else {
      encode_piece(list.view(piece), *scratch, out);
    }
  }
  give_back(std::move(scratch));
  return {};
}

void Bpe::encode_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  if (parts_.ignore_merges && piece.size() <= parts_.vocabulary.longest_token()) {
    if (const auto whole = parts_.vocabulary.find(piece)) {
      out.push_back(*whole);
      return;
    }
  }
  if (piece.size() <= PieceCache::kMaxPieceBytes) {
    encode_cached(piece, scratch, out);
  } else {
    encode_long(piece, scratch, out);
  }
}

void Bpe::encode_cached(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  if (const auto known = scratch.cache.find(piece)) {
    out.insert(out.end(), known->begin(), known->end());
    return;
  }
  encode_word(piece, scratch);
  scratch.cache.add(piece, scratch.tokens);
  out.insert(out.end(), scratch.tokens.begin(), scratch.tokens.end());
}

// Files without a pre-tokenizer make the whole text one piece. Cut where no merge reaches across,
// it has the same tokens, and its words are found in the cache.
void Bpe::encode_long(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  while (!piece.empty()) {
    const std::string_view word = piece.substr(0, cut_after(piece));
    piece.remove_prefix(word.size());
    if (word.size() <= PieceCache::kMaxPieceBytes) {
      encode_cached(word, scratch, out);
    } else {
      encode_word(word, scratch);
      out.insert(out.end(), scratch.tokens.begin(), scratch.tokens.end());
    }
  }
}

// Length of the longest start of a text that no merge joins with the rest.
std::size_t Bpe::cut_after(std::string_view text) const {
  // Prefix and suffix of a piece would appear at each cut.
  if (!parts_.continuing_prefix.empty() || !parts_.end_suffix.empty()) return text.size();
  CodePoint left = decode_utf8(text);
  bool left_is_known = character_token(text.substr(0, left.length), left.value).has_value();
  for (std::size_t at = left.length; at < text.size();) {
    const CodePoint right = decode_utf8(text.substr(at));
    const bool right_is_known =
        character_token(text.substr(at, right.length), right.value).has_value();
    const bool may_cut =
        left_is_known && right_is_known && parts_.joints.find(left.value, right.value) == nullptr;
    if (may_cut) return at;
    left = right;
    left_is_known = right_is_known;
    at += right.length;
  }
  return text.size();
}

std::optional<TokenId> Bpe::character_token(std::string_view character,
                                            std::uint32_t code_point) const {
  if (code_point >= kTableCharacters) return parts_.vocabulary.find(character);
  if (characters_[code_point] == kNoToken) return std::nullopt;
  return characters_[code_point];
}

// The tokens of a character that is not in the vocabulary; false where it has none but the unknown
// one. `characters` is longer than one where a prefix or suffix belongs to it.
bool Bpe::add_bytes(std::string_view characters, std::vector<TokenId>& tokens) const {
  if (!parts_.byte_fallback) return false;
  const std::size_t size = tokens.size();
  for (const char byte : characters) {
    const TokenId id = bytes_[static_cast<std::uint8_t>(byte)];
    if (id == kNoToken) {
      tokens.resize(size);
      return false;
    }
    tokens.push_back(id);
  }
  return true;
}

// A character as the vocabulary has it: with the prefix or suffix of its place in the word.
std::string_view Bpe::affixed(std::string_view word, std::size_t at, std::size_t length,
                              std::string& buffer) const {
  const std::string_view character = word.substr(at, length);
  if (parts_.continuing_prefix.empty() && parts_.end_suffix.empty()) return character;
  buffer = at == 0 ? "" : parts_.continuing_prefix;
  buffer += character;
  if (at + length == word.size()) buffer += parts_.end_suffix;
  return buffer;
}

// The tokens of a word end up in scratch.tokens.
void Bpe::encode_word(std::string_view word, Scratch& scratch) const {
  std::vector<TokenId>& tokens = scratch.tokens;
  tokens.clear();
  // An unknown token waits for the next known one: several in a row may be one. Tokens of bytes do
  // not end the waiting, as in the library.
  bool unknown_waits = false;
  for (std::size_t at = 0; at < word.size();) {
    const CodePoint c = decode_utf8(word.substr(at));
    const std::string_view character = affixed(word, at, c.length, scratch.text);
    const auto id = character.size() == c.length ? character_token(character, c.value)
                                                 : parts_.vocabulary.find(character);
    at += c.length;
    if (id) {
      if (unknown_waits) tokens.push_back(*parts_.unknown);
      unknown_waits = false;
      tokens.push_back(*id);
    } else if (!add_bytes(character, tokens) && parts_.unknown) {
      if (unknown_waits && !parts_.fuse_unknown) tokens.push_back(*parts_.unknown);
      unknown_waits = true;
    }
  }
  if (unknown_waits) tokens.push_back(*parts_.unknown);
  merge_tokens(tokens, parts_.merges);
}

}  // namespace kernelpath::tokenizer
