#pragma once

#include <string>
#include <string_view>

namespace kernelpath {

// SHA-256 of `bytes` as 64 hexadecimal digits; empty where the build found no Nettle library.
std::string sha256_hex(std::string_view bytes);

}  // namespace kernelpath
