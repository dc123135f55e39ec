#pragma once

#include "features/value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kernelpath::features {

// What a field may hold, as far as expressions care. kAny is for arguments that accept several
// types; every field may also be null.
enum class FieldType : std::uint8_t { kAny, kBool, kInteger, kNumber, kString, kList, kObject };
std::string_view field_type_name(FieldType type);
std::optional<FieldType> find_field_type(std::string_view name);

// Who decides a field: what --suggest may change, and in which order it tries.
enum class FieldKind : std::uint8_t {
  kArgument,     // the user, by an option or an options file
  kEnvironment,  // what is installed, environment variables, files
  kDevice,       // the GPU
  kModel,        // the checkpoint: a fact that no suggestion changes
  kDerived,      // computed by a rule file or by the resolution of the engine
};
std::optional<FieldKind> find_field_kind(std::string_view name);

// A field that conditions may read, under its dotted name.
struct FieldInfo {
  std::string name = {};  // "kv_cache_config.dtype"
  FieldType type = FieldType::kAny;
  FieldKind kind = FieldKind::kArgument;
  Value default_value = {};               // what an unstated field reads as
  std::vector<Value> values = {};         // the names that are worth proposing; empty if open
  std::vector<std::string> aliases = {};  // other paths that state it
  std::string option = {};                // "--kv"; empty where only --set and files reach it
  std::string about = {};
  // What the common option's names are called here: "eagle3" → "Eagle3".
  std::vector<std::pair<std::string, std::string>> spellings = {};
  // The environment variable that states it, and how its text is read: a boolean is true where the
  // text is `on`; a list holds what stands between `separator`s, without blanks and empty items.
  std::string variable = {};
  std::string on = {};
  std::string separator = {};
  // Why no option of the program states it, only a question of --batch; empty: some input does.
  std::string only_batch = {};
};

// All fields of a rule table. A condition that names another field does not load.
class Schema {
 public:
  // Adds a field; false if its name or one of its aliases is taken.
  bool add(FieldInfo field);
  [[nodiscard]] const std::vector<FieldInfo>& fields() const { return fields_; }
  [[nodiscard]] const FieldInfo& field(std::uint32_t index) const { return fields_[index]; }
  [[nodiscard]] std::size_t size() const { return fields_.size(); }
  // By name or alias.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const;
  // Names near to `name`, for error messages.
  [[nodiscard]] std::vector<std::string> near(std::string_view name) const;

 private:
  std::vector<FieldInfo> fields_;
  std::unordered_map<std::string, std::uint32_t> index_;
};

}  // namespace kernelpath::features
