#include "tokenizer/pre_tokenizer.h"

#include "base/text.h"
#include "base/utf8.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/split.h"
#include "tokenizer/unicode.h"

#include <array>
#include <utility>

namespace kernelpath::tokenizer {
namespace {

using PreTokenizerResult = Result<std::unique_ptr<PreTokenizer>>;

// Cuts `piece` as `parts` say and appends what is not empty.
void append_parts(const Piece& piece, const std::vector<Match>& parts, std::vector<Piece>& out) {
  for (const Match& part : parts) {
    if (part.begin == part.end) continue;
    out.push_back({.begin = piece.begin + part.begin,
                   .end = piece.begin + part.end,
                   .is_first = piece.is_first && part.begin == 0});
  }
}

// Cuts every piece that is no token where `find` says. `find` fills an empty list.
template <class Find>
Result<void> cut_pieces(PieceList& list, SplitBehavior behavior, const Find& find) {
  std::vector<Piece> out;
  out.reserve(list.pieces.size() * 2);
  std::vector<Match> matches;
  for (const Piece& piece : list.pieces) {
    if (piece.token != kNoToken) {
      out.push_back(piece);
      continue;
    }
    matches.clear();
    KERNELPATH_CHECK_OK(find(list.view(piece), matches));
    if (behavior == SplitBehavior::kIsolated) {
      append_parts(piece, matches, out);
    } else {
      append_parts(piece, apply_split(matches, behavior), out);
    }
  }
  list.pieces = std::move(out);
  return {};
}

// Writes the text anew, piece by piece; `write` appends what becomes of a piece.
template <class Write>
void rewrite_pieces(PieceList& list, const Write& write) {
  std::string text;
  text.reserve(list.text.size() + list.text.size() / 4);
  for (Piece& piece : list.pieces) {
    const std::size_t begin = text.size();
    if (piece.token == kNoToken) {
      write(piece, list.view(piece), text);
    } else {
      text += list.view(piece);
    }
    piece.begin = begin;
    piece.end = text.size();
  }
  list.text = std::move(text);
}

class SplitPreTokenizer final : public PreTokenizer {
 public:
  SplitPreTokenizer(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  [[nodiscard]] Result<void> apply(PieceList& list) const override {
    return cut_pieces(list, behavior_,
                      [&](std::string_view text, std::vector<Match>& matches) -> Result<void> {
                        KERNELPATH_CHECK_OK(pattern_.find_all(text, matches));
                        if (!invert_) return {};
                        for (Match& match : matches) match.is_match = !match.is_match;
                        return {};
                      });
  }

 private:
  Pattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

// Cuts at characters of a kind.
class CharacterPreTokenizer final : public PreTokenizer {
 public:
  using Rule = bool (*)(std::uint32_t);
  CharacterPreTokenizer(Rule rule, SplitBehavior behavior) : rule_(rule), behavior_(behavior) {}

  [[nodiscard]] Result<void> apply(PieceList& list) const override {
    return cut_pieces(list, behavior_, [&](std::string_view text, std::vector<Match>& matches) {
      return find(text, matches);
    });
  }

 private:
  Result<void> find(std::string_view text, std::vector<Match>& matches) const {
    std::size_t previous_end = 0;
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = decode_utf8(text.substr(at));
      const std::size_t end = at + c.length;
      if (rule_(c.value)) {
        if (previous_end < at) matches.push_back({previous_end, at, false});
        matches.push_back({at, end, true});
        previous_end = end;
      }
      at = end;
    }
    if (previous_end < text.size()) matches.push_back({previous_end, text.size(), false});
    return {};
  }

  Rule rule_;
  SplitBehavior behavior_;
};

class FixedLengthPreTokenizer final : public PreTokenizer {
 public:
  explicit FixedLengthPreTokenizer(std::size_t length) : length_(length) {}

  [[nodiscard]] Result<void> apply(PieceList& list) const override {
    return cut_pieces(list, SplitBehavior::kIsolated,
                      [&](std::string_view text, std::vector<Match>& matches) -> Result<void> {
                        std::size_t begin = 0;
                        std::size_t count = 0;
                        for (std::size_t at = 0; at < text.size();) {
                          at += decode_utf8(text.substr(at)).length;
                          if (++count < length_ && at < text.size()) continue;
                          matches.push_back({begin, at, true});
                          begin = at;
                          count = 0;
                        }
                        return {};
                      });
  }

 private:
  std::size_t length_;
};

class ByteLevelPreTokenizer final : public PreTokenizer {
 public:
  ByteLevelPreTokenizer(bool add_prefix_space, std::optional<Regex> regex)
      : add_prefix_space_(add_prefix_space), regex_(std::move(regex)) {}

  [[nodiscard]] Result<void> apply(PieceList& list) const override {
    if (add_prefix_space_) {
      rewrite_pieces(list, [](const Piece& /*place*/, std::string_view piece, std::string& out) {
        if (!piece.starts_with(' ')) out += ' ';
        out += piece;
      });
    }
    if (regex_) {
      KERNELPATH_CHECK_OK(cut_pieces(list, SplitBehavior::kIsolated,
                                     [&](std::string_view text, std::vector<Match>& matches) {
                                       return regex_->find_all(text, matches);
                                     }));
    }
    rewrite_pieces(list, [](const Piece& /*place*/, std::string_view piece, std::string& out) {
      append_byte_characters(piece, out);
    });
    return {};
  }

 private:
  bool add_prefix_space_;
  std::optional<Regex> regex_;
};

class MetaspacePreTokenizer final : public PreTokenizer {
 public:
  explicit MetaspacePreTokenizer(MetaspaceOptions options) : options_(std::move(options)) {}

  [[nodiscard]] Result<void> apply(PieceList& list) const override {
    rewrite_pieces(list, [&](const Piece& piece, std::string_view text, std::string& out) {
      const bool may_prepend =
          options_.prepend == MetaspaceOptions::Prepend::kAlways ||
          (options_.prepend == MetaspaceOptions::Prepend::kFirst && piece.is_first);
      const bool begins_so = text.starts_with(' ') || text.starts_with(options_.replacement);
      if (may_prepend && !begins_so) out += options_.replacement;
      for (const char c : text) {
        if (c == ' ') {
          out += options_.replacement;
        } else {
          out += c;
        }
      }
    });
    if (!options_.split) return {};
    return cut_pieces(list, SplitBehavior::kMergedWithNext,
                      [&](std::string_view text, std::vector<Match>& matches) -> Result<void> {
                        std::size_t previous_end = 0;
                        for (std::size_t at = 0; at < text.size();) {
                          const std::size_t end = at + decode_utf8(text.substr(at)).length;
                          if (text.substr(at, end - at) == options_.replacement) {
                            if (previous_end < at) matches.push_back({previous_end, at, false});
                            matches.push_back({at, end, true});
                            previous_end = end;
                          }
                          at = end;
                        }
                        if (previous_end < text.size()) {
                          matches.push_back({previous_end, text.size(), false});
                        }
                        return {};
                      });
  }

 private:
  MetaspaceOptions options_;
};

class SequencePreTokenizer final : public PreTokenizer {
 public:
  explicit SequencePreTokenizer(std::vector<std::unique_ptr<PreTokenizer>> parts)
      : parts_(std::move(parts)) {}

  [[nodiscard]] Result<void> apply(PieceList& list) const override {
    for (const auto& part : parts_) KERNELPATH_CHECK_OK(part->apply(list));
    return {};
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

PreTokenizerResult make_sequence(std::unique_ptr<PreTokenizer> first,
                                 std::unique_ptr<PreTokenizer> second) {
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  parts.push_back(std::move(first));
  parts.push_back(std::move(second));
  return std::make_unique<SequencePreTokenizer>(std::move(parts));
}

PreTokenizerResult read_sequence(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "pretokenizers"}));
  KERNELPATH_TRY(list, node.list("pretokenizers"));
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  parts.reserve(list.value().items().size());
  for (std::size_t i = 0; i < list.value().items().size(); ++i) {
    KERNELPATH_TRY(part, read_pre_tokenizer(list.item(i)));
    parts.push_back(std::move(part));
  }
  return std::make_unique<SequencePreTokenizer>(std::move(parts));
}

PreTokenizerResult read_split(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "pattern", "behavior", "invert"}));
  KERNELPATH_TRY(pattern_node, node.member("pattern"));
  KERNELPATH_TRY(pattern, Pattern::read(pattern_node));
  KERNELPATH_TRY(behavior, read_split_behavior(node, "behavior"));
  KERNELPATH_TRY(invert, node.boolean("invert", false));
  return std::make_unique<SplitPreTokenizer>(std::move(pattern), behavior, invert);
}

// GPT-2's pattern.
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

PreTokenizerResult read_byte_level(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  KERNELPATH_TRY(add_prefix_space, node.boolean("add_prefix_space", true));
  KERNELPATH_TRY(use_regex, node.boolean("use_regex", true));
  std::optional<Regex> regex;
  if (use_regex) {
    auto compiled = Regex::compile(kByteLevelPattern);
    if (!compiled) return fail(std::move(compiled).error());
    regex = *std::move(compiled);
  }
  return std::make_unique<ByteLevelPreTokenizer>(add_prefix_space, std::move(regex));
}

PreTokenizerResult read_metaspace_kind(const JsonNode& node) {
  KERNELPATH_TRY(options, read_metaspace(node));
  return std::make_unique<MetaspacePreTokenizer>(std::move(options));
}

PreTokenizerResult read_digits(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "individual_digits"}));
  KERNELPATH_TRY(individual, node.boolean("individual_digits", false));
  return std::make_unique<CharacterPreTokenizer>(
      is_numeric, individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
}

PreTokenizerResult read_punctuation(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "behavior"}));
  SplitBehavior behavior = SplitBehavior::kIsolated;
  if (node.find("behavior")) {
    KERNELPATH_TRY(named, read_split_behavior(node, "behavior"));
    behavior = named;
  }
  return std::make_unique<CharacterPreTokenizer>(is_punctuation, behavior);
}

PreTokenizerResult read_whitespace_split(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type"}));
  return std::make_unique<CharacterPreTokenizer>(is_white_space, SplitBehavior::kRemoved);
}

// Runs of word characters, and of what is neither word nor white space: cut at white space, then
// where one kind meets the other.
PreTokenizerResult read_whitespace(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type"}));
  return make_sequence(
      std::make_unique<CharacterPreTokenizer>(is_white_space, SplitBehavior::kRemoved),
      std::make_unique<CharacterPreTokenizer>(is_word, SplitBehavior::kContiguous));
}

PreTokenizerResult read_bert(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type"}));
  return make_sequence(
      std::make_unique<CharacterPreTokenizer>(is_white_space, SplitBehavior::kRemoved),
      std::make_unique<CharacterPreTokenizer>(is_punctuation, SplitBehavior::kIsolated));
}

PreTokenizerResult read_delimiter(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "delimiter"}));
  KERNELPATH_TRY(delimiter, node.character("delimiter"));
  // The same as a Split at this text.
  const json::Value value =
      json::Value::object({{.key = "String", .value = json::Value::string(delimiter)}});
  KERNELPATH_TRY(pattern, Pattern::read(JsonNode(value, node.pointer(), node.file())));
  return std::make_unique<SplitPreTokenizer>(std::move(pattern), SplitBehavior::kRemoved, false);
}

PreTokenizerResult read_fixed_length(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "length"}));
  constexpr std::int64_t limit = 1'000'000;
  KERNELPATH_TRY(length, node.integer("length", limit));
  if (length == 0) {
    return fail(node.member("length")->error(ErrorCode::kConfigValue, "must be at least 1"));
  }
  return std::make_unique<FixedLengthPreTokenizer>(static_cast<std::size_t>(length));
}

struct PreTokenizerKind {
  std::string_view name;
  PreTokenizerResult (*read)(const JsonNode&);
};
constexpr std::array<PreTokenizerKind, 11> kKinds = {{
    {"BertPreTokenizer", read_bert},
    {"ByteLevel", read_byte_level},
    {"CharDelimiterSplit", read_delimiter},
    {"Digits", read_digits},
    {"FixedLength", read_fixed_length},
    {"Metaspace", read_metaspace_kind},
    {"Punctuation", read_punctuation},
    {"Sequence", read_sequence},
    {"Split", read_split},
    {"Whitespace", read_whitespace},
    {"WhitespaceSplit", read_whitespace_split},
}};

}  // namespace

Result<MetaspaceOptions> read_metaspace(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only(
      {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"}));
  MetaspaceOptions options;
  KERNELPATH_TRY(replacement, node.character("replacement"));
  options.replacement = replacement;
  KERNELPATH_TRY(split, node.boolean("split", true));
  options.split = split;
  if (const auto scheme = node.find("prepend_scheme")) {
    KERNELPATH_TRY(name, node.string("prepend_scheme"));
    if (name == "first") {
      options.prepend = MetaspaceOptions::Prepend::kFirst;
    } else if (name == "never") {
      options.prepend = MetaspaceOptions::Prepend::kNever;
    } else if (name != "always") {
      return fail(
          scheme->error(ErrorCode::kConfigValue, R"(must be "always", "first" or "never")"));
    }
  }
  // Files of before 2024 say it this way; where both are there they must agree.
  KERNELPATH_TRY(add_prefix_space, node.boolean("add_prefix_space", true));
  if (add_prefix_space) return options;
  if (node.find("prepend_scheme") && options.prepend != MetaspaceOptions::Prepend::kNever) {
    return fail(node.member("add_prefix_space")
                    ->error(ErrorCode::kConfigValue, "contradicts the field prepend_scheme"));
  }
  options.prepend = MetaspaceOptions::Prepend::kNever;
  return options;
}

PreTokenizerResult read_pre_tokenizer(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.expect(json::Type::kObject));
  KERNELPATH_TRY(type, node.string("type"));
  std::vector<std::string> names;
  for (const PreTokenizerKind& kind : kKinds) {
    if (kind.name == type) return kind.read(node);
    names.emplace_back(kind.name);
  }
  return fail(node.member("type")->error(
      ErrorCode::kUnavailable,
      "this pre-tokenizer is not supported; known are " + join_words(names)));
}

}  // namespace kernelpath::tokenizer
