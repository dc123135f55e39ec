#pragma once

#include "tokenizer/token_id.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::tokenizer {

// Pieces of text that were encoded before. Text repeats its words, so most pieces are looked up and
// not merged again. Starts anew when it is full. Not for several threads at once.
class PieceCache {
 public:
  // Longer pieces are rarely seen twice.
  static constexpr std::size_t kMaxPieceBytes = 256;

  // The ids of a piece that is kept; valid until the next call of add().
  [[nodiscard]] std::optional<std::span<const TokenId>> find(std::string_view piece) const;
  void add(std::string_view piece, std::span<const TokenId> ids);

 private:
  struct Entry {
    std::uint64_t hash = 0;
    std::uint32_t text = 0;  // offset in texts_
    std::uint32_t ids = 0;   // offset in ids_
    std::uint32_t text_length = 0;
    std::uint32_t count = 0;  // of ids
  };

  static constexpr std::size_t kSlots = std::size_t{1} << 16;
  static constexpr std::size_t kMaxEntries = kSlots / 2;
  static constexpr std::size_t kMaxTextBytes = std::size_t{4} << 20;

  [[nodiscard]] std::size_t slot_of(std::string_view piece, std::uint64_t hash) const;

  std::vector<std::uint32_t> slots_;  // 1 + index of an entry; 0: free
  std::vector<Entry> entries_;
  std::string texts_;
  std::vector<TokenId> ids_;
};

}  // namespace kernelpath::tokenizer
