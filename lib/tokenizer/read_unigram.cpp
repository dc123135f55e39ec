#include "base/utf8.h"
#include "tokenizer/byte_trie.h"
#include "tokenizer/model.h"
#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace kernelpath::tokenizer {
namespace {

// A character without a token costs this much more than the rarest token (sentencepiece's
// kUnkPenalty).
constexpr double kUnknownPenalty = 10;

struct UnigramParts {
  Vocabulary vocabulary;
  ByteTrie tokens;
  std::vector<double> scores;  // by id: the logarithm of a token's probability
  std::optional<TokenId> unknown = std::nullopt;
  bool byte_fallback = false;
};

// The most probable way to write a piece in tokens (Viterbi over its characters).
class Unigram final : public Model {
 public:
  explicit Unigram(UnigramParts parts)
      : parts_(std::move(parts)),
        unknown_score_((parts_.scores.empty() ? 0 : std::ranges::min(parts_.scores)) -
                       kUnknownPenalty) {}

  [[nodiscard]] Result<void> encode(const PieceList& list,
                                    std::vector<TokenId>& out) const override {
    for (const Piece& piece : list.pieces) {
      if (piece.token != kNoToken) {
        out.push_back(piece.token);
        continue;
      }
      KERNELPATH_CHECK_OK(encode_piece(list.view(piece), out));
    }
    return {};
  }

  [[nodiscard]] std::optional<TokenId> find(std::string_view token) const override {
    return parts_.vocabulary.find(token);
  }
  [[nodiscard]] std::optional<std::string_view> token(TokenId id) const override {
    return parts_.vocabulary.token(id);
  }
  [[nodiscard]] std::size_t size() const override { return parts_.scores.size(); }
  [[nodiscard]] TokenId highest_id() const override { return parts_.vocabulary.highest_id(); }

 private:
  // The best way to reach an end: the last token and where it begins.
  struct Step {
    double score = 0;
    std::size_t begin = std::string_view::npos;
    TokenId id = kNoToken;
  };

  static void improve(Step& step, double score, std::size_t begin, TokenId id) {
    if (step.begin == std::string_view::npos || score > step.score) step = {score, begin, id};
  }

  [[nodiscard]] Result<void> encode_piece(std::string_view piece, std::vector<TokenId>& out) const;
  void add_unknown(std::string_view text, std::vector<TokenId>& out) const;

  UnigramParts parts_;
  double unknown_score_;
};

Result<void> Unigram::encode_piece(std::string_view piece, std::vector<TokenId>& out) const {
  std::vector<Step> best(piece.size() + 1);
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t character = decode_utf8(piece.substr(at)).length;
    const double score = best[at].score;
    bool has_character = false;
    parts_.tokens.for_each_prefix(piece.substr(at), [&](std::size_t length, TokenId id) {
      improve(best[at + length], score + parts_.scores[static_cast<std::size_t>(id)], at, id);
      if (length == character) has_character = true;
    });
    if (!has_character && !parts_.unknown) {
      return fail({.code = ErrorCode::kConfigValue,
                   .message = "the text has a character that the vocabulary lacks, and the model "
                              "names no unk_id",
                   .value = std::string(piece.substr(at, character))});
    }
    if (!has_character) {
      improve(best[at + character], score + unknown_score_, at, *parts_.unknown);
    }
    at += character;
  }
  // From the end to the start; unknown characters in a row are one token.
  std::vector<std::pair<std::size_t, std::size_t>> words;
  bool was_unknown = false;
  for (std::size_t end = piece.size(); end > 0;) {
    const Step& step = best[end];
    const bool is_unknown = step.id == parts_.unknown;
    if (is_unknown && was_unknown) {
      words.back().first = step.begin;
    } else {
      words.emplace_back(step.begin, end);
    }
    was_unknown = is_unknown;
    end = step.begin;
  }
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    const std::string_view text = piece.substr(word->first, word->second - word->first);
    if (const auto id = parts_.vocabulary.find(text)) {
      out.push_back(*id);
    } else {
      add_unknown(text, out);
    }
  }
  return {};
}

void Unigram::add_unknown(std::string_view text, std::vector<TokenId>& out) const {
  const std::size_t size = out.size();
  bool has_bytes = parts_.byte_fallback;
  for (std::size_t i = 0; i < text.size() && has_bytes; ++i) {
    const auto id = parts_.vocabulary.find(byte_token(static_cast<std::uint8_t>(text[i])));
    has_bytes = id.has_value();
    if (id) out.push_back(*id);
  }
  if (has_bytes) return;
  out.resize(size);
  out.push_back(parts_.unknown.value_or(0));
}

Result<void> read_entry(const JsonNode& entry, UnigramParts& parts) {
  const json::Value& value = entry.value();
  const bool is_entry = value.is_array() && value.items().size() == 2 &&
                        value.items()[0].is_string() && value.items()[1].is_number();
  if (!is_entry) {
    return fail(entry.error(ErrorCode::kConfigValue, "must be a token and its score"));
  }
  const std::string& token = value.items()[0].as_string();
  const auto id = static_cast<TokenId>(parts.scores.size());
  parts.vocabulary.add(token, id);
  parts.tokens.add(token, id);
  parts.scores.push_back(value.items()[1].as_double());
  return {};
}

}  // namespace

Result<std::unique_ptr<Model>> read_unigram(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "unk_id", "vocab", "byte_fallback"}));
  KERNELPATH_TRY(list, node.list("vocab"));
  std::size_t bytes = 0;
  for (const json::Value& entry : list.value().items()) {
    if (entry.is_array() && !entry.items().empty() && entry.items()[0].is_string()) {
      bytes += entry.items()[0].as_string().size();
    }
  }
  const std::size_t count = list.value().items().size();
  UnigramParts parts{.vocabulary = Vocabulary(bytes, count), .tokens = {}, .scores = {}};
  parts.scores.reserve(count);
  for (std::size_t i = 0; i < count; ++i) KERNELPATH_CHECK_OK(read_entry(list.item(i), parts));
  KERNELPATH_TRY(byte_fallback, node.boolean("byte_fallback", false));
  parts.byte_fallback = byte_fallback;
  if (node.find("unk_id")) {
    KERNELPATH_TRY(unknown, node.integer("unk_id", std::numeric_limits<TokenId>::max()));
    if (static_cast<std::size_t>(unknown) >= count) {
      return fail(node.member("unk_id")->error(ErrorCode::kConfigValue,
                                               "must be below the vocabulary's size"));
    }
    parts.unknown = static_cast<TokenId>(unknown);
  }
  return std::make_unique<Unigram>(std::move(parts));
}

}  // namespace kernelpath::tokenizer
