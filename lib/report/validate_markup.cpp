#include "report/validate_markup.h"

#include "base/text.h"

namespace kernelpath::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Bytes of the UTF-8 sequence at the front of `text`; 0 if it is none, or one of a character that
// XML does not have (surrogates, U+FFFE, U+FFFF).
std::size_t sequence_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80U              ? 1
                             : (first & 0xE0U) == 0xC0U ? 2
                             : (first & 0xF0U) == 0xE0U ? 3
                             : (first & 0xF8U) == 0xF0U ? 4
                                                        : 0;
  if (length == 0 || text.size() < length || first == 0xC0U || first == 0xC1U || first > 0xF4U) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
  }
  const auto second = length > 1 ? static_cast<unsigned char>(text[1]) : 0U;
  const bool overlong = (first == 0xE0U && second < 0xA0U) || (first == 0xF0U && second < 0x90U);
  const bool surrogate = first == 0xEDU && second > 0x9FU;
  const bool beyond = first == 0xF4U && second > 0x8FU;
  const std::string_view head = text.substr(0, length);
  const bool non_character = head == "\xEF\xBF\xBE" || head == "\xEF\xBF\xBF";
  return overlong || surrogate || beyond || non_character ? 0 : length;
}

std::string_view entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    default:
      return {};
  }
}

bool is_forbidden_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20U && c != '\t' && c != '\n' && c != '\r') || byte == 0x7FU;
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(text.substr(i));
    if (length == 0 || is_forbidden_control(text[i])) {
      out += kReplacement;
      ++i;
      continue;
    }
    const std::string_view special = entity(text[i]);
    out += special.empty() ? text.substr(i, length) : special;
    i += length;
  }
  return out;
}

}  // namespace kernelpath::report
