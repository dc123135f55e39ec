#pragma once

#include "base/result.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace kernelpath::checkpoint {

// Members that the JSON of a header or an index may have: a model of 200 000 tensors has two
// million keys and list entries.
inline constexpr std::size_t kMaxMembers = 4'000'000;

// A checkpoint file that is not what its format asks for. `where`: a tensor, a key, a byte offset.
inline Unexpected broken_file(std::string file, std::string_view where, std::string message,
                              std::string value = {}) {
  return fail(Error{.code = ErrorCode::kCheckpoint,
                    .message = std::move(message),
                    .file = std::move(file),
                    .where = std::string(where),
                    .value = std::move(value)});
}

}  // namespace kernelpath::checkpoint
