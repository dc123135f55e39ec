#include "tokenizer/byte_level.h"

#include "base/utf8.h"

#include <array>
#include <cstddef>

namespace kernelpath::tokenizer {
namespace {

constexpr bool is_printable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

// The others follow from U+0100 on, in the order of their values. The last is U+0143.
constexpr std::size_t kCharacters = 0x144;

struct Tables {
  std::array<std::uint16_t, 256> character{};
  std::array<std::int16_t, kCharacters> byte{};
};

constexpr Tables make_tables() {
  Tables tables;
  tables.byte.fill(-1);
  unsigned next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const unsigned character = is_printable(byte) ? byte : next++;
    tables.character[byte] = static_cast<std::uint16_t>(character);
    tables.byte[character] = static_cast<std::int16_t>(byte);
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

void append_byte_characters(std::string_view text, std::string& out) {
  for (const char c : text) append_utf8(out, kTables.character[static_cast<std::uint8_t>(c)]);
}

std::optional<std::uint8_t> byte_of_character(std::uint32_t character) {
  if (character >= kCharacters || kTables.byte[character] < 0) return std::nullopt;
  return static_cast<std::uint8_t>(kTables.byte[character]);
}

std::optional<std::string> bytes_of_characters(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text.substr(at));
    if (c.length == 0) return std::nullopt;
    const auto byte = byte_of_character(c.value);
    if (!byte) return std::nullopt;
    out += static_cast<char>(*byte);
    at += c.length;
  }
  return out;
}

}  // namespace kernelpath::tokenizer
