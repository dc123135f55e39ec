#include "tokenizer/pattern_dialect.h"

#include "base/text.h"
#include "base/utf8.h"
#include "tokenizer/character_set.h"
#include "tokenizer/unicode.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace kernelpath::tokenizer {
namespace {

// {n}, {n,}, {,m}, {n,m}: the length in the pattern and PCRE2's spelling.
struct Interval {
  std::size_t length = 0;
  std::string text = {};
  bool is_fixed = false;
};

std::optional<Interval> read_interval(std::string_view pattern) {
  const std::size_t close = pattern.find('}');
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view inside = pattern.substr(1, close - 1);
  const std::size_t comma = std::min(inside.find(','), inside.size());
  const std::string_view low = inside.substr(0, comma);
  const std::string_view high = inside.substr(std::min(comma + 1, inside.size()));
  const auto is_number = [](std::string_view text) {
    return text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (!is_number(low) || !is_number(high) || (low.empty() && high.empty())) return std::nullopt;
  std::string text = "{" + (low.empty() ? "0" : std::string(low));
  const bool is_fixed = comma == inside.size();
  if (!is_fixed) text += "," + std::string(high);
  return Interval{.length = close + 1, .text = text + "}", .is_fixed = is_fixed};
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : rest_(pattern) {}

  Result<std::string> run();

 private:
  // A group that is open: where it began, and how many isolated options ("(?i)") end with it.
  struct Group {
    std::size_t begin = 0;
    int options = 0;
  };

  Result<void> step();
  Result<void> read_group();
  Result<void> read_options(std::size_t close);
  Result<void> read_escape_step();
  void close_group();
  void read_quantifier();
  void read_interval_step();
  void add_atom(std::string_view text, std::size_t length);
  // Wraps the last atom with its interval, so that what follows repeats both.
  void wrap_atom();

  std::string_view rest_;
  std::string out_;
  std::size_t atom_ = 0;  // where the last atom begins in out_
  std::vector<Group> groups_ = {Group{}};
};

Result<std::string> Translator::run() {
  while (!rest_.empty()) KERNELPATH_CHECK_OK(step());
  out_.append(static_cast<std::size_t>(groups_.back().options), ')');
  return std::move(out_);
}

void Translator::add_atom(std::string_view text, std::size_t length) {
  atom_ = out_.size();
  out_ += text;
  rest_.remove_prefix(length);
}

void Translator::wrap_atom() {
  out_.insert(atom_, "(?:");
  out_ += ")";
}

Result<void> Translator::step() {
  switch (rest_.front()) {
    case '\\':
      return read_escape_step();
    case '[': {
      KERNELPATH_TRY(set, read_character_set(rest_));
      add_atom(set.expression, set.length);
      return {};
    }
    case '(':
      return read_group();
    case ')':
      close_group();
      return {};
    case '*':
    case '+':
    case '?':
      read_quantifier();
      return {};
    case '{':
      read_interval_step();
      return {};
    default: {
      const std::size_t length = decode_utf8(rest_).length;
      add_atom(std::string(rest_.substr(0, length)), length);
      return {};
    }
  }
}

void Translator::read_quantifier() {
  const bool has_mode = rest_.size() > 1 && (rest_[1] == '?' || rest_[1] == '+');
  const std::size_t length = has_mode ? 2 : 1;
  out_ += rest_.substr(0, length);
  rest_.remove_prefix(length);
}

void Translator::read_interval_step() {
  const auto interval = read_interval(rest_);
  if (!interval) return add_atom("\\{", 1);
  out_ += interval->text;
  rest_.remove_prefix(interval->length);
  // Neither makes the interval possessive or reluctant: they repeat it.
  if (rest_.starts_with('+') || (rest_.starts_with('?') && interval->is_fixed)) wrap_atom();
}

Result<void> Translator::read_group() {
  if (rest_.starts_with("(*")) {
    return pattern_fault("verbs are not supported", rest_.substr(0, 12));
  }
  if (rest_.starts_with("(?#")) {
    const std::size_t close = rest_.find(')');
    if (close == std::string_view::npos) {
      return pattern_fault("a comment is not closed", rest_.substr(0, 16));
    }
    rest_.remove_prefix(close + 1);
    return {};
  }
  constexpr std::string_view flags = "imx-";
  if (rest_.size() > 2 && rest_[1] == '?' && flags.find(rest_[2]) != std::string_view::npos) {
    const std::size_t close = rest_.find_first_not_of(flags, 2);
    if (close == std::string_view::npos || (rest_[close] != ':' && rest_[close] != ')')) {
      return pattern_fault("this option is not supported", rest_.substr(0, 8));
    }
    return read_options(close);
  }
  std::size_t length = 1;
  for (const std::string_view kind : {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?<", "(?'"}) {
    if (rest_.starts_with(kind)) {
      length = kind.size();
      break;
    }
  }
  if (length == 1 && rest_.starts_with("(?")) {
    return pattern_fault("this kind of group is not supported", rest_.substr(0, 8));
  }
  groups_.push_back({.begin = out_.size()});
  out_ += rest_.substr(0, length);
  rest_.remove_prefix(length);
  return {};
}

// "(?i:" opens a group; "(?i)" holds for the rest of the group that it stands in, alternatives
// included.
Result<void> Translator::read_options(std::size_t close) {
  const bool is_isolated = rest_[close] == ')';
  std::string options(rest_.substr(0, close));
  std::ranges::replace(options, 'm', 's');
  if (is_isolated) {
    ++groups_.back().options;
  } else {
    groups_.push_back({.begin = out_.size()});
  }
  out_ += options + ":";
  rest_.remove_prefix(close + 1);
  return {};
}

void Translator::close_group() {
  rest_.remove_prefix(1);
  const Group group = groups_.back();
  // A bracket too many is for PCRE2 to refuse.
  if (groups_.size() > 1) groups_.pop_back();
  out_.append(static_cast<std::size_t>(group.options) + 1, ')');
  atom_ = group.begin;
}

Result<void> Translator::read_escape_step() {
  KERNELPATH_TRY(escape, read_escape(rest_));
  if (escape && escape->members == kWordMembers) escape->members = kWordCharacters;
  if (escape) {
    const std::string text = escape->character ? *escape->character
                             : escape->negated ? "[^" + escape->members + "]"
                                               : "[" + escape->members + "]";
    add_atom(text, escape->length);
    return {};
  }
  const char letter = rest_[1];
  if (letter == 'b' || letter == 'B') {
    const std::string word = "[" + std::string(kWordCharacters) + "]";
    const std::string after = "(?<=" + word + ")";
    const std::string before = "(?=" + word + ")";
    const std::string not_after = "(?<!" + word + ")";
    const std::string not_before = "(?!" + word + ")";
    add_atom(letter == 'b' ? "(?:" + after + not_before + "|" + not_after + before + ")"
                           : "(?:" + after + before + "|" + not_after + not_before + ")",
             2);
    return {};
  }
  if (letter == 'O') {
    add_atom("(?s:.)", 2);
    return {};
  }
  if (letter == 'N') {
    add_atom("(?-s:.)", 2);
    return {};
  }
  constexpr std::string_view same = "AzZGRXKk0123456789";
  constexpr std::string_view refused = "CMcgyY";
  if (refused.find(letter) != std::string_view::npos) {
    return pattern_fault("this escape is not supported", rest_.substr(0, 2));
  }
  // A letter without a meaning is itself.
  add_atom(rest_.substr(same.find(letter) != std::string_view::npos ? 0 : 1,
                        same.find(letter) != std::string_view::npos ? 2 : 1),
           2);
  return {};
}

}  // namespace

Result<std::string> to_pcre(std::string_view pattern) {
  if (find_invalid_utf8(pattern) != std::string_view::npos) {
    return pattern_fault("it is not UTF-8", "");
  }
  return Translator(pattern).run();
}

}  // namespace kernelpath::tokenizer
