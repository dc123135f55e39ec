#pragma once

#include "base/result.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kernelpath::tokenizer {

// One escape of a pattern (\s, \p{Han}, \x{4e00} …), in PCRE2's words.
struct Escape {
  std::size_t length = 0;  // in the pattern, with the backslash
  // What may stand between the brackets of a set: "\p{L}\p{M}", "a".
  std::string members = {};
  bool negated = false;  // all but `members`
  // The character, where the escape stands for exactly one: an end of a range.
  std::optional<std::string> character = std::nullopt;
};

// Reads an escape that means the same inside and outside of a set; `pattern` starts with the
// backslash. Nothing if it is of another kind (\b, \A, \1 …).
Result<std::optional<Escape>> read_escape(std::string_view pattern);

// A set in brackets, written as an expression that matches one character.
struct CharacterSet {
  std::size_t length = 0;  // in the pattern, with the brackets
  std::string expression;
};

// Reads a set; `pattern` starts with its bracket. Sets inside sets may be 32 deep.
Result<CharacterSet> read_character_set(std::string_view pattern, int depth = 0);

// The members of \w within a set, and outside: Oniguruma has a table of its own for the characters
// below U+0100, where ²³¹¼½¾ are of a word, but does not ask it for sets.
inline constexpr std::string_view kWordMembers = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
inline constexpr std::string_view kWordCharacters =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";

// An error of code kConfigValue about a pattern.
Unexpected pattern_fault(std::string message, std::string_view part);

}  // namespace kernelpath::tokenizer
