#include "features/schema.h"

#include "base/text.h"
#include "features/enum_names.h"

#include <array>

namespace kernelpath::features {
namespace {

constexpr std::array<std::string_view, 7> kTypeNames = {"any",    "bool", "integer", "number",
                                                        "string", "list", "object"};
constexpr std::array<std::string_view, 5> kKindNames = {"argument", "environment", "device",
                                                        "model", "derived"};

}  // namespace

std::string_view field_type_name(FieldType type) {
  return kTypeNames[static_cast<std::size_t>(type)];
}

std::optional<FieldType> find_field_type(std::string_view name) {
  return find_name<FieldType>(kTypeNames, name);
}

std::optional<FieldKind> find_field_kind(std::string_view name) {
  return find_name<FieldKind>(kKindNames, name);
}

bool Schema::add(FieldInfo field) {
  std::vector<std::string> names = field.aliases;
  names.push_back(field.name);
  const bool taken = std::any_of(names.begin(), names.end(),
                                 [this](const std::string& name) { return index_.contains(name); });
  if (taken) return false;
  const auto index = static_cast<std::uint32_t>(fields_.size());
  for (std::string& name : names) index_.emplace(std::move(name), index);
  fields_.push_back(std::move(field));
  return true;
}

std::optional<std::uint32_t> Schema::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> Schema::near(std::string_view name) const {
  std::vector<std::string_view> names;
  names.reserve(fields_.size());
  for (const FieldInfo& field : fields_) names.push_back(field.name);
  return near_matches(name, names);
}

}  // namespace kernelpath::features
