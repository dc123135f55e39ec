#include "tokenizer/split.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::tokenizer {
namespace {

struct NamedBehavior {
  std::string_view name;
  SplitBehavior behavior;
};
constexpr std::array<NamedBehavior, 5> kBehaviors = {{
    {"Removed", SplitBehavior::kRemoved},
    {"Isolated", SplitBehavior::kIsolated},
    {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
    {"MergedWithNext", SplitBehavior::kMergedWithNext},
    {"Contiguous", SplitBehavior::kContiguous},
}};

std::vector<Match> merge_with_previous(const std::vector<Match>& matches) {
  std::vector<Match> out;
  bool previous = false;
  for (const Match& match : matches) {
    if (match.is_match && !previous && !out.empty()) {
      out.back().end = match.end;
    } else {
      out.push_back(match);
    }
    previous = match.is_match;
  }
  return out;
}

std::vector<Match> merge_with_next(const std::vector<Match>& matches) {
  std::vector<Match> out;
  bool previous = false;
  for (auto match = matches.rbegin(); match != matches.rend(); ++match) {
    if (match->is_match && !previous && !out.empty()) {
      out.back().begin = match->begin;
    } else {
      out.push_back(*match);
    }
    previous = match->is_match;
  }
  std::ranges::reverse(out);
  return out;
}

std::vector<Match> merge_contiguous(const std::vector<Match>& matches) {
  std::vector<Match> out;
  bool previous = false;
  for (const Match& match : matches) {
    if (match.is_match == previous && !out.empty()) {
      out.back().end = match.end;
    } else {
      out.push_back(match);
    }
    previous = match.is_match;
  }
  return out;
}

void find_literal(std::string_view text, std::string_view literal, std::vector<Match>& out) {
  std::size_t previous_end = 0;
  while (!literal.empty()) {
    const std::size_t found = text.find(literal, previous_end);
    if (found == std::string_view::npos) break;
    if (found != previous_end) out.push_back({previous_end, found, false});
    previous_end = found + literal.size();
    out.push_back({found, previous_end, true});
  }
  if (previous_end != text.size()) out.push_back({previous_end, text.size(), false});
}

}  // namespace

std::vector<Match> apply_split(const std::vector<Match>& matches, SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::kRemoved: {
      std::vector<Match> out;
      std::ranges::copy_if(matches, std::back_inserter(out),
                           [](const Match& match) { return !match.is_match; });
      return out;
    }
    case SplitBehavior::kIsolated:
      return matches;
    case SplitBehavior::kMergedWithPrevious:
      return merge_with_previous(matches);
    case SplitBehavior::kMergedWithNext:
      return merge_with_next(matches);
    case SplitBehavior::kContiguous:
      return merge_contiguous(matches);
  }
  return {};
}

Result<SplitBehavior> read_split_behavior(const JsonNode& node, std::string_view key) {
  KERNELPATH_TRY(name, node.string(key));
  std::vector<std::string> names;
  for (const NamedBehavior& row : kBehaviors) {
    if (row.name == name) return row.behavior;
    names.emplace_back(row.name);
  }
  return fail(
      node.member(key)->error(ErrorCode::kConfigValue, "must be " + join_words(names, "or")));
}

Result<Pattern> Pattern::read(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"String", "Regex"}));
  Pattern pattern;
  pattern.file_ = node.file();
  pattern.pointer_ = node.pointer();
  if (node.find("String")) {
    KERNELPATH_TRY(text, node.string("String"));
    pattern.literal_ = std::move(text);
    return pattern;
  }
  KERNELPATH_TRY(text, node.string("Regex"));
  auto regex = Regex::compile(text);
  if (!regex) {
    Error error = std::move(regex).error();
    error.file = node.file();
    error.where = node.pointer() + "/Regex";
    return fail(std::move(error));
  }
  pattern.regex_ = *std::move(regex);
  return pattern;
}

Result<void> Pattern::find_all(std::string_view text, std::vector<Match>& out) const {
  if (!regex_) {
    find_literal(text, literal_, out);
    return {};
  }
  auto found = regex_->find_all(text, out);
  if (found) return {};
  Error error = std::move(found).error();
  error.file = file_;
  error.where = pointer_;
  return fail(std::move(error));
}

std::optional<std::string_view> Pattern::literal() const {
  if (regex_) return std::nullopt;
  return literal_;
}

Result<std::string> replace_all(std::string_view text, const Pattern& pattern,
                                std::string_view content) {
  std::vector<Match> matches;
  KERNELPATH_CHECK_OK(pattern.find_all(text, matches));
  std::string out;
  out.reserve(text.size());
  for (const Match& match : matches) {
    out += match.is_match ? content : text.substr(match.begin, match.end - match.begin);
    if (out.size() > kMaxNormalizedBytes) {
      return fail({.code = ErrorCode::kInputLimit,
                   .message = "normalisation would make the text longer than 256 MiB"});
    }
  }
  return out;
}

}  // namespace kernelpath::tokenizer
