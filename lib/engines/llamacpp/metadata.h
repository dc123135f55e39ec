#pragma once

#include "base/result.h"
#include "checkpoint/gguf_value.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::llamacpp {

// Metadata of a model, whether a GGUF file holds it or the converter would write it.
using Metadata = std::map<std::string, checkpoint::GgufValue, std::less<>>;

// A value that was read, or the engine's own message. `found` is false where an optional key is
// absent.
struct ReadResult {
  bool found = false;
  std::string error = {};
  std::vector<std::int64_t> integers = {};
  std::vector<double> reals = {};
};

// The reads of src/llama-model-loader.cpp. Each checks presence and type as the engine does; `type`
// is the type of an element.

// get_key: a scalar of exactly that type.
ReadResult read_scalar(const Metadata& metadata, const std::string& key, checkpoint::GgufType type,
                       bool required);
// get_key_or_arr: a scalar for all of `length` entries, or a list of that length.
ReadResult read_scalar_or_array(const Metadata& metadata, const std::string& key,
                                checkpoint::GgufType type, bool required, std::int64_t length);
// get_arr into an array of fixed size: a list of at most `limit` entries.
ReadResult read_array(const Metadata& metadata, const std::string& key, checkpoint::GgufType type,
                      bool required, std::int64_t limit);
// get_arr into a list of any length; unlike the above it takes no booleans.
ReadResult read_list(const Metadata& metadata, const std::string& key, checkpoint::GgufType type,
                     bool required);
// get_arr_n: the length of a list.
ReadResult read_count(const Metadata& metadata, const std::string& key, bool required);

}  // namespace kernelpath::engines::llamacpp
