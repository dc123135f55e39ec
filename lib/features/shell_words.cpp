#include "features/shell_words.h"

#include <fmt/format.h>

namespace kernelpath::features {
namespace {

class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> run() {
    for (; at_ < text_.size(); ++at_) {
      KERNELPATH_CHECK_OK(step(text_[at_]));
    }
    if (quote_ != 0) return error(fmt::format("the quote {} is not closed", quote_));
    finish();
    return std::move(words_);
  }

 private:
  Result<void> step(char c) {
    if (quote_ == '\'') return quoted_single(c);
    if (quote_ == '"') return quoted_double(c);
    if (c == '\'' || c == '"') {
      quote_ = c;
      open_ = true;
      return {};
    }
    if (c == '\\') {
      escaped();
      return {};
    }
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      finish();
      return {};
    }
    if (is_operator(c)) {
      return error(
          fmt::format("the shell operator '{}' cannot be read: give one plain command", c));
    }
    add(c);
    return {};
  }

  Result<void> quoted_single(char c) {
    if (c == '\'') {
      quote_ = 0;
    } else {
      add(c);
    }
    return {};
  }

  Result<void> quoted_double(char c) {
    if (c == '"') {
      quote_ = 0;
      return {};
    }
    if (c == '`' || (c == '$' && next() == '(')) return error("a command inside the command");
    const bool special = c == '\\' && (next() == '"' || next() == '\\' || next() == '$' ||
                                       next() == '`' || next() == '\n');
    if (special) {
      escaped();
    } else {
      add(c);
    }
    return {};
  }

  // A backslash takes the next character as it is; one at the end of a line joins the lines.
  void escaped() {
    ++at_;
    if (at_ < text_.size() && text_[at_] != '\n') add(text_[at_]);
  }

  [[nodiscard]] bool is_operator(char c) const {
    const std::string_view operators = "|&;<>()`";
    return operators.find(c) != std::string_view::npos || (c == '$' && next() == '(');
  }

  [[nodiscard]] char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }

  void add(char c) {
    word_ += c;
    open_ = true;
  }

  void finish() {
    if (open_) words_.push_back(std::move(word_));
    word_.clear();
    open_ = false;
  }

  [[nodiscard]] Unexpected error(std::string message) const {
    return fail({.code = ErrorCode::kUsage,
                 .message = std::move(message),
                 .where = fmt::format("--command, character {}", at_ + 1)});
  }

  std::string_view text_;
  std::size_t at_ = 0;
  char quote_ = 0;
  bool open_ = false;  // a word has begun, perhaps an empty one
  std::string word_;
  std::vector<std::string> words_;
};

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view text) { return Splitter(text).run(); }

std::string quote_words(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    out += '\'';
    // A quote cannot stand inside quotes: it ends them, stands escaped, and they begin again.
    for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
    out += '\'';
  }
  return out;
}

}  // namespace kernelpath::features
