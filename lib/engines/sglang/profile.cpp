#include "engines/sglang/profile.h"

#include "base/assert.h"
#include "base/file.h"
#include "engines/json_fields.h"
#include "engines/sglang/model_rules.h"
#include "engines/table_header.h"
#include "engines/tables.h"
#include "json/document.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::engines::sglang {
namespace {

constexpr std::string_view kFolderPrefix = "sglang-";
constexpr std::size_t kMaxTableBytes = 4U << 20U;

Result<JsonFields> open_table(const json::Value& root, const std::string& file,
                              std::string_view name) {
  KERNELPATH_TRY(table, JsonFields::of(root, {.code = ErrorCode::kInputSchema, .file = file}));
  KERNELPATH_CHECK_OK(check_table_header(table, "sglang", name));
  return table;
}

Result<void> take_version(const JsonFields& table, Profile& profile) {
  KERNELPATH_TRY(version, table.string("version"));
  if (!profile.version.empty() && profile.version != version) {
    return fail(table.error("version", "the folder's other tables are of " + profile.version));
  }
  profile.version = version;
  return {};
}

Result<std::map<std::string, Names, std::less<>>> read_lists(const JsonFields& object) {
  std::map<std::string, Names, std::less<>> lists;
  for (const json::Member& member : object.value().members()) {
    KERNELPATH_TRY(names, object.strings(member.key));
    lists[member.key] = std::move(names);
  }
  return lists;
}

std::map<std::string, json::Value, std::less<>> read_objects(const json::Value& object) {
  std::map<std::string, json::Value, std::less<>> found;
  for (const json::Member& member : object.members()) found[member.key] = member.value;
  return found;
}

Result<void> read_quantization(const JsonFields& table, QuantizationLists& lists) {
  KERNELPATH_TRY(object, table.object("quantization"));
  KERNELPATH_TRY(methods, object.strings("methods"));
  KERNELPATH_TRY(rocm, object.strings("rocm"));
  KERNELPATH_TRY(optimized, object.strings("optimized"));
  KERNELPATH_TRY(requantization, object.strings("requantization"));
  KERNELPATH_TRY(compatible, object.object("compatible"));
  KERNELPATH_TRY(pairs, read_lists(compatible));
  lists = {.methods = std::move(methods),
           .rocm = std::move(rocm),
           .optimized = std::move(optimized),
           .requantization = std::move(requantization),
           .compatible = std::move(pairs)};
  return {};
}

// A rule that the build does not have would be left out of every answer without a word.
Result<void> check_rules(const JsonFields& table, const Profile& profile) {
  for (const auto& [architecture, rules] : profile.overrides) {
    for (const std::string& rule : rules) {
      if (find_model_rule(rule) != nullptr) continue;
      return fail(table.error(
          "overrides",
          fmt::format("{} names {}, a rule that this build does not have", architecture, rule)));
    }
  }
  return {};
}

Result<void> read_registry(const JsonFields& table, Profile& profile) {
  KERNELPATH_TRY(rows, table.objects("architectures"));
  for (const JsonFields& row : rows) {
    KERNELPATH_TRY(architecture, row.string("architecture"));
    KERNELPATH_TRY(module, row.string("module"));
    profile.architectures.push_back({.architecture = architecture, .module = module});
  }
  KERNELPATH_TRY(overrides, table.object("overrides"));
  KERNELPATH_TRY(rules, read_lists(overrides));
  profile.overrides = std::move(rules);
  KERNELPATH_TRY(groups, table.object("groups"));
  KERNELPATH_TRY(lists, read_lists(groups));
  profile.groups = std::move(lists);
  KERNELPATH_TRY(rewrites, table.optional_string_map("draft_rewrites"));
  for (const auto& [from, to] : rewrites) profile.draft_rewrites[from] = to;
  KERNELPATH_TRY(constants, table.object("constant_overrides"));
  profile.constant_overrides = read_objects(constants.value());
  KERNELPATH_TRY(classes, table.object("config_classes"));
  profile.config_classes = read_objects(classes.value());
  KERNELPATH_CHECK_OK(check_rules(table, profile));
  return read_quantization(table, profile.quantization);
}

Result<void> read_backends(const JsonFields& table, Profile& profile) {
  KERNELPATH_TRY(rows, table.objects("backends"));
  for (const JsonFields& row : rows) {
    KERNELPATH_TRY(name, row.string("name"));
    KERNELPATH_TRY(builds, row.strings("builds"));
    KERNELPATH_TRY(refuses, row.strings("refuses"));
    profile.backends.push_back({.name = name, .builds = builds, .refuses = refuses});
  }
  return {};
}

json::Value member_or_null(const JsonFields& row, std::string_view name) {
  const json::Value* value = row.find(name);
  return value == nullptr ? json::Value::null() : *value;
}

Result<void> read_settings(const JsonFields& table, Profile& profile) {
  KERNELPATH_TRY(rows, table.objects("arguments"));
  for (const JsonFields& row : rows) {
    KERNELPATH_TRY(name, row.string("name"));
    KERNELPATH_TRY(type, row.string("type"));
    KERNELPATH_TRY(choices, row.optional_strings("choices"));
    KERNELPATH_TRY(flags, row.strings("flags"));
    KERNELPATH_TRY(takes_value, row.boolean_or("takes_value", true));
    KERNELPATH_TRY(many, row.boolean_or("many", false));
    profile.argument_index[name] = profile.arguments.size();
    profile.arguments.push_back({.name = name,
                                 .type = type,
                                 .default_value = member_or_null(row, "default"),
                                 .fallback = member_or_null(row, "fallback"),
                                 .choices = std::move(choices),
                                 .flags = std::move(flags),
                                 .takes_value = takes_value,
                                 .many = many});
  }
  return {};
}

Result<void> read_table(std::string text, const std::string& file, std::string_view name,
                        Result<void> (*read)(const JsonFields&, Profile&), Profile& profile) {
  KERNELPATH_TRY(document, json::parse_object(std::move(text), file));
  KERNELPATH_TRY(table, open_table(document.root, file, name));
  KERNELPATH_CHECK_OK(take_version(table, profile));
  return read(table, profile);
}

std::string embedded_text(std::string_view table) {
  const auto files = embedded_tables();
  const auto found = std::find_if(files.begin(), files.end(), [&](const EmbeddedFile& file) {
    return file.path.starts_with(kFolderPrefix) &&
           file.path.ends_with("/" + std::string(table) + ".json");
  });
  KERNELPATH_ASSERT(found != files.end());
  return std::string(found->content);
}

Profile parse_embedded() {
  auto profile = parse_profile({.registry = embedded_text("registry"),
                                .backends = embedded_text("backends"),
                                .settings = embedded_text("settings")},
                               "sglang");
  KERNELPATH_ASSERT(profile);
  return std::move(*profile);
}

Profile& current_profile() {
  static Profile profile = parse_embedded();
  return profile;
}

}  // namespace

bool contains(std::span<const std::string> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const ArchitectureRow* Profile::find_architecture(std::string_view name) const {
  const auto found = std::lower_bound(architectures.begin(), architectures.end(), name,
                                      [](const ArchitectureRow& row, std::string_view wanted) {
                                        return row.architecture < wanted;
                                      });
  return found != architectures.end() && found->architecture == name ? &*found : nullptr;
}

const ArgumentRow* Profile::find_argument(std::string_view name) const {
  const auto found = argument_index.find(name);
  return found == argument_index.end() ? nullptr : &arguments[found->second];
}

const BackendRow* Profile::find_backend(std::string_view name) const {
  const auto found = std::find_if(backends.begin(), backends.end(),
                                  [&](const BackendRow& row) { return row.name == name; });
  return found == backends.end() ? nullptr : &*found;
}

const Names& Profile::group(std::string_view group) const {
  const auto found = groups.find(group);
  KERNELPATH_ASSERT(found != groups.end());
  return found->second;
}

bool Profile::in_group(std::string_view group, std::string_view name) const {
  return contains(this->group(group), name);
}

Result<Profile> parse_profile(ProfileTexts texts, const std::string& folder) {
  Profile profile;
  KERNELPATH_CHECK_OK(read_table(std::move(texts.registry), folder + "/registry.json", "registry",
                                 read_registry, profile));
  KERNELPATH_CHECK_OK(read_table(std::move(texts.backends), folder + "/backends.json", "backends",
                                 read_backends, profile));
  KERNELPATH_CHECK_OK(read_table(std::move(texts.settings), folder + "/settings.json", "settings",
                                 read_settings, profile));
  return profile;
}

const Profile& built_in_profile() { return current_profile(); }

Result<void> use_profile_folder(const std::string& folder) {
  const auto read = [&](const std::string& name) {
    return read_file(join_path(folder, name), kMaxTableBytes);
  };
  KERNELPATH_TRY(registry, read("registry.json"));
  KERNELPATH_TRY(backends, read("backends.json"));
  KERNELPATH_TRY(settings, read("settings.json"));
  KERNELPATH_TRY(profile, parse_profile({.registry = std::move(registry.text),
                                         .backends = std::move(backends.text),
                                         .settings = std::move(settings.text)},
                                        folder));
  current_profile() = std::move(profile);
  return {};
}

}  // namespace kernelpath::engines::sglang
