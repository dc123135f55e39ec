#pragma once

#include "checkpoint/gguf.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::checkpoint {

template <class T>
std::string little(T value) {
  std::string out(sizeof(T), '\0');
  std::memcpy(out.data(), &value, sizeof(T));
  return out;
}

inline std::string gguf_string(std::string_view text) {
  return little(std::uint64_t{text.size()}).append(text);
}

// Writes GGUF files, also ones that no writer would.
class GgufBuilder {
 public:
  std::uint32_t version = 3;
  std::int64_t pair_count = 0;
  std::int64_t tensor_count = 0;
  std::size_t alignment = 32;  // of the data section
  std::size_t data_bytes = 0;

  // A pair, its value's bytes as given.
  GgufBuilder& raw(std::string_view key, std::int32_t type, std::string_view value) {
    pairs_ += gguf_string(key) + little(type) + std::string(value);
    ++pair_count;
    return *this;
  }
  template <class T>
  GgufBuilder& number(std::string_view key, GgufType type, T value) {
    return raw(key, static_cast<std::int32_t>(type), little(value));
  }
  GgufBuilder& u32(std::string_view key, std::uint32_t value) {
    return number(key, GgufType::kUint32, value);
  }
  GgufBuilder& text(std::string_view key, std::string_view value) {
    return raw(key, static_cast<std::int32_t>(GgufType::kString), gguf_string(value));
  }
  // A list: the elements' bytes as given, whatever `count` says.
  GgufBuilder& array(std::string_view key, GgufType type, std::uint64_t count,
                     std::string_view elements) {
    return raw(key, static_cast<std::int32_t>(GgufType::kArray),
               little(static_cast<std::int32_t>(type)) + little(count) + std::string(elements));
  }
  // A row of the tensor table.
  GgufBuilder& tensor(std::string_view name, const std::vector<std::int64_t>& shape,
                      std::int32_t type, std::uint64_t offset) {
    tensors_ += gguf_string(name) + little(static_cast<std::uint32_t>(shape.size()));
    for (const std::int64_t size : shape) tensors_ += little(size);
    tensors_ += little(type) + little(offset);
    ++tensor_count;
    return *this;
  }
  GgufBuilder& tensor_bytes(std::string_view bytes) {
    tensors_ += bytes;
    ++tensor_count;
    return *this;
  }

  [[nodiscard]] std::string header() const {
    return "GGUF" + little(version) + little(tensor_count) + little(pair_count) + pairs_ + tensors_;
  }
  [[nodiscard]] std::string bytes() const {
    std::string out = header();
    if (data_bytes == 0) return out;
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    out.append(data_bytes, '\0');
    return out;
  }

 private:
  std::string pairs_;
  std::string tensors_;
};

// The metadata of two layers of llama with 8 heads of `head_dim` and 2 KV heads.
inline GgufBuilder llama_gguf(std::uint32_t head_dim) {
  GgufBuilder file;
  file.text("general.architecture", "llama")
      .u32("llama.block_count", 2)
      .u32("llama.context_length", 4096)
      .u32("llama.embedding_length", head_dim * 8)
      .u32("llama.feed_forward_length", 2048)
      .u32("llama.attention.head_count", 8)
      .u32("llama.attention.head_count_kv", 2)
      .u32("llama.vocab_size", 32)
      .number("llama.attention.layer_norm_rms_epsilon", GgufType::kFloat32, 1e-5F);
  return file;
}

}  // namespace kernelpath::checkpoint
