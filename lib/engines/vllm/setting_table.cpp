#include "engines/vllm/setting_table.h"

#include "base/assert.h"
#include "engines/json_fields.h"
#include "engines/table_header.h"
#include "engines/tables.h"
#include "engines/vllm/profile.h"
#include "engines/vllm/table_fields.h"
#include "json/document.h"
#include "json/writer.h"

#include <algorithm>
#include <mutex>

namespace kernelpath::engines::vllm {
namespace {

// "int | None", "Optional[Literal[2, 3]]" … → what a value has to look like. Lists and other
// structures are text: they are given as JSON.
SettingType type_of(std::string_view declared) {
  constexpr std::string_view kNone = " | None";
  if (declared.ends_with(kNone)) declared.remove_suffix(kNone.size());
  if (declared == "bool") return SettingType::kBool;
  if (declared == "int") return SettingType::kInteger;
  if (declared == "float") return SettingType::kNumber;
  return SettingType::kText;
}

// Union[Literal[…], str] takes other words as well; an enum of backends gets new members from
// plugins.
bool is_open(std::string_view declared) {
  return declared.starts_with("Union[") || declared.find("str | ") != std::string_view::npos ||
         declared.find("Enum") != std::string_view::npos || declared.starts_with("list[");
}

std::string plain_text(const json::Value& value) {
  return value.is_string() ? value.as_string() : json::to_text(value);
}

Result<SettingInfo> read_setting(const JsonFields& row, std::string_view prefix) {
  KERNELPATH_TRY(name, row.string("name"));
  KERNELPATH_TRY(type, row.string("type"));
  SettingInfo info{.name = std::string(prefix) + name,
                   .type = type_of(type),
                   .type_text = type,
                   .default_value = "null",
                   .open = is_open(type),
                   .map = type.starts_with("dict")};
  if (const json::Value* value = row.find("default")) info.default_value = plain_text(*value);
  const json::Value* choices = row.find("choices");
  if (choices != nullptr && choices->is_array()) {
    for (const json::Value& choice : choices->items()) info.choices.push_back(plain_text(choice));
  }
  return info;
}

Result<void> read_settings(const JsonFields& table, SettingTable& out) {
  KERNELPATH_TRY(arguments, table.objects("arguments"));
  for (const JsonFields& row : arguments) {
    KERNELPATH_TRY(info, read_setting(row, ""));
    out.add(std::move(info));
  }
  KERNELPATH_TRY(nested, table.object("nested"));
  for (const json::Member& member : nested.value().members()) {
    KERNELPATH_TRY(fields, nested.objects(member.key));
    for (const JsonFields& row : fields) {
      KERNELPATH_TRY(info, read_setting(row, member.key + "."));
      out.add(std::move(info));
    }
  }
  return {};
}

std::string embedded_settings(std::string_view version) {
  const std::string path = "vllm-" + std::string(version) + "/settings.json";
  const auto files = embedded_tables();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const EmbeddedFile& file) { return file.path == path; });
  KERNELPATH_ASSERT(found != files.end());
  return std::string(found->content);
}

struct BuiltIn {
  std::once_flag once;
  SettingTable table;
};

}  // namespace

void SettingTable::add(SettingInfo info) {
  index_.emplace(info.name, rows_.size());
  rows_.push_back(std::move(info));
}

const SettingInfo* SettingTable::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  if (found != index_.end()) return &rows_[found->second];
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return nullptr;
  const auto map = index_.find(std::string(name.substr(0, dot)));
  return map != index_.end() && rows_[map->second].map ? &rows_[map->second] : nullptr;
}

std::vector<std::string_view> SettingTable::names() const {
  std::vector<std::string_view> out;
  out.reserve(rows_.size());
  for (const SettingInfo& row : rows_) out.push_back(row.name);
  return out;
}

Result<SettingTable> parse_settings(std::string text, const std::string& file) {
  KERNELPATH_TRY(document, json::parse_object(std::move(text), file));
  KERNELPATH_TRY(table,
                 JsonFields::of(document.root, {.code = ErrorCode::kInputSchema, .file = file}));
  KERNELPATH_CHECK_OK(check_table_header(table, "vllm", "settings"));
  KERNELPATH_TRY(version, table.string("version"));
  KERNELPATH_TRY(variables, table.strings("variables"));
  SettingTable out(std::move(version), std::move(variables));
  KERNELPATH_CHECK_OK(read_settings(table, out));
  return out;
}

const SettingTable& built_in_settings(std::string_view version) {
  static std::vector<BuiltIn> tables(built_in_versions().size());
  const auto versions = built_in_versions();
  const auto found = std::find(versions.begin(), versions.end(), version);
  KERNELPATH_ASSERT(found != versions.end());
  BuiltIn& entry = tables[static_cast<std::size_t>(found - versions.begin())];
  std::call_once(entry.once, [&] {
    auto parsed = parse_settings(embedded_settings(version),
                                 "vllm-" + std::string(version) + "/settings.json");
    KERNELPATH_ASSERT(parsed.has_value());
    entry.table = std::move(*parsed);
  });
  return entry.table;
}

}  // namespace kernelpath::engines::vllm
