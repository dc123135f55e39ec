#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::features {

enum class TokenKind : std::uint8_t { kEnd, kName, kInteger, kDouble, kString, kSymbol };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text = {};     // of a name or symbol; the content of a string
  std::int64_t integer = 0;  // of kInteger
  double number = 0;         // of kDouble
  std::size_t offset = 0;    // in the source, in bytes
};

// Splits an expression. Names hold dots ("kv_cache_config.dtype"); strings are double-quoted with
// \" \\ \n \t. The last token is kEnd.
// Error kInputSchema with the byte offset in `where`.
Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace kernelpath::features
