#include "json/fault.h"

#include "base/text.h"
#include "base/utf8.h"
#include "json/number.h"
#include "json/string_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace kernelpath::json {
namespace {

constexpr std::size_t kShownWord = 32;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Do the bytes at the end of a text begin a UTF-8 sequence that is longer than the text?
bool is_cut_utf8(std::string_view rest) {
  const auto first = static_cast<std::uint8_t>(rest[0]);
  if (first < 0xc2 || first > 0xf4) return false;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (rest.size() >= length) return false;
  return std::ranges::all_of(
      rest.substr(1), [](char c) { return (static_cast<std::uint8_t>(c) & 0xc0U) == 0x80U; });
}

class Walker {
 public:
  Walker(std::string_view text, const Limits& limits, std::size_t skipped_bytes)
      : text_(text), limits_(limits), skipped_bytes_(skipped_bytes) {}

  std::optional<Fault> run() {
    while (true) {
      while (pos_ < text_.size() && is_space(text_[pos_])) ++pos_;
      if (pos_ < text_.size()) {
        if (!step()) return std::move(fault_);
      } else if (next_ == Next::kNothing) {
        return std::nullopt;
      } else {
        unexpected_end(fmt::format(", expected {}", expected()));
        return std::move(fault_);
      }
    }
  }

 private:
  enum class Next { kValue, kValueOrEnd, kKey, kKeyOrEnd, kColon, kCommaOrEnd, kNothing };

  bool step() {
    const char c = text_[pos_];
    switch (next_) {
      case Next::kValueOrEnd:
        return c == ']' ? close() : element();
      case Next::kValue:
        return in_array() ? element() : value();
      case Next::kKeyOrEnd:
        return c == '}' ? close() : key();
      case Next::kKey:
        return key();
      case Next::kColon:
        if (c != ':') return unexpected();
        next_ = Next::kValue;
        ++pos_;
        return true;
      case Next::kCommaOrEnd:
        if (c == (in_array() ? ']' : '}')) return close();
        if (c != ',') return unexpected();
        next_ = in_array() ? Next::kValue : Next::kKey;
        after_comma_ = true;
        ++pos_;
        return true;
      case Next::kNothing:
        break;
    }
    return fail(pos_, fmt::format("trailing content after the JSON value: {}", found()));
  }

  [[nodiscard]] bool in_array() const { return !open_.empty() && open_.back() == '['; }

  [[nodiscard]] std::string expected() const {
    switch (next_) {
      case Next::kValue:
        return "a value";
      case Next::kValueOrEnd:
        return "a value or ']'";
      case Next::kKey:
        return "a key in double quotes";
      case Next::kKeyOrEnd:
        return "a key in double quotes or '}'";
      case Next::kColon:
        return "':'";
      case Next::kCommaOrEnd:
        return in_array() ? "',' or ']'" : "',' or '}'";
      case Next::kNothing:
        break;
    }
    return "the end";
  }

  bool open(char bracket) {
    if (open_.size() >= static_cast<std::size_t>(limits_.max_depth)) {
      return fail(pos_, fmt::format("nested deeper than {} levels", limits_.max_depth),
                  ErrorCode::kInputLimit);
    }
    open_ += bracket;
    next_ = bracket == '[' ? Next::kValueOrEnd : Next::kKeyOrEnd;
    after_comma_ = false;
    ++pos_;
    return true;
  }

  bool close() {
    open_.pop_back();
    ++pos_;
    return value_done();
  }

  bool value_done() {
    next_ = open_.empty() ? Next::kNothing : Next::kCommaOrEnd;
    after_comma_ = false;
    return true;
  }

  bool count_member() {
    if (++members_ <= limits_.max_members) return true;
    return fail(pos_, fmt::format("more than {} keys and list entries", limits_.max_members),
                ErrorCode::kInputLimit);
  }

  bool key() {
    if (text_[pos_] != '"') return unexpected();
    if (!count_member()) return false;
    if (!string(/*is_key=*/true)) return false;
    next_ = Next::kColon;
    after_comma_ = false;
    return true;
  }

  bool element() {
    const bool is_closer = text_[pos_] == ']' || text_[pos_] == '}';
    return is_closer ? unexpected() : count_member() && value();
  }

  bool value() {
    const char c = text_[pos_];
    if (c == '{' || c == '[') return open(c);
    if (c == '"') return string(/*is_key=*/false) && value_done();
    const bool negative_word = c == '-' && pos_ + 1 < text_.size() && is_word(text_[pos_ + 1]) &&
                               !(text_[pos_ + 1] >= '0' && text_[pos_ + 1] <= '9');
    if ((c >= '0' && c <= '9') || (c == '-' && !negative_word)) return number();
    if (is_word(c) || c == '-') return word();
    return unexpected();
  }

  bool number() {
    const NumberScan scan = scan_number(text_.substr(pos_));
    pos_ += scan.end;
    if (scan.problem.empty()) return value_done();
    if (pos_ >= text_.size()) return unexpected_end(" in a number");
    return fail(pos_, fmt::format("unexpected {}: {}", found(), scan.problem));
  }

  // true, false, null and Python's literals.
  bool word() {
    const std::size_t start = pos_;
    std::size_t end = start + 1;
    while (end < text_.size() && is_word(text_[end])) ++end;
    const std::string_view word = text_.substr(start, end - start);
    constexpr std::array<std::string_view, 6> kWords = {"true", "false",    "null",
                                                        "NaN",  "Infinity", "-Infinity"};
    for (const std::string_view known : kWords) {
      if (word == known) {
        pos_ = end;
        return value_done();
      }
      if (end == text_.size() && known.starts_with(word)) {
        pos_ = end;
        return unexpected_end(fmt::format(" in the literal {}", known));
      }
    }
    return fail(start, fmt::format("unknown literal '{}', expected {}", shorten(word, kShownWord),
                                   expected()));
  }

  bool string(bool is_key) {
    const std::size_t quote = pos_++;
    const std::size_t start = pos_;
    while (true) {
      if (pos_ >= text_.size()) return unclosed(quote);
      const auto c = static_cast<std::uint8_t>(text_[pos_]);
      if (c == '"') break;
      if (c == '\\' && pos_ + 1 < text_.size() &&
          (text_[pos_ + 1] == '"' || text_[pos_ + 1] == '\\')) {
        pos_ += 2;
      } else if (c >= 0x80) {
        if (!character(quote)) return false;
      } else if (c < 0x20) {
        return fail(pos_, fmt::format("control byte 0x{:02X} in a string, write \\u{:04x}", c, c));
      } else {
        ++pos_;
      }
    }
    const std::string_view raw = text_.substr(start, pos_ - start);
    ++pos_;
    return raw.find('\\') == std::string_view::npos || escapes(raw, start, is_key);
  }

  bool unclosed(std::size_t quote) {
    const Position at = position_in(text_, quote);
    return unexpected_end(
        fmt::format(", the string that starts at {}:{} is not closed", at.line, at.column));
  }

  bool character(std::size_t quote) {
    const std::size_t length = decode_utf8(text_.substr(pos_)).length;
    if (length == 0) return is_cut_utf8(text_.substr(pos_)) ? unclosed(quote) : bad_utf8();
    pos_ += length;
    return true;
  }

  bool escapes(std::string_view raw, std::size_t start, bool is_key) {
    EscapeFault fault;
    const auto unescaped = unescape(raw, &fault);
    if (!unescaped) return fail(start + fault.at, fault.message);
    if (!is_key || !unescaped->has_lone_surrogate) return true;
    return fail(start - 1, "a key holds half of a surrogate pair, which no text can carry");
  }

  bool bad_utf8() {
    return fail(pos_,
                fmt::format("invalid UTF-8: byte 0x{:02X} at byte {}",
                            static_cast<std::uint8_t>(text_[pos_]), pos_ + skipped_bytes_),
                ErrorCode::kInputEncoding);
  }

  // The character at the current place, for a message.
  [[nodiscard]] std::string found() const {
    const std::string_view rest = text_.substr(pos_);
    const CodePoint point = decode_utf8(rest);
    if (point.value < 0x20 || point.value == 0x7f) return fmt::format("byte 0x{:02X}", point.value);
    if (point.value < 0x80) return fmt::format("'{}'", rest[0]);
    if (is_dangerous_on_terminal(point.value)) return fmt::format("U+{:04X}", point.value);
    return fmt::format("'{}' (U+{:04X})", rest.substr(0, point.length), point.value);
  }

  bool unexpected() {
    if (decode_utf8(text_.substr(pos_)).length == 0) {
      return is_cut_utf8(text_.substr(pos_)) ? unexpected_end(" in a character") : bad_utf8();
    }
    const std::string what = fmt::format("unexpected {}", found());
    if (after_comma_ && (text_[pos_] == '}' || text_[pos_] == ']')) {
      return fail(pos_, what + " after a comma: JSON has no trailing commas");
    }
    return fail(pos_, fmt::format("{}{}, expected {}", what, reason(), expected()));
  }

  // Why a character that other languages allow is not allowed here.
  [[nodiscard]] std::string_view reason() const {
    const std::string_view rest = text_.substr(pos_);
    if (rest.starts_with("//") || rest.starts_with("/*") || rest[0] == '#') {
      return " (JSON has no comments)";
    }
    if (rest[0] == '\'') return " (strings need double quotes)";
    if (next_ != Next::kValue && next_ != Next::kValueOrEnd) return "";
    if (rest[0] == '+') return " (numbers have no plus sign)";
    if (rest[0] == '.') return " (numbers start with a digit)";
    return "";
  }

  bool unexpected_end(std::string_view detail) {
    return fail(text_.size(),
                fmt::format("unexpected end at byte {}{}", text_.size() + skipped_bytes_, detail));
  }

  bool fail(std::size_t offset, std::string message, ErrorCode code = ErrorCode::kInputJson) {
    fault_ = Fault{code, offset, std::move(message)};
    return false;
  }

  std::string_view text_;
  Limits limits_;
  std::size_t skipped_bytes_;
  std::size_t pos_ = 0;
  std::size_t members_ = 0;
  std::string open_;  // the brackets that are open
  Next next_ = Next::kValue;
  bool after_comma_ = false;
  Fault fault_;
};

}  // namespace

std::optional<Fault> find_fault(std::string_view text, const Limits& limits,
                                std::size_t skipped_bytes) {
  return Walker(text, limits, skipped_bytes).run();
}

}  // namespace kernelpath::json
