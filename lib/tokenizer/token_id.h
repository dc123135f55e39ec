#pragma once

#include <cstdint>

namespace kernelpath::tokenizer {

// Index into the embedding table; never negative where it names a token.
using TokenId = std::int32_t;

inline constexpr TokenId kNoToken = -1;

}  // namespace kernelpath::tokenizer
