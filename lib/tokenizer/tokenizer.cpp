#include "tokenizer/tokenizer.h"

#include "tokenizer/parts.h"
#include "tokenizer/split.h"
#include "tokenizer/unicode.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace kernelpath::tokenizer {
namespace {

// Appends a part of the user's text, normalised and cut at the added tokens found there.
Result<void> append_normalized(std::string part, bool is_first, bool parse_special,
                               const Tokenizer::Parts& parts, PieceList& list) {
  if (parts.normalizer != nullptr) {
    auto normalized = parts.normalizer->apply(std::move(part));
    if (!normalized) return fail(std::move(normalized).error());
    part = *std::move(normalized);
  }
  const std::size_t offset = list.text.size();
  for (const TextPart& piece : parts.added.find(part, /*normalized=*/true, parse_special)) {
    list.pieces.push_back({.begin = offset + piece.begin,
                           .end = offset + piece.end,
                           .is_first = is_first && piece.begin == 0,
                           .token = piece.token});
  }
  list.text += part;
  return {};
}

Result<PieceList> cut_text(std::string_view text, bool parse_special,
                           const Tokenizer::Parts& parts) {
  PieceList list;
  list.text.reserve(text.size());
  for (const TextPart& part : parts.added.find(text, /*normalized=*/false, parse_special)) {
    if (part.token != kNoToken) {
      list.pieces.push_back(
          {.begin = list.text.size(), .end = list.text.size(), .token = part.token});
      continue;
    }
    KERNELPATH_CHECK_OK(
        append_normalized(std::string(text.substr(part.begin, part.end - part.begin)),
                          part.begin == 0, parse_special, parts, list));
  }
  if (parts.pre_tokenizer != nullptr) KERNELPATH_CHECK_OK(parts.pre_tokenizer->apply(list));
  return list;
}

// Passes a token's text through the stages from `first` on.
void push_through(const Decoder::Stages& stages, std::size_t first, std::string text,
                  std::string& out) {
  if (first == stages.size()) {
    out += text;
    return;
  }
  stages[first]->push(std::move(text), [&](std::string next) {
    push_through(stages, first + 1, std::move(next), out);
  });
}

// Ends the stages in order; what one held back goes through those behind it.
void finish_stages(const Decoder::Stages& stages, std::string& out) {
  for (std::size_t i = 0; i < stages.size(); ++i) {
    stages[i]->finish([&](std::string next) { push_through(stages, i + 1, std::move(next), out); });
  }
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text,
                                               const EncodeOptions& options) const {
  if (text.size() > kMaxNormalizedBytes) {
    return fail({.code = ErrorCode::kInputLimit, .message = "the text is longer than 256 MiB"});
  }
  const std::size_t invalid = find_invalid_utf8(text);
  if (invalid != std::string_view::npos) {
    return fail({.code = ErrorCode::kInputEncoding,
                 .message = "the text is not UTF-8",
                 .where = "byte " + std::to_string(invalid),
                 .hint = "convert it, for example with iconv"});
  }
  KERNELPATH_TRY(list, cut_text(text, options.parse_special, *parts_));
  std::vector<TokenId> ids;
  ids.reserve(list.pieces.size());
  KERNELPATH_CHECK_OK(parts_->model->encode(list, ids));
  return parts_->post_processor.apply(std::move(ids), options.add_special_tokens);
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids,
                                      const DecodeOptions& options) const {
  const Decoder::Stages stages = parts_->decoder.make_stages();
  std::string out;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto text = text_of(ids[i]);
    if (!text) {
      if (!options.refuse_unknown_ids) continue;
      return fail({.code = ErrorCode::kConfigValue,
                   .message = "no token has this id; the vocabulary's ids are 0 to " +
                              std::to_string(id_limit() - 1),
                   .file = parts_->file,
                   .where = "token " + std::to_string(i),
                   .value = std::to_string(ids[i]),
                   .hint = "the ids come from another tokenizer"});
    }
    if (options.skip_special && parts_->added.is_special(*text)) continue;
    push_through(stages, 0, std::string(*text), out);
  }
  finish_stages(stages, out);
  return out;
}

StreamDecoder Tokenizer::stream_decoder(bool skip_special) const { return {*this, skip_special}; }

std::optional<TokenId> Tokenizer::token_to_id(std::string_view token) const {
  return parts_->find(token);
}

std::optional<std::string_view> Tokenizer::text_of(TokenId id) const {
  if (const auto text = parts_->added.text(id)) return text;
  return parts_->model->token(id);
}

std::optional<std::string> Tokenizer::id_to_token(TokenId id) const {
  if (const AddedToken* token = parts_->added.by_id(id)) return token->content;
  const auto text = parts_->model->token(id);
  if (!text) return std::nullopt;
  return std::string(*text);
}

bool Tokenizer::is_special(TokenId id) const {
  const AddedToken* token = parts_->added.by_id(id);
  return token != nullptr && token->special;
}

std::size_t Tokenizer::vocabulary_size() const {
  const auto& added = parts_->added.tokens();
  const auto is_new = [&](const auto& entry) {
    return !parts_->model->find(entry.second.content).has_value();
  };
  return parts_->model->size() + static_cast<std::size_t>(std::ranges::count_if(added, is_new));
}

TokenId Tokenizer::id_limit() const {
  TokenId highest = parts_->model->highest_id();
  for (const auto& [id, token] : parts_->added.tokens()) highest = std::max(highest, id);
  return highest + 1;
}

const SpecialTokens& Tokenizer::special_tokens() const { return parts_->special; }
std::span<const Warning> Tokenizer::warnings() const { return parts_->warnings; }
const std::string& Tokenizer::file() const { return parts_->file; }

struct StreamDecoder::State {
  const Tokenizer* tokenizer;
  bool skip_special;
  Decoder::Stages stages;
};

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : state_(std::make_unique<State>(
          State{&tokenizer, skip_special, tokenizer.parts_->decoder.make_stages()})) {}
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;
StreamDecoder::~StreamDecoder() = default;

std::string StreamDecoder::push(TokenId id) {
  std::string out;
  const auto text = state_->tokenizer->text_of(id);
  if (!text) return out;
  if (state_->skip_special && state_->tokenizer->parts_->added.is_special(*text)) return out;
  push_through(state_->stages, 0, std::string(*text), out);
  return out;
}

std::string StreamDecoder::flush() {
  std::string out;
  finish_stages(state_->stages, out);
  state_->stages = state_->tokenizer->parts_->decoder.make_stages();
  return out;
}

}  // namespace kernelpath::tokenizer
