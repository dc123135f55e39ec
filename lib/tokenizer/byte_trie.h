#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kernelpath::tokenizer {

// Texts with a number each, to be found as prefixes of another text.
class ByteTrie {
 public:
  // The last of equal texts counts. Empty texts are not kept.
  void add(std::string_view text, std::int32_t value);

  // Calls `found(length, value)` for every text that `text` begins with, shortest first.
  template <class Found>
  void for_each_prefix(std::string_view text, const Found& found) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto next = children_.find(key(node, text[i]));
      if (next == children_.end()) return;
      node = next->second;
      if (values_[node] >= 0) found(i + 1, values_[node]);
    }
  }

  // May a text begin with this byte?
  [[nodiscard]] bool has_start(char byte) const { return starts_[static_cast<std::uint8_t>(byte)]; }
  [[nodiscard]] bool empty() const { return values_.size() == 1; }

 private:
  static std::uint64_t key(std::uint32_t node, char byte) {
    return (std::uint64_t{node} << 8U) | static_cast<std::uint8_t>(byte);
  }

  std::unordered_map<std::uint64_t, std::uint32_t> children_;
  std::vector<std::int32_t> values_ = {-1};  // of each node; the first is the root
  std::vector<bool> starts_ = std::vector<bool>(256);
};

}  // namespace kernelpath::tokenizer
