#include "base/sha256.h"

#ifdef KERNELPATH_HAVE_NETTLE
#include <nettle/sha2.h>

#include <array>
#include <cstdint>
#endif

namespace kernelpath {

// Nettle and not libcrypto: loading libcrypto costs 1.6 ms of the 15 ms that a whole process may
// take, Nettle 0.1 ms.
std::string sha256_hex(std::string_view bytes) {
  std::string hex;
#ifdef KERNELPATH_HAVE_NETTLE
  sha256_ctx context = {};
  sha256_init(&context);
  sha256_update(&context, bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
  sha256_digest(&context, digest.size(), digest.data());
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const std::uint8_t byte : digest) {
    hex += kDigits[byte >> 4U];
    hex += kDigits[byte & 0xfU];
  }
#else
  static_cast<void>(bytes);
#endif
  return hex;
}

}  // namespace kernelpath
