#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::checkpoint {

// Types of metadata values, by their number in a file.
enum class GgufType : std::int32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};
std::string_view gguf_type_name(GgufType type);  // "u32", "str", "arr": as ggml spells them

// Longer lists (token texts, scores, merges) are checked and counted, but not kept: nothing that
// shapes a model has one entry a token. A model has at most 512 layers.
inline constexpr std::uint64_t kKeptElements = 4096;

// One metadata value: a scalar or a list of scalars.
struct GgufValue {
  GgufType type = GgufType::kUint32;          // kArray for a list
  GgufType element_type = GgufType::kUint32;  // of a list; of a scalar its own
  std::uint64_t count = 1;                    // elements of a list
  // The scalar, or the elements of a list of at most kKeptElements. A bool is 0 or 1; an u64 beyond
  // the signed range is the largest value that fits.
  std::vector<std::int64_t> integers = {};
  std::vector<double> reals = {};
  std::string text = {};  // of a string; the strings of a list are not kept

  [[nodiscard]] bool is_array() const { return type == GgufType::kArray; }
};

}  // namespace kernelpath::checkpoint
