#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kernelpath::tokenizer {

// Character classes as the `tokenizers` library has them, by Unicode's general categories.

// The property White_Space (not U+180E, which some libraries count).
bool is_white_space(std::uint32_t c);
// Nd, Nl and No: also ² and Ⅳ.
bool is_numeric(std::uint32_t c);
// P* and the symbols among ASCII's punctuation ($+<=>^`|~).
bool is_punctuation(std::uint32_t c);
// What \w means in the `regex` crate: alphabetic, marks, decimal digits, connectors, joiners.
bool is_word(std::uint32_t c);
// Mn, Mc and Me.
bool is_mark(std::uint32_t c);

enum class NormalForm : std::uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// Unicode normalisation of valid UTF-8. Takes time in proportion to the text (times the logarithm
// of its longest run of combining marks), also for text made to be slow.
std::string normalize(std::string_view text, NormalForm form);

// Lower case character by character, without regard to the neighbours (Σ is always σ).
std::string lowercase(std::string_view text);

bool is_ascii(std::string_view text);

// Offset of the first byte that is no valid UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view text);

// What a broken sequence of UTF-8 becomes.
enum class Repair : std::uint8_t {
  kEachPart,  // a U+FFFD for each maximal part of a sequence (Unicode's advice, from_utf8_lossy)
  kEachByte   // one for each byte
};

// Valid UTF-8: what is broken became U+FFFD. Where the text ends inside a sequence that could still
// be completed, `rest` gets that end instead, if given.
std::string repair_utf8(std::string_view text, Repair repair, std::string* rest = nullptr);

}  // namespace kernelpath::tokenizer
