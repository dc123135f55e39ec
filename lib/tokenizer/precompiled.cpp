#include "tokenizer/precompiled.h"

#include "base/utf8.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utf8proc.h>
#include <utility>
#include <vector>

namespace kernelpath::tokenizer {
namespace {

// A unit of a trie of darts-clone (the layout is sentencepiece's, third_party/darts_clone/darts.h).
class Unit {
 public:
  explicit Unit(std::uint32_t bits) : bits_(bits) {}
  [[nodiscard]] bool has_leaf() const { return ((bits_ >> 8U) & 1U) != 0; }
  [[nodiscard]] std::uint32_t value() const { return bits_ & 0x7fffffffU; }
  [[nodiscard]] std::uint32_t label() const { return bits_ & 0x800000ffU; }
  [[nodiscard]] std::uint32_t offset() const {
    return (bits_ >> 10U) << ((bits_ & (1U << 9U)) >> 6U);
  }

 private:
  std::uint32_t bits_;
};

class ReplacementTable {
 public:
  ReplacementTable(std::vector<std::uint32_t> units, std::string texts)
      : units_(std::move(units)), texts_(std::move(texts)) {}

  // What stands for the shortest entry that `text` begins with; nothing if there is none. Reads a
  // broken table without leaving it.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view text) const {
    std::uint32_t at = 0;
    if (!units_.empty()) at ^= Unit(units_[0]).offset();
    for (const char c : text) {
      const auto byte = static_cast<std::uint8_t>(c);
      at ^= byte;
      if (byte == 0 || at >= units_.size()) return std::nullopt;
      const Unit unit(units_[at]);
      if (unit.label() != byte) return std::nullopt;
      at ^= unit.offset();
      if (!unit.has_leaf()) continue;
      if (at >= units_.size() || Unit(units_[at]).value() >= texts_.size()) return std::nullopt;
      return std::string_view(texts_.data() + Unit(units_[at]).value());  // ends with a NUL
    }
    return std::nullopt;
  }

 private:
  std::vector<std::uint32_t> units_;
  std::string texts_;
};

// Length of the first user-perceived character of a text.
std::size_t grapheme_length(std::string_view text) {
  utf8proc_int32_t state = 0;
  CodePoint previous = decode_utf8(text);
  std::size_t length = previous.length;
  while (length < text.size()) {
    const CodePoint next = decode_utf8(text.substr(length));
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous.value),
                                         static_cast<utf8proc_int32_t>(next.value), &state)) {
      break;
    }
    length += next.length;
    previous = next;
  }
  return length;
}

class PrecompiledNormalizer final : public Normalizer {
 public:
  explicit PrecompiledNormalizer(ReplacementTable table) : table_(std::move(table)) {}

  [[nodiscard]] Result<std::string> apply(std::string text) const override {
    std::string out;
    out.reserve(text.size());
    const std::string_view all = text;
    for (std::size_t at = 0; at < all.size();) {
      const std::string_view grapheme = all.substr(at, grapheme_length(all.substr(at)));
      at += grapheme.size();
      append(grapheme, out);
    }
    return out;
  }

 private:
  // Short graphemes are looked up whole, then character by character, as the library does it.
  void append(std::string_view grapheme, std::string& out) const {
    constexpr std::size_t whole_limit = 6;
    if (grapheme.size() < whole_limit) {
      if (const auto replacement = table_.find(grapheme)) {
        out += *replacement;
        return;
      }
    }
    while (!grapheme.empty()) {
      const std::string_view character = grapheme.substr(0, decode_utf8(grapheme).length);
      out += table_.find(character).value_or(character);
      grapheme.remove_prefix(character.size());
    }
  }

  ReplacementTable table_;
};

std::optional<std::string> decode_base64(std::string_view text) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string out;
  out.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const std::size_t digit = digits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6U) | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>((bits >> count) & 0xffU);
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<Normalizer>> read_precompiled(const JsonNode& node) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "precompiled_charsmap"}));
  KERNELPATH_TRY(encoded, node.string("precompiled_charsmap"));
  const auto blob = decode_base64(encoded);
  std::uint32_t trie_bytes = 0;
  const bool has_size = blob && blob->size() >= sizeof trie_bytes;
  if (has_size) std::memcpy(&trie_bytes, blob->data(), sizeof trie_bytes);
  if (!has_size || trie_bytes % 4 != 0 || trie_bytes > blob->size() - sizeof trie_bytes) {
    return fail(node.member("precompiled_charsmap")
                    ->error(ErrorCode::kConfigValue,
                            "is no base64 of a table: 4 bytes of length, trie, texts"));
  }
  std::vector<std::uint32_t> units(trie_bytes / 4);
  // An empty table has no address to copy to.
  if (!units.empty()) std::memcpy(units.data(), blob->data() + sizeof trie_bytes, trie_bytes);
  std::string texts = blob->substr(sizeof trie_bytes + trie_bytes);
  texts += '\0';
  return std::make_unique<PrecompiledNormalizer>(
      ReplacementTable(std::move(units), std::move(texts)));
}

}  // namespace kernelpath::tokenizer
