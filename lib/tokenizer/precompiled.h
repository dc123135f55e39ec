#pragma once

#include "base/result.h"
#include "tokenizer/json_node.h"
#include "tokenizer/normalizer.h"

#include <memory>

namespace kernelpath::tokenizer {

// The normalizer "Precompiled": sentencepiece's table of replacements, a double-array trie in
// base64 (`precompiled_charsmap`).
Result<std::unique_ptr<Normalizer>> read_precompiled(const JsonNode& node);

}  // namespace kernelpath::tokenizer
