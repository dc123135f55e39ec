#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kernelpath {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t length = 0;  // in bytes; 0: the first byte does not start valid UTF-8
};

// The code point at the start of a non-empty text. Overlong forms, surrogates, values over U+10FFFF
// and sequences cut off by the end are not valid.
inline CodePoint decode_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return {};
  std::uint32_t value = first & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    value = (value << 6U) | (byte(i) & 0x3fU);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return {};
  return {value, length};
}

// Appends a code point that is not a surrogate.
inline void append_utf8(std::string& out, std::uint32_t c) {
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80U | ((c >> shift) & 0x3fU));
  };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0U | (c >> 6U));
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0U | (c >> 12U));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0U | (c >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

inline constexpr std::uint32_t kReplacementCharacter = 0xfffd;

// Characters that change how the rest of a line is shown: controls, bidirectional marks and
// overrides, zero-width characters, the byte-order mark.
constexpr bool is_dangerous_on_terminal(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

}  // namespace kernelpath
