#pragma once

#include "base/result.h"
#include "json/document.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::features {

// An options file, read as the engines' Python reads it (yaml.safe_load: YAML 1.1).
struct YamlDocument {
  std::string file = {};
  json::Value root = json::Value::object({});  // an empty file gives an empty object
  // Where each value stands, by JSON pointer, in the order of the file.
  std::vector<std::pair<std::string, json::Position>> places = {};
  std::vector<json::Warning> warnings = {};  // repeated keys: the last one counts

  [[nodiscard]] std::optional<json::Position> position(std::string_view pointer) const;
};

// True if this build can read YAML.
bool yaml_available();

// The root must be a mapping. Errors: kUnavailable (a build without libyaml), kInputEncoding,
// kInputSchema with line:column in `where` (syntax, a tag that safe_load refuses, a second
// document, a root that is no mapping), kInputLimit (depth, aliases that expand without end).
Result<YamlDocument> parse_yaml(const std::string& text, std::string file);

// A plain scalar as YAML 1.1 resolves it: null, booleans (yes, no, on, off too), integers (0x, 0o
// as 0…, sexagesimal), floats, else a string. "1e-3" is a string, as in PyYAML: a float needs a
// dot.
json::Value resolve_plain_scalar(std::string_view text);

}  // namespace kernelpath::features
