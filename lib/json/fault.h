#pragma once

#include "base/error.h"
#include "json/document.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kernelpath::json {

struct Fault {
  ErrorCode code = ErrorCode::kInputJson;
  std::size_t offset = 0;  // within the text
  std::string message;
};

// Walks a text by the grammar that parse() accepts and describes the first thing wrong with it:
// syntax, encoding, depth, count. Nothing if the text is good. Takes no memory but one byte a
// level.
//
// simdjson tells that a document is broken, but only roughly where; this is the slow, exact answer,
// asked only once a document was refused, and before simdjson allocates for a very large one.
// `skipped_bytes` stood before the text in the file (a byte-order mark) and count in messages.
std::optional<Fault> find_fault(std::string_view text, const Limits& limits,
                                std::size_t skipped_bytes = 0);

}  // namespace kernelpath::json
