#pragma once

#include "base/result.h"
#include "tokenizer/json_node.h"
#include "tokenizer/regex.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kernelpath::tokenizer {

// What becomes of the delimiters when a text is cut.
enum class SplitBehavior : std::uint8_t {
  kRemoved,
  kIsolated,            // a piece each
  kMergedWithPrevious,  // the first of several in a row ends the piece before it
  kMergedWithNext,      // the last of several in a row begins the piece behind it
  kContiguous           // several in a row are one piece
};

// Turns matches and what lies between them, in order and without gaps, into the pieces to keep.
// `is_match` of the result has no meaning.
std::vector<Match> apply_split(const std::vector<Match>& matches, SplitBehavior behavior);

// The member `key`: "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous".
Result<SplitBehavior> read_split_behavior(const JsonNode& node, std::string_view key);

// A pattern of Split and Replace: {"String": "…"} or {"Regex": "…"}.
class Pattern {
 public:
  static Result<Pattern> read(const JsonNode& node);

  // As Regex::find_all; errors have file and place.
  [[nodiscard]] Result<void> find_all(std::string_view text, std::vector<Match>& out) const;

  // The text that is looked for, where it is not a regular expression.
  [[nodiscard]] std::optional<std::string_view> literal() const;

 private:
  Pattern() = default;

  std::string literal_;
  std::optional<Regex> regex_;
  std::string file_;
  std::string pointer_;
};

// The text with each match replaced. Error: kInputLimit where it would grow beyond reason.
Result<std::string> replace_all(std::string_view text, const Pattern& pattern,
                                std::string_view content);

// Texts that normalisation makes may not grow beyond this.
inline constexpr std::size_t kMaxNormalizedBytes = std::size_t{1} << 28;

}  // namespace kernelpath::tokenizer
