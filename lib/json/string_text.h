#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kernelpath::json {

// Appends `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD;
// characters that a terminal would act upon are written as \u escapes.
void append_quoted(std::string_view text, std::string& out);

// The text between the quotes of a string in a file, its escapes resolved.
struct Unescaped {
  std::string text;
  bool has_lone_surrogate = false;  // read as U+FFFD
};

// What is wrong with the escapes of a string.
struct EscapeFault {
  std::size_t at = 0;  // offset of the backslash within the text
  std::string message;
};

// Length of the text up to the closing quote, which must be there: `text` starts after the opening
// one. `has_escapes` tells whether unescape() is needed.
std::size_t string_length(std::string_view text, bool& has_escapes);

// Resolves \n, \u0041 and pairs of surrogates. Nothing if an escape is unknown or cut off; `fault`,
// where given, then says which.
std::optional<Unescaped> unescape(std::string_view text, EscapeFault* fault = nullptr);

}  // namespace kernelpath::json
