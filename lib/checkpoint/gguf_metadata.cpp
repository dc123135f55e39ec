#include "checkpoint/gguf_metadata.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_set>
#include <utility>

namespace kernelpath::checkpoint {
namespace {

constexpr std::size_t kMaxKeyBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxStringBytes = std::size_t{1} << 30;
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 30;
constexpr std::size_t kLengthBytes = 8;  // of a string: the least that one takes

struct TypeRow {
  GgufType type;
  std::string_view name;
  std::size_t bytes;  // of a scalar in the file; of a string the least
};

constexpr auto kTypeRows = std::to_array<TypeRow>({
    {GgufType::kUint8, "u8", 1},
    {GgufType::kInt8, "i8", 1},
    {GgufType::kUint16, "u16", 2},
    {GgufType::kInt16, "i16", 2},
    {GgufType::kUint32, "u32", 4},
    {GgufType::kInt32, "i32", 4},
    {GgufType::kFloat32, "f32", 4},
    {GgufType::kBool, "bool", 1},
    {GgufType::kString, "str", kLengthBytes},
    {GgufType::kArray, "arr", 0},
    {GgufType::kUint64, "u64", 8},
    {GgufType::kInt64, "i64", 8},
    {GgufType::kFloat64, "f64", 8},
});

const TypeRow* find_type(std::int32_t number) {
  const auto* const found = std::ranges::find_if(
      kTypeRows, [&](const TypeRow& row) { return static_cast<std::int32_t>(row.type) == number; });
  return found == kTypeRows.end() ? nullptr : found;
}

class PairReader {
 public:
  explicit PairReader(GgufCursor& cursor) : cursor_(cursor) {}

  Result<GgufPair> read() {
    cursor_.set_place({});
    KERNELPATH_TRY(key, read_key());
    cursor_.set_place(key);
    GgufPair pair{.key = std::string(key), .value = {}};
    KERNELPATH_TRY(type, read_type());
    if (type->type == GgufType::kArray) {
      KERNELPATH_CHECK_OK(read_array(pair.value));
    } else {
      pair.value.type = pair.value.element_type = type->type;
      KERNELPATH_CHECK_OK(read_element(type->type, pair.value));
    }
    return pair;
  }

 private:
  Result<std::string_view> read_key() {
    KERNELPATH_TRY(key, cursor_.string(kMaxKeyBytes));
    if (key.empty()) return cursor_.broken("a key is empty");
    if (key.find('\0') != std::string_view::npos) {
      return cursor_.broken("a key holds a NUL byte", shorten(key, 64));
    }
    if (!seen_.insert(std::string(key)).second) {
      return cursor_.broken("the key stands twice", shorten(key, 64));
    }
    return key;
  }

  Result<const TypeRow*> read_type() {
    KERNELPATH_TRY(number, cursor_.number<std::int32_t>());
    const TypeRow* const row = find_type(number);
    if (row == nullptr) return cursor_.broken("unknown value type", std::to_string(number));
    return row;
  }

  Result<void> read_array(GgufValue& value) {
    KERNELPATH_TRY(element, read_type());
    if (element->type == GgufType::kArray) return cursor_.broken("a list of lists");
    KERNELPATH_TRY(count, cursor_.number<std::uint64_t>());
    if (count > kMaxElements) {
      return cursor_.broken(
          fmt::format("a list of {} elements; the limit is {}", count, kMaxElements));
    }
    if (count > cursor_.left() / element->bytes) {
      return cursor_.broken(fmt::format("a list of {} elements of type {}, but {} bytes are left",
                                        count, element->name, cursor_.left()));
    }
    value.type = GgufType::kArray;
    value.element_type = element->type;
    value.count = count;
    if (element->type == GgufType::kString) return skip_strings(count);
    if (count > kKeptElements)
      return cursor_.skip(static_cast<std::size_t>(count) * element->bytes);
    for (std::uint64_t i = 0; i < count; ++i) {
      KERNELPATH_CHECK_OK(read_element(element->type, value));
    }
    return {};
  }

  Result<void> skip_strings(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      KERNELPATH_CHECK_OK(cursor_.string(kMaxStringBytes));
    }
    return {};
  }

  template <class T>
  Result<void> read_integer(GgufValue& value) {
    KERNELPATH_TRY(number, cursor_.number<T>());
    value.integers.push_back(std::in_range<std::int64_t>(number)
                                 ? static_cast<std::int64_t>(number)
                                 : std::numeric_limits<std::int64_t>::max());
    return {};
  }

  template <class T>
  Result<void> read_real(GgufValue& value) {
    KERNELPATH_TRY(number, cursor_.number<T>());
    value.reals.push_back(static_cast<double>(number));
    return {};
  }

  Result<void> read_bool(GgufValue& value) {
    KERNELPATH_TRY(byte, cursor_.number<std::uint8_t>());
    value.integers.push_back(byte != 0 ? 1 : 0);
    return {};
  }

  Result<void> read_text(GgufValue& value) {
    KERNELPATH_TRY(text, cursor_.string(kMaxStringBytes));
    value.text = text;
    return {};
  }

  Result<void> read_element(GgufType type, GgufValue& value) {
    switch (type) {
      case GgufType::kUint8:
        return read_integer<std::uint8_t>(value);
      case GgufType::kInt8:
        return read_integer<std::int8_t>(value);
      case GgufType::kUint16:
        return read_integer<std::uint16_t>(value);
      case GgufType::kInt16:
        return read_integer<std::int16_t>(value);
      case GgufType::kUint32:
        return read_integer<std::uint32_t>(value);
      case GgufType::kInt32:
        return read_integer<std::int32_t>(value);
      case GgufType::kUint64:
        return read_integer<std::uint64_t>(value);
      case GgufType::kInt64:
        return read_integer<std::int64_t>(value);
      case GgufType::kFloat32:
        return read_real<float>(value);
      case GgufType::kFloat64:
        return read_real<double>(value);
      case GgufType::kBool:
        return read_bool(value);
      case GgufType::kString:
        return read_text(value);
      case GgufType::kArray:
        break;
    }
    return cursor_.broken("a list of lists");
  }

  GgufCursor& cursor_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

std::string_view gguf_type_name(GgufType type) {
  const TypeRow* const row = find_type(static_cast<std::int32_t>(type));
  return row == nullptr ? std::string_view("unknown") : row->name;
}

Result<std::vector<GgufPair>> read_gguf_pairs(GgufCursor& cursor, std::int64_t count) {
  std::vector<GgufPair> pairs;
  pairs.reserve(static_cast<std::size_t>(count));
  PairReader reader(cursor);
  for (std::int64_t i = 0; i < count; ++i) {
    KERNELPATH_TRY(pair, reader.read());
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

}  // namespace kernelpath::checkpoint
