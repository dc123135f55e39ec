#include "tokenizer/character_set.h"

#include "base/text.h"
#include "base/utf8.h"
#include "tokenizer/script_name.h"

#include <array>
#include <cstdint>
#include <vector>

namespace kernelpath::tokenizer {
namespace {

constexpr int kMaxDepth = 32;
constexpr std::string_view kHexMembers = "0-9a-fA-F";

// Names of \p{…} and [:…:] that PCRE2 does not have or has with another meaning. Columns: the name
// in lower case, members within \p{}, members within [::] (Oniguruma's own tables differ for one).
struct NamedSet {
  std::string_view name;
  std::string_view property;
  std::string_view posix;
};
constexpr std::array<NamedSet, 12> kNamedSets = {{
    {"alnum", R"(\p{Alphabetic}\p{Nd})", R"(\p{Alphabetic}\p{Nd})"},
    {"alpha", R"(\p{Alphabetic})", R"(\p{Alphabetic})"},
    {"ascii", R"(\x00-\x7f)", R"(\x00-\x7f)"},
    {"blank", R"(\p{Zs}\t)", R"(\p{Zs}\t)"},
    {"cntrl", R"(\p{Cc})", R"(\p{Cc})"},
    {"digit", R"(\p{Nd})", R"(\p{Nd})"},
    {"lower", R"(\p{Lowercase})", R"(\p{Lowercase})"},
    {"punct", R"(\p{P})", R"(\p{P}\p{S})"},
    {"space", R"(\p{White_Space})", R"(\p{White_Space})"},
    {"upper", R"(\p{Uppercase})", R"(\p{Uppercase})"},
    {"word", kWordMembers, kWordMembers},
    {"xdigit", kHexMembers, kHexMembers},
}};

const NamedSet* find_named_set(std::string_view name) {
  for (const NamedSet& set : kNamedSets) {
    if (equal_ignoring_case(set.name, name)) return &set;
  }
  return nullptr;
}

std::string code_point_text(std::uint32_t c) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (; c != 0 || hex.empty(); c >>= 4U) hex.insert(hex.begin(), digits[c & 15U]);
  return "\\x{" + hex + "}";
}

// A character as a member of a set: always itself.
std::string as_member(std::string_view character) {
  constexpr std::string_view special = "[]\\^-&";
  if (character.size() == 1 && special.find(character) != std::string_view::npos) {
    return "\\" + std::string(character);
  }
  return std::string(character);
}

Escape one_character(std::size_t length, std::string member) {
  return {.length = length, .members = member, .character = member};
}

std::optional<std::uint32_t> hex_value(std::string_view digits) {
  if (digits.empty() || digits.size() > 8) return std::nullopt;
  std::uint32_t value = 0;
  for (const char digit : digits) {
    const std::size_t at = std::string_view("0123456789abcdef").find(to_lower({&digit, 1}));
    if (at == std::string_view::npos) return std::nullopt;
    value = value * 16 + static_cast<std::uint32_t>(at);
  }
  return value;
}

std::size_t count_hex_digits(std::string_view text, std::size_t limit) {
  std::size_t count = 0;
  while (count < limit && count < text.size() && hex_value(text.substr(count, 1))) ++count;
  return count;
}

bool is_scalar(std::uint32_t c) { return c <= 0x10ffff && (c < 0xd800 || c > 0xdfff); }

// \p{Name}, \p{^Name}, \P{Name}; a name without braces is not of this dialect.
Result<std::optional<Escape>> read_property(std::string_view pattern) {
  const std::size_t close = pattern.find('}');
  if (pattern.size() < 3 || pattern[2] != '{' || close == std::string_view::npos) {
    return pattern_fault("a property is written \\p{Name}", pattern.substr(0, 2));
  }
  std::string_view name = pattern.substr(3, close - 3);
  Escape escape{.length = close + 1, .negated = pattern[1] == 'P'};
  if (!name.empty() && name.front() == '^') {
    escape.negated = !escape.negated;
    name.remove_prefix(1);
  }
  if (const NamedSet* known = find_named_set(name)) {
    escape.members = known->property;
    return escape;
  }
  // A script's name alone means in PCRE2 what the script is used with, too: 。 would be Han.
  const bool is_script = name.size() > 2 && is_script_name(name);
  escape.members = is_script ? "\\p{sc:" : "\\p{";
  escape.members += name;
  escape.members += '}';
  return escape;
}

// \x{4e00}, \x41; bytes from 0x80 on form a character together (\xE4\xB8\x80).
Result<std::optional<Escape>> read_hex(std::string_view pattern) {
  if (pattern.size() > 2 && pattern[2] == '{') {
    const std::size_t close = pattern.find('}');
    const auto value = close == std::string_view::npos
                           ? std::nullopt
                           : hex_value(trim(pattern.substr(3, close - 3)));
    if (!value || !is_scalar(*value)) {
      return pattern_fault("not the number of a character", pattern.substr(0, 12));
    }
    return one_character(close + 1, code_point_text(*value));
  }
  std::string bytes;
  std::size_t length = 0;
  while (pattern.substr(length).starts_with("\\x")) {
    const std::size_t digits = count_hex_digits(pattern.substr(length + 2), 2);
    const std::uint32_t value = hex_value(pattern.substr(length + 2, digits)).value_or(0);
    bytes += static_cast<char>(value);
    length += 2 + digits;
    const CodePoint c = decode_utf8(bytes);
    if (c.length != 0) return one_character(length, code_point_text(c.value));
  }
  return pattern_fault("bytes that are not UTF-8", pattern.substr(0, length));
}

Result<std::optional<Escape>> read_unicode(std::string_view pattern) {
  const auto value = hex_value(pattern.substr(2, count_hex_digits(pattern.substr(2), 4)));
  if (pattern.size() < 6 || !value || !is_scalar(*value)) {
    return pattern_fault("\\u takes four hexadecimal digits of a character", pattern.substr(0, 6));
  }
  return one_character(6, code_point_text(*value));
}

std::optional<Escape> class_escape(char letter) {
  const auto set = [&](std::string_view members, char negative) {
    return Escape{.length = 2, .members = std::string(members), .negated = letter == negative};
  };
  switch (letter) {
    case 's':
    case 'S':
      return set(R"(\p{White_Space})", 'S');
    case 'd':
    case 'D':
      return set(R"(\p{Nd})", 'D');
    case 'w':
    case 'W':
      return set(kWordMembers, 'W');
    case 'h':
    case 'H':
      return set(kHexMembers, 'H');
    case 'v':
      return one_character(2, "\\x0b");
    case 'n':
    case 't':
    case 'r':
    case 'f':
    case 'a':
    case 'e':
      return one_character(2, {'\\', letter});
    default:
      return std::nullopt;
  }
}

// One operand of an intersection: members, and sets within the set.
struct Operand {
  std::string members;
  std::vector<std::string> sets;

  [[nodiscard]] std::string expression() const {
    if (sets.empty() && members.empty()) return "(?!)";
    if (sets.empty()) return "[" + members + "]";
    if (members.empty() && sets.size() == 1) return sets.front();
    std::string out = "(?:";
    if (!members.empty()) out += "[" + members + "]|";
    return out + join(sets, "|") + ")";
  }
};

class SetReader {
 public:
  SetReader(std::string_view pattern, int depth) : text_(pattern), depth_(depth) {}

  Result<CharacterSet> read();

 private:
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
  [[nodiscard]] bool is_range() const;
  Result<void> read_item();
  Result<bool> read_posix();
  Result<void> read_escape_item();
  Result<void> read_character(const std::string& member);
  Result<std::string> range_end();
  [[nodiscard]] std::string expression(bool negated) const;

  std::string_view text_;
  int depth_;
  std::size_t at_ = 0;
  std::vector<Operand> operands_ = {Operand{}};
};

Result<CharacterSet> SetReader::read() {
  if (depth_ > kMaxDepth) return pattern_fault("sets are nested too deeply", text_.substr(0, 16));
  at_ = 1;
  const bool negated = rest().starts_with('^');
  if (negated) ++at_;
  // A closing bracket at the very start is a member.
  if (rest().starts_with(']')) {
    ++at_;
    KERNELPATH_CHECK_OK(read_character("\\]"));
  }
  while (!rest().starts_with(']')) {
    if (rest().empty()) return pattern_fault("a set is not closed", text_.substr(0, 16));
    KERNELPATH_CHECK_OK(read_item());
  }
  return CharacterSet{.length = at_ + 1, .expression = expression(negated)};
}

std::string SetReader::expression(bool negated) const {
  const Operand& last = operands_.back();
  if (operands_.size() == 1 && last.sets.empty() && !last.members.empty()) {
    return (negated ? "[^" : "[") + last.members + "]";
  }
  std::string all;
  for (std::size_t i = 0; i + 1 < operands_.size(); ++i) {
    all += "(?=" + operands_[i].expression() + ")";
  }
  all += last.expression();
  return negated ? "(?:(?!" + all + ")(?s:.))" : "(?:" + all + ")";
}

Result<void> SetReader::read_item() {
  if (rest().starts_with("&&")) {
    at_ += 2;
    operands_.emplace_back();
    return {};
  }
  if (rest().starts_with('[')) {
    KERNELPATH_TRY(was_posix, read_posix());
    if (was_posix) return {};
    KERNELPATH_TRY(inner, read_character_set(rest(), depth_ + 1));
    operands_.back().sets.push_back(std::move(inner.expression));
    at_ += inner.length;
    return {};
  }
  if (rest().starts_with('\\')) return read_escape_item();
  const CodePoint c = decode_utf8(rest());
  const std::string_view character = rest().substr(0, c.length);
  at_ += c.length;
  return read_character(as_member(character));
}

// [:name:] and [:^name:]; false if something else stands here.
Result<bool> SetReader::read_posix() {
  const std::size_t close = rest().find(":]");
  if (!rest().starts_with("[:") || close == std::string_view::npos) return false;
  std::string_view name = rest().substr(2, close - 2);
  const bool negated = name.starts_with('^');
  if (negated) name.remove_prefix(1);
  if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz") != std::string_view::npos) return false;
  const NamedSet* set = find_named_set(name);
  if (set == nullptr) {
    return pattern_fault("this bracket expression is not supported", rest().substr(0, close + 2));
  }
  Operand& operand = operands_.back();
  if (negated) {
    operand.sets.push_back("[^" + std::string(set->posix) + "]");
  } else {
    operand.members += set->posix;
  }
  at_ += close + 2;
  return true;
}

Result<void> SetReader::read_escape_item() {
  KERNELPATH_TRY(escape, read_escape(rest()));
  if (!escape) {
    if (rest().size() < 2) return pattern_fault("a set is not closed", text_.substr(0, 16));
    // What is an assertion or a back-reference outside is a plain character here; \b a backspace.
    const CodePoint c = decode_utf8(rest().substr(1));
    const std::string_view character = rest().substr(1, c.length);
    at_ += 1 + c.length;
    if (character == "b") return read_character("\\x08");
    if (character.find_first_of("0123456789ckMC") == 0) {
      return pattern_fault("this escape is not supported within a set",
                           "\\" + std::string(character));
    }
    return read_character(as_member(character));
  }
  at_ += escape->length;
  if (escape->character) return read_character(*escape->character);
  Operand& operand = operands_.back();
  if (!escape->negated) {
    operand.members += escape->members;
  } else {
    operand.sets.push_back("[^" + escape->members + "]");
  }
  return {};
}

bool SetReader::is_range() const {
  return rest().size() >= 2 && rest()[0] == '-' && rest()[1] != ']' && rest()[1] != '[' &&
         !rest().starts_with("-&&");
}

// Adds a character, or a range that it begins.
Result<void> SetReader::read_character(const std::string& member) {
  Operand& operand = operands_.back();
  operand.members += member;
  if (!is_range()) return {};
  ++at_;
  KERNELPATH_TRY(end, range_end());
  operand.members += (end.empty() ? "\\-" : "-") + end;
  return {};
}

// The last character of a range; empty if no single character stands here.
Result<std::string> SetReader::range_end() {
  if (rest().starts_with('\\')) {
    KERNELPATH_TRY(escape, read_escape(rest()));
    if (escape && !escape->character) return std::string();
    if (escape) {
      at_ += escape->length;
      return *escape->character;
    }
    ++at_;
    if (rest().empty()) return pattern_fault("a set is not closed", text_.substr(0, 16));
  }
  const CodePoint c = decode_utf8(rest());
  std::string member = as_member(rest().substr(0, c.length));
  at_ += c.length;
  return member;
}

}  // namespace

Unexpected pattern_fault(std::string message, std::string_view part) {
  return fail({.code = ErrorCode::kConfigValue,
               .message = "the pattern cannot be used: " + std::move(message),
               .value = shorten(part, 64)});
}

Result<std::optional<Escape>> read_escape(std::string_view pattern) {
  if (pattern.size() < 2) return pattern_fault("it ends with a backslash", pattern);
  const char letter = pattern[1];
  if (letter == 'p' || letter == 'P') return read_property(pattern);
  if (letter == 'x') return read_hex(pattern);
  if (letter == 'u') return read_unicode(pattern);
  if (auto escape = class_escape(letter)) return escape;
  const bool is_letter_or_digit = (letter >= '0' && letter <= '9') ||
                                  (letter >= 'a' && letter <= 'z') ||
                                  (letter >= 'A' && letter <= 'Z');
  if (is_letter_or_digit) return std::nullopt;
  const CodePoint c = decode_utf8(pattern.substr(1));
  if (c.length > 1) return one_character(1 + c.length, std::string(pattern.substr(1, c.length)));
  return one_character(2, std::string(pattern.substr(0, 2)));
}

Result<CharacterSet> read_character_set(std::string_view pattern, int depth) {
  return SetReader(pattern, depth).read();
}

}  // namespace kernelpath::tokenizer
