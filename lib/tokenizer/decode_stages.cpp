#include "tokenizer/decode_stages.h"

#include "tokenizer/byte_level.h"
#include "tokenizer/unicode.h"

#include <array>
#include <optional>
#include <string_view>

namespace kernelpath::tokenizer {
namespace {

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return std::nullopt;
}

// 10 for "<0x0A>".
std::optional<char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  const auto low = hex_digit(token[4]);
  // Rust's from_str_radix takes a sign, too.
  const auto high = token[3] == '+' ? std::optional<unsigned>(0) : hex_digit(token[3]);
  if (!high || !low) return std::nullopt;
  return static_cast<char>(*high * 16 + *low);
}

// Length of the longest end of `text` that is a true start of `literal`.
std::size_t partial_match(std::string_view text, std::string_view literal) {
  std::size_t length = std::min(text.size(), literal.size() - 1);
  while (length > 0 && text.substr(text.size() - length) != literal.substr(0, length)) --length;
  return length;
}

}  // namespace

std::string replace_literal(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  while (!from.empty()) {
    const std::size_t found = text.find(from);
    if (found == std::string_view::npos) break;
    out += text.substr(0, found);
    out += to;
    text.remove_prefix(found + from.size());
  }
  out += text;
  return out;
}

void ByteLevelStage::push(std::string text, const Sink& sink) {
  if (auto bytes = bytes_of_characters(text)) text = *std::move(bytes);
  const std::string all = std::exchange(pending_, {}) + text;
  std::string valid = repair_utf8(all, Repair::kEachPart, &pending_);
  if (!valid.empty()) sink(std::move(valid));
}

void ByteLevelStage::finish(const Sink& sink) {
  if (!pending_.empty()) sink(repair_utf8(std::exchange(pending_, {}), Repair::kEachPart));
}

void ByteFallbackStage::push(std::string text, const Sink& sink) {
  if (const auto byte = byte_of_token(text)) {
    bytes_ += *byte;
    if (!part_by_part_) return;
    const std::string all = std::exchange(bytes_, {});
    std::string valid = repair_utf8(all, Repair::kEachByte, &bytes_);
    if (!valid.empty()) sink(std::move(valid));
    return;
  }
  finish(sink);
  sink(std::move(text));
}

void ByteFallbackStage::finish(const Sink& sink) {
  if (bytes_.empty()) return;
  const std::string bytes = std::exchange(bytes_, {});
  if (find_invalid_utf8(bytes) == std::string_view::npos) {
    sink(bytes);
    return;
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) sink("\xef\xbf\xbd");
}

void StripStage::push(std::string text, const Sink& sink) {
  std::string_view kept = text;
  std::size_t taken = 0;
  for (; taken < start_ && kept.starts_with(content_); ++taken) kept.remove_prefix(content_.size());
  for (std::size_t i = 0; i < stop_ && kept.ends_with(content_); ++i) {
    kept.remove_suffix(content_.size());
  }
  sink(std::string(kept));
}

void StripStartStage::push(std::string text, const Sink& sink) {
  pending_ += text;
  while (left_ > 0 && pending_.starts_with(content_)) {
    pending_.erase(0, content_.size());
    --left_;
  }
  // A part of the content may be all there is so far.
  if (left_ > 0 && content_.starts_with(pending_)) return;
  left_ = 0;
  if (!pending_.empty()) sink(std::exchange(pending_, {}));
}

void StripStartStage::finish(const Sink& sink) {
  if (!pending_.empty()) sink(std::exchange(pending_, {}));
}

void ReplaceStage::push(std::string text, const Sink& sink) {
  // A pattern that takes too long on a token leaves it as it is: decoding never fails.
  auto replaced = replace_all(text, *pattern_, content_);
  sink(replaced ? *std::move(replaced) : std::move(text));
}

void ReplaceInPartsStage::push(std::string text, const Sink& sink) {
  pending_ += text;
  if (literal_.empty()) return finish(sink);
  std::string out;
  std::size_t at = 0;
  for (std::size_t found = pending_.find(literal_); found != std::string::npos;
       found = pending_.find(literal_, at)) {
    out.append(pending_, at, found - at);
    out += content_;
    at = found + literal_.size();
  }
  const std::size_t kept = partial_match(std::string_view(pending_).substr(at), literal_);
  out.append(pending_, at, pending_.size() - kept - at);
  pending_.erase(0, pending_.size() - kept);
  if (!out.empty()) sink(std::move(out));
}

void ReplaceInPartsStage::finish(const Sink& sink) {
  if (!pending_.empty()) sink(std::exchange(pending_, {}));
}

void MetaspaceStage::push(std::string text, const Sink& sink) {
  // The first token has no space before it, unless none was put there.
  const bool drops = is_first_ && options_.prepend != MetaspaceOptions::Prepend::kNever;
  is_first_ = false;
  sink(replace_literal(text, options_.replacement, drops ? "" : " "));
}

void WordSuffixStage::push(std::string text, const Sink& sink) {
  if (has_last_) sink(replace_literal(last_, suffix_, " "));
  last_ = std::move(text);
  has_last_ = true;
}

void WordSuffixStage::finish(const Sink& sink) {
  if (has_last_) sink(replace_literal(last_, suffix_, ""));
  has_last_ = false;
}

void WordPieceStage::push(std::string text, const Sink& sink) {
  if (!std::exchange(is_first_, false)) {
    const bool continues = text.starts_with(prefix_);
    text = continues ? text.substr(prefix_.size()) : " " + text;
  }
  if (cleanup_) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 11> changes = {{
        {" .", "."},
        {" ?", "?"},
        {" !", "!"},
        {" ,", ","},
        {" ' ", "'"},
        {" n't", "n't"},
        {" 'm", "'m"},
        {" do not", " don't"},
        {" 's", "'s"},
        {" 've", "'ve"},
        {" 're", "'re"},
    }};
    for (const auto& [from, to] : changes) text = replace_literal(text, from, to);
  }
  sink(std::move(text));
}

void JoinStage::push(std::string text, const Sink& sink) {
  if (!std::exchange(is_first_, false)) text.insert(0, " ");
  sink(std::move(text));
}

void WholeTextStage::finish(const Sink& sink) {
  stage_->push(std::exchange(text_, {}), sink);
  stage_->finish(sink);
}

}  // namespace kernelpath::tokenizer
