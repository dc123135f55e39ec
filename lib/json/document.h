#pragma once

#include "base/result.h"
#include "json/value.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::json {

// Something in a file that the Python engines read otherwise than a strict JSON reader would.
struct Warning {
  std::string code;     // "JSON-BOM", "JSON-DUPLICATE-KEY", "JSON-NONFINITE" …
  std::string where;    // JSON pointer, or line:column
  std::string message;  // names the key and both values
};

struct Limits {
  std::size_t max_bytes = std::size_t{16} << 20;
  int max_depth = 64;
  std::size_t max_members = 1'000'000;  // keys and list entries in the whole document
};

struct Position {
  std::uint32_t line = 0;    // from 1
  std::uint32_t column = 0;  // from 1, in bytes
};

// Line and column of a byte of `text`.
Position position_in(std::string_view text, std::size_t offset);

// A parsed file and its text. Reading validates all of it, also what no rule uses.
struct Document {
  std::string file;  // as the user named it
  std::string text;  // without a byte-order mark
  Value root;
  std::vector<Warning> warnings;

  [[nodiscard]] Position position(std::uint32_t offset) const;
};

// Reads JSON in the dialect of Python's json module (UTF-8; a byte-order mark, bare NaN and
// Infinity, integers of any length and repeated keys are accepted). `file` is used in errors only.
// Errors: kInputLimit, kInputEncoding, kInputJson, kInputKind (HTML, Git LFS pointer).
Result<Document> parse(std::string text, std::string file, const Limits& limits = {});

// The same, and the top level must be an object.
Result<Document> parse_object(std::string text, std::string file, const Limits& limits = {});

// Follows an RFC 6901 pointer ("/text_config/num_hidden_layers"); null pointer if it leads nowhere.
const Value* resolve_pointer(const Value& root, std::string_view pointer);

// One step of a pointer, escaped ("~" → "~0", "/" → "~1").
std::string pointer_token(std::string_view key);

}  // namespace kernelpath::json
