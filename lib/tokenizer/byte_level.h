#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kernelpath::tokenizer {

// The alphabet of GPT-2 for bytes: each of the 256 is a printable character of one or two bytes,
// those of ASCII and Latin-1 that are printable themselves.

// Appends the character of each byte of `text`.
void append_byte_characters(std::string_view text, std::string& out);

// The byte of a character; nothing if it stands for none.
std::optional<std::uint8_t> byte_of_character(std::uint32_t character);

// The bytes that `text` stands for; nothing if one of its characters stands for none.
std::optional<std::string> bytes_of_characters(std::string_view text);

}  // namespace kernelpath::tokenizer
