#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kernelpath::checkpoint {

// The bytes of a safetensors file with this header and this much (zero) data.
inline std::string safetensors_bytes(std::string_view header, std::size_t data_bytes) {
  std::string out;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    out += static_cast<char>((std::uint64_t{header.size()} >> shift) & 0xffU);
  }
  out += header;
  out.append(data_bytes, '\0');
  return out;
}

}  // namespace kernelpath::checkpoint
