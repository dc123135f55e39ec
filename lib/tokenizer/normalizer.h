#pragma once

#include "base/result.h"
#include "tokenizer/json_node.h"

#include <memory>
#include <string>

namespace kernelpath::tokenizer {

// Changes a text before it is cut: the "normalizer" of tokenizer.json. Immutable.
class Normalizer {
 public:
  Normalizer() = default;
  Normalizer(const Normalizer&) = delete;
  Normalizer& operator=(const Normalizer&) = delete;
  virtual ~Normalizer() = default;

  // `text` is valid UTF-8, and so is the result. Error: kInputLimit (grows beyond reason, or a
  // pattern takes too long).
  [[nodiscard]] virtual Result<std::string> apply(std::string text) const = 0;
};

// NFC, NFD, NFKC, NFKD, Lowercase, Prepend, Replace, Strip, StripAccents, Nmt, ByteLevel,
// Precompiled and Sequence; others are refused by name.
Result<std::unique_ptr<Normalizer>> read_normalizer(const JsonNode& node);

}  // namespace kernelpath::tokenizer
