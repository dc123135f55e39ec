#include "engines/trtllm/profile.h"

#include "base/assert.h"
#include "base/text.h"
#include "engines/json_fields.h"
#include "engines/table_header.h"
#include "engines/tables.h"
#include "json/document.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace kernelpath::engines::trtllm {
namespace {

constexpr std::string_view kFolder = "trtllm-2026-11";
constexpr std::string_view kTable = "registry.json";

// What the recording calls the builder of a mode; the engine's own function names were not read.
constexpr std::string_view kBuilderPrefix = "builtin_builder_";

Result<ArchitectureRow> read_architecture(const JsonFields& row) {
  KERNELPATH_TRY(architecture, row.string("architecture"));
  KERNELPATH_TRY(module, row.string("module"));
  KERNELPATH_TRY(class_name, row.optional_string("class"));
  KERNELPATH_TRY(established_by, row.string("class_established_by"));
  KERNELPATH_TRY(kinds, row.strings("kinds"));
  KERNELPATH_TRY(sources, row.strings("sources"));
  ArchitectureRow out = {.architecture = std::move(architecture),
                         .module = std::move(module),
                         .class_name = std::move(class_name),
                         .established_by = std::move(established_by),
                         .kinds = std::move(kinds),
                         .sources = std::move(sources),
                         .vision_encoder = std::nullopt};
  const json::Value* vision = row.value().find_non_null("vision_encoder");
  if (vision == nullptr) return out;
  KERNELPATH_TRY(encoder, row.object("vision_encoder"));
  KERNELPATH_TRY(encoder_class, encoder.string("class"));
  KERNELPATH_TRY(base_class, encoder.optional_string("base_class"));
  out.vision_encoder = ArchitectureRow::VisionEncoder{.class_name = std::move(encoder_class),
                                                      .base_class = std::move(base_class)};
  return out;
}

Result<void> read_architectures(const JsonFields& table, Profile& profile) {
  KERNELPATH_TRY(rows, table.objects("architectures"));
  for (const JsonFields& row : rows) {
    KERNELPATH_TRY(architecture, read_architecture(row));
    if (!profile.index.architectures.add(architecture.architecture, architecture.module)) {
      return fail(row.error("architecture", "a second row for this architecture"));
    }
    profile.architectures.push_back(std::move(architecture));
  }
  return {};
}

// A JSON object whose members are the rows, key → module.
Result<void> read_index(const JsonFields& table, std::string_view name,
                        registry::IndexTable& index) {
  if (table.find(name) == nullptr) return fail(table.error(name, "missing, expected an object"));
  KERNELPATH_TRY(rows, table.optional_string_map(name));
  for (auto& [key, module] : rows) index.add(std::move(key), std::move(module));
  return {};
}

Result<ModelingV2Target> read_target(const JsonFields& row) {
  KERNELPATH_TRY(name, row.string("name"));
  KERNELPATH_TRY(architecture, row.string("architecture"));
  KERNELPATH_TRY(module, row.string("module"));
  KERNELPATH_TRY(world_size, row.integer("world_size"));
  KERNELPATH_TRY(shape, row.object("shape"));
  KERNELPATH_TRY(num_hidden_layers, shape.integer("num_hidden_layers"));
  KERNELPATH_TRY(hidden_size, shape.integer("hidden_size"));
  KERNELPATH_TRY(num_local_experts, shape.integer("num_local_experts"));
  const json::Value* capability = row.find("capability");
  if (capability == nullptr || !capability->is_array() || capability->items().size() != 2 ||
      !capability->items()[0].is_integer() || !capability->items()[1].is_integer()) {
    return fail(row.error("capability", "expected a list of two integers, major and minor"));
  }
  return ModelingV2Target{
      .name = std::move(name),
      .architecture = std::move(architecture),
      .module = std::move(module),
      .capability = {.major = static_cast<int>(capability->items()[0].as_integer()),
                     .minor = static_cast<int>(capability->items()[1].as_integer())},
      .num_hidden_layers = num_hidden_layers,
      .hidden_size = hidden_size,
      .num_local_experts = num_local_experts,
      .world_size = world_size};
}

Result<void> read_modeling_v2(const JsonFields& table, ModelingV2Table& out) {
  KERNELPATH_TRY(v2, table.object("modeling_v2"));
  KERNELPATH_TRY(package, v2.string("package"));
  out.package = std::move(package);
  KERNELPATH_CHECK_OK(read_index(v2, "routers", out.routers));
  KERNELPATH_TRY(rows, v2.objects("targets"));
  for (const JsonFields& row : rows) {
    KERNELPATH_TRY(target, read_target(row));
    out.targets.push_back(std::move(target));
  }
  return {};
}

Result<void> read_lists(const JsonFields& table, Profile& profile) {
  KERNELPATH_TRY(modes, table.strings("spec_modes_without_builder"));
  profile.spec_modes_without_builder = std::move(modes);
  KERNELPATH_TRY(not_generative, table.strings("not_generative_architectures"));
  profile.not_generative = std::move(not_generative);
  KERNELPATH_TRY(types, table.objects("autoconfig_model_types"));
  for (const JsonFields& row : types) {
    KERNELPATH_TRY(model_type, row.string("model_type"));
    KERNELPATH_TRY(config_class, row.string("config_class"));
    profile.config_types.push_back({std::move(model_type), std::move(config_class)});
  }
  KERNELPATH_TRY(outside, table.objects("outside_the_index"));
  for (const JsonFields& row : outside) {
    KERNELPATH_TRY(architecture, row.string("architecture"));
    KERNELPATH_TRY(module, row.optional_string("module"));
    KERNELPATH_TRY(evidence, row.string("evidence"));
    profile.outside_the_index.push_back(
        {std::move(architecture), std::move(module), std::move(evidence)});
  }
  return {};
}

void register_architecture(const ArchitectureRow& row, Profile& profile) {
  auto& registrations = profile.modules[profile.index.full_name(row.module)];
  registrations.push_back({.kind = registry::Kind::kModelClass,
                           .key = row.architecture,
                           .name = row.class_name.value_or(std::string(registry::kUnestablished))});
  if (!row.vision_encoder) return;
  registrations.push_back({.kind = registry::Kind::kVisionEncoder,
                           .key = row.architecture,
                           .name = row.vision_encoder->class_name,
                           .base_class = row.vision_encoder->base_class});
}

// What each module does when it is imported. The order inside a module is that of the tables.
void fill_modules(Profile& profile) {
  const registry::StaticIndex& index = profile.index;
  for (const ArchitectureRow& row : profile.architectures) register_architecture(row, profile);
  for (const auto& [name, module] : index.classes.rows()) profile.modules[index.full_name(module)];
  for (const auto& [type, module] : index.model_types.rows()) {
    profile.modules[index.full_name(module)];
  }
  for (const auto& [mode, module] : index.spec_modes.rows()) {
    profile.modules[index.full_name(module)].push_back(
        {.kind = registry::Kind::kDraftBuilder,
         .key = mode,
         .name = std::string(kBuilderPrefix) + mode});
  }
  for (const ModelingV2Target& target : profile.modeling_v2.targets) {
    profile.modules[target.module].push_back(
        {.kind = registry::Kind::kModelClass, .key = target.name, .name = target.name});
  }
}

Result<Profile> read_profile(const JsonFields& table) {
  Profile profile;
  KERNELPATH_CHECK_OK(check_table_header(table, "trtllm", "registry"));
  KERNELPATH_TRY(version, table.string("version"));
  profile.version = std::move(version);
  KERNELPATH_TRY(prefix, table.string("module_prefix"));
  if (!std::string_view(prefix).ends_with(".") || prefix.size() < 2) {
    return fail(table.error("module_prefix", "expected a package name and a dot"));
  }
  profile.index.package = prefix.substr(0, prefix.size() - 1);
  KERNELPATH_TRY(sources, read_table_sources(table));
  profile.sources = std::move(sources);
  KERNELPATH_CHECK_OK(read_architectures(table, profile));
  KERNELPATH_CHECK_OK(read_index(table, "class_to_module", profile.index.classes));
  KERNELPATH_CHECK_OK(
      read_index(table, "multimodal_model_type_to_module", profile.index.model_types));
  KERNELPATH_CHECK_OK(read_index(table, "spec_mode_to_module", profile.index.spec_modes));
  KERNELPATH_CHECK_OK(read_modeling_v2(table, profile.modeling_v2));
  KERNELPATH_CHECK_OK(read_lists(table, profile));
  fill_modules(profile);
  return profile;
}

// The table is part of this program and a test reads it: a missing or broken one is a bug.
Profile parse_embedded() {
  const std::string path = std::string(kFolder) + "/" + std::string(kTable);
  const std::span<const EmbeddedFile> files = embedded_tables();
  const auto file = std::find_if(files.begin(), files.end(), [&](const EmbeddedFile& candidate) {
    return candidate.path == path;
  });
  KERNELPATH_ASSERT(file != files.end());
  Result<Profile> profile = parse_profile(std::string(file->content), path);
  KERNELPATH_ASSERT(profile.has_value());
  return std::move(*profile);
}

}  // namespace

const ArchitectureRow* Profile::find_architecture(std::string_view architecture) const {
  for (const ArchitectureRow& row : architectures) {
    if (row.architecture == architecture) return &row;
  }
  return nullptr;
}

const OutsideRow* Profile::find_outside(std::string_view architecture) const {
  for (const OutsideRow& row : outside_the_index) {
    if (row.architecture == architecture) return &row;
  }
  return nullptr;
}

registry::BuiltInModules built_in_modules(const Profile& profile) {
  registry::BuiltInModules modules;
  for (const auto& [module, registrations] : profile.modules) {
    if (!profile.index.is_built_in(module)) continue;
    modules.emplace_back(module.substr(profile.index.package.size() + 1), registrations);
  }
  return modules;
}

const Profile& built_in_profile() {
  static const Profile profile = parse_embedded();
  return profile;
}

Result<Profile> parse_profile(std::string text, const std::string& file) {
  KERNELPATH_TRY(document, json::parse_object(std::move(text), file));
  KERNELPATH_TRY(table, JsonFields::of(document.root, {ErrorCode::kInputSchema, file}));
  return read_profile(table);
}

Result<Profile> load_profile(const std::string& folder) {
  const std::filesystem::path base(folder);
  const std::array<std::filesystem::path, 2> candidates = {base / kFolder / kTable, base / kTable};
  for (const std::filesystem::path& candidate : candidates) {
    std::error_code ignored;
    if (!std::filesystem::exists(candidate, ignored)) continue;
    std::ifstream stream(candidate, std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(stream), {});
    if (stream.bad() || !stream.is_open()) {
      return fail({.code = ErrorCode::kInputPermission,
                   .message = "the table cannot be read",
                   .file = candidate.string()});
    }
    return parse_profile(std::move(text), candidate.string());
  }
  return fail({.code = ErrorCode::kInputMissing,
               .message = "neither " + candidates[0].string() + " nor " + candidates[1].string(),
               .file = folder,
               .hint = "--profile-dir takes a folder that scripts/extract-profile wrote"});
}

}  // namespace kernelpath::engines::trtllm
