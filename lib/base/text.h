#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath {

// ASCII only, independent of the locale.
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);
bool equal_ignoring_case(std::string_view a, std::string_view b);

// Makes text safe to print: control bytes, DEL, C1 controls, bidirectional overrides and invalid
// UTF-8 become \n, \x1b, \u202e forms. Other UTF-8 is kept.
std::string escape_for_terminal(std::string_view text);

// At most `limit` bytes of `text`, cut at a UTF-8 boundary, with "…" where it was cut.
std::string shorten(std::string_view text, std::size_t limit);

// Names of `candidates` within a small edit distance of `name` (case ignored), nearest first, at
// most `limit`; ties keep the order of `candidates`.
std::vector<std::string> near_matches(std::string_view name,
                                      std::span<const std::string_view> candidates,
                                      std::size_t limit = 3);

// Splits at every `separator`; an empty text gives no parts.
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

// "a, b and c"; with `last` = "or": "a, b or c".
std::string join_words(std::span<const std::string> words, std::string_view last = "and");
std::string join(std::span<const std::string> parts, std::string_view separator);

}  // namespace kernelpath
