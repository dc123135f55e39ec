#include "features/lexer.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace kernelpath::features {
namespace {

// Longest first: "<=" must not be read as "<".
constexpr std::array<std::string_view, 18> kSymbols = {
    "==", "!=", "<=", ">=", "//", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]", ",", ":"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> run() {
    std::vector<Token> tokens;
    while (true) {
      while (at_ < source_.size() && is_space(source_[at_])) ++at_;
      if (at_ == source_.size()) break;
      auto token = next();
      if (!token) return fail(token.error());
      tokens.push_back(std::move(*token));
    }
    tokens.push_back({.kind = TokenKind::kEnd, .offset = at_});
    return tokens;
  }

 private:
  Result<Token> next() {
    const char c = source_[at_];
    if (is_letter(c)) return name();
    if (is_digit(c)) return number();
    if (c == '"') return string();
    for (const std::string_view symbol : kSymbols) {
      if (source_.substr(at_, symbol.size()) != symbol) continue;
      Token token{.kind = TokenKind::kSymbol, .text = std::string(symbol), .offset = at_};
      at_ += symbol.size();
      return token;
    }
    return error(fmt::format("unexpected character '{}'", c));
  }

  Token name() {
    const std::size_t begin = at_;
    while (at_ < source_.size()) {
      const bool dot =
          source_[at_] == '.' && at_ + 1 < source_.size() && is_letter(source_[at_ + 1]);
      if (!dot && !is_letter(source_[at_]) && !is_digit(source_[at_])) break;
      ++at_;
    }
    return {.kind = TokenKind::kName,
            .text = std::string(source_.substr(begin, at_ - begin)),
            .offset = begin};
  }

  Result<Token> number() {
    const char* const begin = source_.data() + at_;
    const char* const end = source_.data() + source_.size();
    Token token{.offset = at_};
    const auto whole = std::from_chars(begin, end, token.integer);
    const char after = whole.ptr == end ? ' ' : *whole.ptr;
    if (whole.ec == std::errc() && after != '.' && after != 'e' && after != 'E') {
      token.kind = TokenKind::kInteger;
      at_ += static_cast<std::size_t>(whole.ptr - begin);
      return token;
    }
    token.kind = TokenKind::kDouble;
    const auto real = std::from_chars(begin, end, token.number);
    if (real.ec != std::errc() || !std::isfinite(token.number)) {
      return error("a number that no double can hold");
    }
    at_ += static_cast<std::size_t>(real.ptr - begin);
    return token;
  }

  Result<Token> string() {
    Token token{.kind = TokenKind::kString, .offset = at_};
    for (++at_; at_ < source_.size(); ++at_) {
      char c = source_[at_];
      if (c == '"') {
        ++at_;
        return token;
      }
      if (c == '\\') {
        if (++at_ == source_.size()) break;
        c = source_[at_];
        if (c == 'n') {
          c = '\n';
        } else if (c == 't') {
          c = '\t';
        } else if (c != '"' && c != '\\') {
          return error(fmt::format("unknown escape '\\{}'", c));
        }
      }
      token.text += c;
    }
    return error("a string without its closing quote");
  }

  [[nodiscard]] Unexpected error(std::string message) const {
    return fail({.code = ErrorCode::kInputSchema,
                 .message = std::move(message),
                 .where = fmt::format("offset {}", at_)});
  }

  std::string_view source_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace kernelpath::features
