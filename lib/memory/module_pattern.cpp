#include "memory/module_pattern.h"

#include "base/text.h"

#include <algorithm>

namespace kernelpath::memory {
namespace {

constexpr std::size_t kMaxPattern = 512;
constexpr std::size_t kMaxAlternatives = 64;

// True if `part` stands in `path` with dots, or the ends, around it.
bool has_words(std::string_view path, std::string_view part) {
  for (std::size_t at = path.find(part); at != std::string_view::npos;
       at = path.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    if ((at == 0 || path[at - 1] == '.') && (end == path.size() || path[end] == '.')) return true;
  }
  return false;
}

// The alternatives of the group whose bracket is at `at`; moves `at` behind it.
std::optional<std::vector<std::string>> read_group(std::string_view text, std::size_t& at) {
  const std::size_t close = text.find(')', at);
  if (close == std::string_view::npos) return std::nullopt;
  std::string_view body = text.substr(at + 1, close - at - 1);
  if (body.substr(0, 2) == "?:") body.remove_prefix(2);
  const char next = close + 1 < text.size() ? text[close + 1] : '\0';
  const bool quantified = std::string_view("*+?{").find(next) != std::string_view::npos;
  if (quantified || body.find_first_of("(?\\") != std::string_view::npos) return std::nullopt;
  at = close + 1;
  auto parts = split(body, '|');
  if (parts.empty()) parts.emplace_back();
  return parts;
}

// The alternatives of `text` with its groups multiplied out: "(a|b)c" → "ac", "bc".
std::optional<std::vector<std::string>> expand_groups(std::string_view text) {
  std::vector<std::string> out = {""};
  std::size_t at = 0;
  while (at < text.size()) {
    std::vector<std::string> parts;
    if (text[at] == '(') {
      auto group = read_group(text, at);
      if (!group) return std::nullopt;
      parts = std::move(*group);
    } else {
      const std::size_t length = text[at] == '\\' && at + 1 < text.size() ? 2 : 1;
      parts.emplace_back(text.substr(at, length));
      at += length;
    }
    std::vector<std::string> longer;
    for (const std::string& head : out) {
      for (const std::string& part : parts) longer.push_back(head + part);
    }
    if (longer.size() > kMaxAlternatives) return std::nullopt;
    out = std::move(longer);
  }
  return out;
}

}  // namespace

bool ModulePattern::Atom::accepts(char c) const {
  if (kind == Kind::kAny) return true;
  if (kind == Kind::kLiteral) return c == literal;
  return (set.find(c) != std::string::npos) != negated;
}

// "[a-z_]" from behind its bracket; moves `at` behind the closing one.
std::optional<ModulePattern::Atom> ModulePattern::read_class(std::string_view text,
                                                             std::size_t& at) {
  const std::size_t close = text.find(']', at);
  if (close == std::string_view::npos) return std::nullopt;
  std::string_view body = text.substr(at, close - at);
  at = close + 1;
  Atom atom{.kind = Atom::Kind::kClass};
  atom.negated = body.substr(0, 1) == "^";
  if (atom.negated) body.remove_prefix(1);
  for (std::size_t i = 0; i < body.size(); ++i) {
    const bool range = i + 2 < body.size() && body[i + 1] == '-';
    const auto first = static_cast<unsigned char>(body[i]);
    const auto last = static_cast<unsigned char>(range ? body[i + 2] : body[i]);
    for (int member = first; member <= last; ++member) atom.set += static_cast<char>(member);
    if (range) i += 2;
  }
  return atom;
}

// The atom at `at`; moves `at` behind it.
std::optional<ModulePattern::Atom> ModulePattern::read_atom(std::string_view text,
                                                            std::size_t& at) {
  const char c = text[at++];
  if (c == '.') return Atom{.kind = Atom::Kind::kAny};
  if (c == '[') return read_class(text, at);
  if (std::string_view("*+?{}$^()|]").find(c) != std::string_view::npos) return std::nullopt;
  if (c != '\\') return Atom{.literal = c};
  if (at == text.size()) return std::nullopt;
  const char escaped = text[at++];
  if (escaped == 'd') return Atom{.kind = Atom::Kind::kClass, .set = "0123456789"};
  const bool punctuation =
      std::string_view(".-_*+?$^[](){}|\\/").find(escaped) != std::string_view::npos;
  if (!punctuation) return std::nullopt;
  return Atom{.literal = escaped};
}

// One alternative, without groups.
bool ModulePattern::add_regex(std::string_view text) {
  Alternative out;
  if (text.substr(0, 1) == "^") text.remove_prefix(1);
  if (!text.empty() && text.back() == '$' && !(text.size() > 1 && text[text.size() - 2] == '\\')) {
    out.anchored_end = true;
    text.remove_suffix(1);
  }
  std::size_t at = 0;
  while (at < text.size()) {
    auto atom = read_atom(text, at);
    if (!atom) return false;
    const char quantifier = at < text.size() ? text[at] : '\0';
    atom->optional = quantifier == '*' || quantifier == '?';
    atom->repeated = quantifier == '*' || quantifier == '+';
    if (atom->optional || atom->repeated) ++at;
    out.atoms.push_back(std::move(*atom));
  }
  alternatives_.push_back(std::move(out));
  return true;
}

void ModulePattern::add_wildcards(std::string_view text) {
  Alternative out{.anchored_end = true};
  for (const char c : text) {
    Atom atom{.literal = c};
    if (c == '*' || c == '?') atom.kind = Atom::Kind::kAny;
    atom.optional = atom.repeated = c == '*';
    out.atoms.push_back(std::move(atom));
  }
  alternatives_.push_back(std::move(out));
}

std::optional<ModulePattern> ModulePattern::compile(std::string_view text) {
  ModulePattern pattern;
  if (text.empty() || text.size() > kMaxPattern) return std::nullopt;
  if (text.substr(0, 3) == "re:") {
    const auto alternatives = expand_groups(text.substr(3));
    if (!alternatives) return std::nullopt;
    for (const std::string& alternative : *alternatives) {
      if (!pattern.add_regex(alternative)) return std::nullopt;
    }
    return pattern;
  }
  pattern.covers_below_ = true;
  const std::size_t wildcard = text.find_first_of("*?");
  if (wildcard == std::string_view::npos) {
    pattern.words_ = text;
  } else if (wildcard + 1 == text.size() && text.back() == '*') {
    pattern.prefix_ = text.substr(0, wildcard);
    pattern.is_prefix_ = true;
  } else {
    pattern.add_wildcards(text);
  }
  return pattern;
}

// All places of the pattern at once, so that none can make it slow: pattern × text steps.
bool ModulePattern::Alternative::matches(std::string_view text) const {
  const std::size_t n = atoms.size();
  std::vector<char> now(n + 1, 0);
  std::vector<char> next(n + 1, 0);
  const auto skip_optional = [&](std::vector<char>& places) {
    for (std::size_t i = 0; i < n; ++i) {
      if (places[i] != 0 && atoms[i].optional) places[i + 1] = 1;
    }
  };
  now[0] = 1;
  skip_optional(now);
  for (const char c : text) {
    if (now[n] != 0 && !anchored_end) return true;
    std::fill(next.begin(), next.end(), char{0});
    for (std::size_t i = 0; i < n; ++i) {
      if (now[i] == 0 || !atoms[i].accepts(c)) continue;
      next[i + 1] = 1;
      if (atoms[i].repeated) next[i] = 1;
    }
    skip_optional(next);
    now.swap(next);
  }
  return now[n] != 0;
}

bool ModulePattern::matches_exactly(std::string_view path) const {
  return std::any_of(alternatives_.begin(), alternatives_.end(),
                     [&](const Alternative& alternative) { return alternative.matches(path); });
}

bool ModulePattern::matches(std::string_view path) const {
  if (!words_.empty()) return has_words(path, words_);
  if (is_prefix_) return path.substr(0, prefix_.size()) == prefix_;
  while (!path.empty()) {
    if (matches_exactly(path)) return true;
    const std::size_t dot = path.rfind('.');
    if (!covers_below_ || dot == std::string_view::npos) return false;
    path = path.substr(0, dot);
  }
  return false;
}

}  // namespace kernelpath::memory
