#include "json/string_text.h"

#include "base/utf8.h"

#include <fmt/format.h>

#include <cstdint>

namespace kernelpath::json {
namespace {

bool is_high_surrogate(std::uint32_t c) { return c >= 0xd800 && c < 0xdc00; }
bool is_low_surrogate(std::uint32_t c) { return c >= 0xdc00 && c < 0xe000; }

// The character that a one-letter escape stands for; 0 if there is none.
char simple_escape(char letter) {
  switch (letter) {
    case '"':
    case '\\':
    case '/':
      return letter;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return 0;
  }
}

std::optional<std::uint32_t> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint32_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint32_t>(c - 'A' + 10);
  return std::nullopt;
}

// The code unit of the \uXXXX at the start of `text`.
std::optional<std::uint32_t> unicode_escape(std::string_view text) {
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u') return std::nullopt;
  std::uint32_t unit = 0;
  for (const char c : text.substr(2, 4)) {
    const auto digit = hex_digit(c);
    if (!digit) return std::nullopt;
    unit = unit * 16 + *digit;
  }
  return unit;
}

// Appends what the escape at the start of `text` stands for; its length, or 0 if it is none.
std::size_t append_escape(std::string_view text, Unescaped& out) {
  if (text.size() >= 2 && simple_escape(text[1]) != 0) {
    out.text += simple_escape(text[1]);
    return 2;
  }
  const auto unit = unicode_escape(text);
  if (!unit) return 0;
  if (!is_high_surrogate(*unit) && !is_low_surrogate(*unit)) {
    append_utf8(out.text, *unit);
    return 6;
  }
  const auto low = unicode_escape(text.substr(6));
  if (is_high_surrogate(*unit) && low && is_low_surrogate(*low)) {
    append_utf8(out.text, 0x10000U + ((*unit - 0xd800U) << 10U) + (*low - 0xdc00U));
    return 12;
  }
  append_utf8(out.text, kReplacementCharacter);
  out.has_lone_surrogate = true;
  return 6;
}

std::string escape_problem(std::string_view text) {
  if (text.size() >= 2 && text[1] == 'u') return "four hexadecimal digits must follow \\u";
  const std::size_t length = text.size() < 2 ? 0 : decode_utf8(text.substr(1)).length;
  return fmt::format("unknown escape '{}'", text.substr(0, 1 + length));
}

}  // namespace

void append_quoted(std::string_view text, std::string& out) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint point = decode_utf8(text.substr(i));
    const std::size_t length = point.length == 0 ? 1 : point.length;
    if (point.length == 0) {
      append_utf8(out, kReplacementCharacter);
    } else if (point.value == '"' || point.value == '\\') {
      out += '\\';
      out += text[i];
    } else if (point.value == '\n') {
      out += "\\n";
    } else if (point.value == '\t') {
      out += "\\t";
    } else if (is_dangerous_on_terminal(point.value)) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", point.value);
    } else {
      out.append(text, i, length);
    }
    i += length;
  }
  out += '"';
}

std::size_t string_length(std::string_view text, bool& has_escapes) {
  has_escapes = false;
  std::size_t i = 0;
  while (text[i] != '"') {
    if (text[i] == '\\') {
      has_escapes = true;
      ++i;
    }
    ++i;
  }
  return i;
}

std::optional<Unescaped> unescape(std::string_view text, EscapeFault* fault) {
  Unescaped out;
  out.text.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t backslash = std::min(text.find('\\', i), text.size());
    out.text.append(text, i, backslash - i);
    i = backslash;
    if (i == text.size()) break;
    const std::size_t length = append_escape(text.substr(i), out);
    if (length == 0) {
      if (fault != nullptr) *fault = {i, escape_problem(text.substr(i))};
      return std::nullopt;
    }
    i += length;
  }
  return out;
}

}  // namespace kernelpath::json
