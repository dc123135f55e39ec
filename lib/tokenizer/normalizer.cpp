#include "tokenizer/normalizer.h"

#include "base/text.h"
#include "base/utf8.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/precompiled.h"
#include "tokenizer/split.h"
#include "tokenizer/unicode.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::tokenizer {
namespace {

class UnicodeNormalizer final : public Normalizer {
 public:
  explicit UnicodeNormalizer(NormalForm form) : form_(form) {}
  [[nodiscard]] Result<std::string> apply(std::string text) const override {
    return normalize(text, form_);
  }

 private:
  NormalForm form_;
};

class LowercaseNormalizer final : public Normalizer {
 public:
  [[nodiscard]] Result<std::string> apply(std::string text) const override {
    return lowercase(text);
  }
};

class PrependNormalizer final : public Normalizer {
 public:
  explicit PrependNormalizer(std::string prefix) : prefix_(std::move(prefix)) {}
  [[nodiscard]] Result<std::string> apply(std::string text) const override {
    return text.empty() ? text : prefix_ + text;
  }

 private:
  std::string prefix_;
};

class ReplaceNormalizer final : public Normalizer {
 public:
  ReplaceNormalizer(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  [[nodiscard]] Result<std::string> apply(std::string text) const override {
    return replace_all(text, pattern_, content_);
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class StripNormalizer final : public Normalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}

  [[nodiscard]] Result<std::string> apply(std::string text) const override {
    std::size_t begin = 0;
    std::size_t end = 0;
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = decode_utf8(std::string_view(text).substr(at));
      at += c.length;
      if (!is_white_space(c.value)) {
        end = at;
      } else if (end == 0) {
        begin = at;
      }
    }
    if (!right_) end = text.size();
    if (!left_) begin = 0;
    return text.substr(begin, end > begin ? end - begin : 0);
  }

 private:
  bool left_;
  bool right_;
};

// Keeps, drops or changes characters one by one.
class CharacterNormalizer final : public Normalizer {
 public:
  // Gives the character to write; nothing to drop it.
  using Rule = std::optional<std::uint32_t> (*)(std::uint32_t);
  explicit CharacterNormalizer(Rule rule) : rule_(rule) {}

  [[nodiscard]] Result<std::string> apply(std::string text) const override {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = decode_utf8(std::string_view(text).substr(at));
      at += c.length;
      if (const auto kept = rule_(c.value)) append_utf8(out, *kept);
    }
    return out;
  }

 private:
  Rule rule_;
};

std::optional<std::uint32_t> without_marks(std::uint32_t c) {
  if (is_mark(c)) return std::nullopt;
  return c;
}

// The rule "nmt" of sentencepiece: controls go, what only looks like space becomes one.
std::optional<std::uint32_t> nmt_rule(std::uint32_t c) {
  const bool is_dropped = (c >= 0x01 && c <= 0x08) || c == 0x0b || (c >= 0x0e && c <= 0x1f) ||
                          c == 0x7f || c == 0x8f || c == 0x9f;
  if (is_dropped) return std::nullopt;
  constexpr std::array<std::uint32_t, 10> spaces = {0x09,   0x0a,   0x0c,   0x0d,   0x1680,
                                                    0x2028, 0x2029, 0x2581, 0xfeff, 0xfffd};
  for (const std::uint32_t space : spaces) {
    if (c == space) return ' ';
  }
  return c >= 0x200b && c <= 0x200f ? std::uint32_t{' '} : c;
}

class ByteLevelNormalizer final : public Normalizer {
 public:
  [[nodiscard]] Result<std::string> apply(std::string text) const override {
    std::string out;
    out.reserve(text.size() + text.size() / 4);
    append_byte_characters(text, out);
    return out;
  }
};

class SequenceNormalizer final : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<std::unique_ptr<Normalizer>> parts)
      : parts_(std::move(parts)) {}
  [[nodiscard]] Result<std::string> apply(std::string text) const override {
    for (const auto& part : parts_) {
      auto changed = part->apply(std::move(text));
      if (!changed) return changed;
      text = *std::move(changed);
    }
    return text;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

using NormalizerResult = Result<std::unique_ptr<Normalizer>>;

NormalizerResult read_sequence(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "normalizers"}));
  KERNELPATH_TRY(list, node.list("normalizers"));
  std::vector<std::unique_ptr<Normalizer>> parts;
  parts.reserve(list.value().items().size());
  for (std::size_t i = 0; i < list.value().items().size(); ++i) {
    KERNELPATH_TRY(part, read_normalizer(list.item(i)));
    parts.push_back(std::move(part));
  }
  return std::make_unique<SequenceNormalizer>(std::move(parts));
}

NormalizerResult read_replace(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "pattern", "content"}));
  KERNELPATH_TRY(pattern_node, node.member("pattern"));
  KERNELPATH_TRY(pattern, Pattern::read(pattern_node));
  KERNELPATH_TRY(content, node.string("content"));
  return std::make_unique<ReplaceNormalizer>(std::move(pattern), std::move(content));
}

NormalizerResult read_strip(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "strip_left", "strip_right"}));
  KERNELPATH_TRY(left, node.boolean("strip_left", false));
  KERNELPATH_TRY(right, node.boolean("strip_right", false));
  return std::make_unique<StripNormalizer>(left, right);
}

NormalizerResult read_prepend(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "prepend"}));
  KERNELPATH_TRY(prefix, node.string("prepend"));
  return std::make_unique<PrependNormalizer>(std::move(prefix));
}

template <class T, auto... Arguments>
NormalizerResult read_plain(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type"}));
  return std::make_unique<T>(Arguments...);
}

struct NormalizerKind {
  std::string_view name;
  NormalizerResult (*read)(const JsonNode&);
};
constexpr std::array<NormalizerKind, 13> kKinds = {{
    {"ByteLevel", read_plain<ByteLevelNormalizer>},
    {"Lowercase", read_plain<LowercaseNormalizer>},
    {"NFC", read_plain<UnicodeNormalizer, NormalForm::kNfc>},
    {"NFD", read_plain<UnicodeNormalizer, NormalForm::kNfd>},
    {"NFKC", read_plain<UnicodeNormalizer, NormalForm::kNfkc>},
    {"NFKD", read_plain<UnicodeNormalizer, NormalForm::kNfkd>},
    {"Nmt", read_plain<CharacterNormalizer, nmt_rule>},
    {"Precompiled", read_precompiled},
    {"Prepend", read_prepend},
    {"Replace", read_replace},
    {"Sequence", read_sequence},
    {"Strip", read_strip},
    {"StripAccents", read_plain<CharacterNormalizer, without_marks>},
}};

}  // namespace

NormalizerResult read_normalizer(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.expect(json::Type::kObject));
  KERNELPATH_TRY(type, node.string("type"));
  std::vector<std::string> names;
  for (const NormalizerKind& kind : kKinds) {
    if (kind.name == type) return kind.read(node);
    names.emplace_back(kind.name);
  }
  return fail(node.member("type")->error(
      ErrorCode::kUnavailable, "this normalizer is not supported; known are " + join_words(names)));
}

}  // namespace kernelpath::tokenizer
