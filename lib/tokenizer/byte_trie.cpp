#include "tokenizer/byte_trie.h"

namespace kernelpath::tokenizer {

void ByteTrie::add(std::string_view text, std::int32_t value) {
  if (text.empty()) return;
  starts_[static_cast<std::uint8_t>(text.front())] = true;
  std::uint32_t node = 0;
  for (const char byte : text) {
    const auto [child, is_new] =
        children_.try_emplace(key(node, byte), static_cast<std::uint32_t>(values_.size()));
    if (is_new) values_.push_back(-1);
    node = child->second;
  }
  values_[node] = value;
}

}  // namespace kernelpath::tokenizer
