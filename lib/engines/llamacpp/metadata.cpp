// Source: llama.cpp 0c1e5709, src/llama-model-loader.cpp.
#include "engines/llamacpp/metadata.h"

#include <fmt/format.h>

namespace kernelpath::engines::llamacpp {
namespace {

using checkpoint::GgufType;
using checkpoint::GgufValue;

const GgufValue* find(const Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? nullptr : &found->second;
}

ReadResult broken(std::string message) { return {.error = std::move(message)}; }

ReadResult missing(bool required, std::string_view what, const std::string& key) {
  if (!required) return {};
  return broken(fmt::format("{} not found in model: {}", what, key));
}

ReadResult wrong_type(const std::string& key, GgufType got, GgufType wanted) {
  return broken(fmt::format("key {} has wrong type {} but expected type {}", key,
                            checkpoint::gguf_type_name(got), checkpoint::gguf_type_name(wanted)));
}

ReadResult take(const GgufValue& value) {
  return {.found = true, .error = {}, .integers = value.integers, .reals = value.reals};
}

// Signed and unsigned 32-bit lists are taken for each other.
bool element_fits(GgufType element, GgufType wanted) {
  if (element == GgufType::kInt32) return wanted == GgufType::kUint32;
  return element == wanted;
}

bool readable_element(GgufType element, bool with_bool) {
  switch (element) {
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kUint64:
    case GgufType::kFloat32:
    case GgufType::kString:
      return true;
    case GgufType::kBool:
      return with_bool;
    default:
      return false;
  }
}

ReadResult read_elements(const GgufValue& value, const std::string& key, GgufType type,
                         bool with_bool) {
  const GgufType element = value.element_type;
  if (!readable_element(element, with_bool)) {
    return broken(fmt::format("{} is not a string/float32/uint32/int32/uint64 array", key));
  }
  const bool is_flags = element == GgufType::kBool && type == GgufType::kUint32;
  if (!is_flags && !element_fits(element, type)) {
    return broken(fmt::format("{} has wrong array element type {}", key,
                              checkpoint::gguf_type_name(element)));
  }
  ReadResult out = take(value);
  for (std::int64_t& number : out.integers) {
    if (element == GgufType::kInt32) number = static_cast<std::uint32_t>(number);
  }
  return out;
}

}  // namespace

ReadResult read_scalar(const Metadata& metadata, const std::string& key, GgufType type,
                       bool required) {
  const GgufValue* value = find(metadata, key);
  if (value == nullptr) return missing(required, "key", key);
  if (value->type != type) return wrong_type(key, value->type, type);
  return take(*value);
}

ReadResult read_scalar_or_array(const Metadata& metadata, const std::string& key, GgufType type,
                                bool required, std::int64_t length) {
  const GgufValue* value = find(metadata, key);
  if (value == nullptr) return missing(required, "key", key);
  if (value->is_array()) {
    if (value->count != static_cast<std::uint64_t>(length)) {
      return broken(fmt::format("key {} has wrong array length; expected {}, got {}", key, length,
                                value->count));
    }
    return read_elements(*value, key, type, true);
  }
  ReadResult out = read_scalar(metadata, key, type, required);
  const auto count = static_cast<std::size_t>(length);
  if (!out.integers.empty()) out.integers.resize(count, out.integers.front());
  if (!out.reals.empty()) out.reals.resize(count, out.reals.front());
  return out;
}

ReadResult read_array(const Metadata& metadata, const std::string& key, GgufType type,
                      bool required, std::int64_t limit) {
  const GgufValue* value = find(metadata, key);
  if (value == nullptr || !value->is_array()) return missing(required, "array key", key);
  if (value->count <= static_cast<std::uint64_t>(limit)) {
    return read_elements(*value, key, type, true);
  }
  ReadResult out = read_elements(*value, key, type, true);
  if (!out.error.empty()) return out;
  return broken(fmt::format("array length {} for key {} exceeds max {}", value->count, key, limit));
}

ReadResult read_list(const Metadata& metadata, const std::string& key, GgufType type,
                     bool required) {
  const GgufValue* value = find(metadata, key);
  if (value == nullptr || !value->is_array()) return missing(required, "array key", key);
  return read_elements(*value, key, type, false);
}

ReadResult read_count(const Metadata& metadata, const std::string& key, bool required) {
  const GgufValue* value = find(metadata, key);
  if (value == nullptr) return missing(required, "key", key);
  if (!value->is_array()) return wrong_type(key, value->type, GgufType::kArray);
  return {.found = true, .error = {}, .integers = {static_cast<std::int64_t>(value->count)}};
}

}  // namespace kernelpath::engines::llamacpp
