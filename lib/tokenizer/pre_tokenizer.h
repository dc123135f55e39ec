#pragma once

#include "base/result.h"
#include "tokenizer/json_node.h"
#include "tokenizer/token_id.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::tokenizer {

// A part of PieceList::text.
struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool is_first = false;     // begins where the user's text begins
  TokenId token = kNoToken;  // of an added token, which is cut no further
};

// A text and its pieces in order; what no piece covers was dropped.
struct PieceList {
  std::string text;
  std::vector<Piece> pieces;

  [[nodiscard]] std::string_view view(const Piece& piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
};

// Cuts a text into the pieces that the model sees: the "pre_tokenizer" of tokenizer.json.
class PreTokenizer {
 public:
  PreTokenizer() = default;
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;
  virtual ~PreTokenizer() = default;

  // Error: kInputLimit (a pattern takes too many steps).
  [[nodiscard]] virtual Result<void> apply(PieceList& list) const = 0;
};

// ByteLevel, CharDelimiterSplit, Digits, FixedLength, Metaspace, Punctuation, Sequence, Split,
// Whitespace, WhitespaceSplit and BertPreTokenizer; others are refused by name.
Result<std::unique_ptr<PreTokenizer>> read_pre_tokenizer(const JsonNode& node);

// The members of Metaspace, which is a pre-tokenizer and a decoder.
struct MetaspaceOptions {
  enum class Prepend : std::uint8_t { kAlways, kFirst, kNever };

  std::string replacement;
  Prepend prepend = Prepend::kAlways;
  bool split = true;
};
Result<MetaspaceOptions> read_metaspace(const JsonNode& node);

}  // namespace kernelpath::tokenizer
