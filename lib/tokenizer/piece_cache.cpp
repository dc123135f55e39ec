#include "tokenizer/piece_cache.h"

#include <functional>

namespace kernelpath::tokenizer {

// The slot that holds the piece, or the free one where it belongs.
std::size_t PieceCache::slot_of(std::string_view piece, std::uint64_t hash) const {
  std::size_t slot = hash & (kSlots - 1);
  while (slots_[slot] != 0) {
    const Entry& entry = entries_[slots_[slot] - 1];
    if (entry.hash == hash &&
        std::string_view(texts_).substr(entry.text, entry.text_length) == piece) {
      break;
    }
    slot = (slot + 1) & (kSlots - 1);
  }
  return slot;
}

std::optional<std::span<const TokenId>> PieceCache::find(std::string_view piece) const {
  if (entries_.empty()) return std::nullopt;
  const std::size_t slot = slot_of(piece, std::hash<std::string_view>()(piece));
  if (slots_[slot] == 0) return std::nullopt;
  const Entry& entry = entries_[slots_[slot] - 1];
  return std::span(ids_).subspan(entry.ids, entry.count);
}

void PieceCache::add(std::string_view piece, std::span<const TokenId> ids) {
  if (slots_.empty() || entries_.size() == kMaxEntries || texts_.size() > kMaxTextBytes) {
    slots_.assign(kSlots, 0);
    entries_.clear();
    texts_.clear();
    ids_.clear();
  }
  const std::uint64_t hash = std::hash<std::string_view>()(piece);
  const std::size_t slot = slot_of(piece, hash);
  if (slots_[slot] != 0) return;
  entries_.push_back({.hash = hash,
                      .text = static_cast<std::uint32_t>(texts_.size()),
                      .ids = static_cast<std::uint32_t>(ids_.size()),
                      .text_length = static_cast<std::uint32_t>(piece.size()),
                      .count = static_cast<std::uint32_t>(ids.size())});
  texts_ += piece;
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  slots_[slot] = static_cast<std::uint32_t>(entries_.size());
}

}  // namespace kernelpath::tokenizer
