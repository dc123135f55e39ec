#include "engines/vllm/model_registry.h"

#include "base/assert.h"
#include "engines/table_header.h"
#include "engines/tables.h"
#include "engines/vllm/profile.h"
#include "engines/vllm/table_fields.h"
#include "json/document.h"

#include <algorithm>
#include <mutex>

namespace kernelpath::engines::vllm {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Result<void> read_text(const JsonFields& info, std::string_view name, std::string& value) {
  KERNELPATH_TRY(text, info.optional_string(name));
  if (text) value = std::move(*text);
  return {};
}

Result<void> read_flag(const JsonFields& info, std::string_view name, bool& value) {
  KERNELPATH_TRY(flag, info.boolean_or(name, value));
  value = flag;
  return {};
}

// Adds what the object states to `info`, which holds the defaults.
Result<void> read_info(const JsonFields& fields, ModelInfo& info) {
  KERNELPATH_CHECK_OK(read_text(fields, "attn_type", info.attention_type));
  KERNELPATH_CHECK_OK(read_text(fields, "default_seq_pooling_type", info.default_seq_pooling_type));
  KERNELPATH_CHECK_OK(read_flag(fields, "is_text_generation_model", info.is_text_generation));
  KERNELPATH_CHECK_OK(read_flag(fields, "is_pooling_model", info.is_pooling));
  KERNELPATH_CHECK_OK(read_flag(fields, "supports_multimodal", info.supports_multimodal));
  KERNELPATH_CHECK_OK(read_flag(fields, "has_inner_state", info.has_inner_state));
  KERNELPATH_CHECK_OK(read_flag(fields, "is_attention_free", info.is_attention_free));
  KERNELPATH_CHECK_OK(read_flag(fields, "is_hybrid", info.is_hybrid));
  KERNELPATH_CHECK_OK(read_flag(fields, "supports_pp", info.supports_pp));
  return read_flag(fields, "supports_mamba_prefix_caching", info.supports_mamba_prefix_caching);
}

Result<ArchitectureRow> read_architecture(const JsonFields& row, const ModelInfo& defaults) {
  ArchitectureRow out{.info = defaults};
  KERNELPATH_TRY(architecture, row.string("architecture"));
  KERNELPATH_TRY(module, row.string("module"));
  KERNELPATH_TRY(class_name, row.string("class"));
  KERNELPATH_TRY(categories, row.strings("categories"));
  KERNELPATH_TRY(info, row.object("info"));
  KERNELPATH_TRY(defined_as, info.optional_string("defined_as"));
  KERNELPATH_TRY(missing, info.optional_string("missing"));
  KERNELPATH_CHECK_OK(read_info(info, out.info));
  KERNELPATH_TRY(builds, row.strings("builds"));
  KERNELPATH_CHECK_OK(read_flag(row, "delegates", out.delegates));
  out.builds = std::move(builds);
  out.architecture = std::move(architecture);
  out.module = std::move(module);
  out.class_name = defined_as.value_or(class_name);
  out.table_class = std::move(class_name);
  out.categories = std::move(categories);
  out.missing = missing.value_or("");
  return out;
}

Result<void> read_pairs(const JsonFields& table, std::string_view name, Pairs& pairs) {
  KERNELPATH_TRY(rows, table.optional_string_map(name));
  pairs = std::move(rows);
  return {};
}

Result<void> read_suffixes(const JsonFields& table, ModelRegistry& registry) {
  KERNELPATH_TRY(rows, table.objects("suffixes"));
  for (const JsonFields& row : rows) {
    KERNELPATH_TRY(suffix, row.string("suffix"));
    KERNELPATH_TRY(runner, row.string("runner"));
    KERNELPATH_TRY(convert, row.string("convert"));
    registry.suffixes.push_back(
        {.suffix = std::move(suffix), .runner = std::move(runner), .convert = std::move(convert)});
  }
  return {};
}

Result<void> read_transformers(const JsonFields& table, ModelRegistry& registry) {
  KERNELPATH_TRY(library, table.object("transformers"));
  KERNELPATH_TRY(compatible, library.strings("backend_compatible"));
  KERNELPATH_TRY(incompatible, library.strings("incompatible"));
  for (std::string& name : compatible) registry.transformers.emplace(std::move(name), true);
  for (std::string& name : incompatible) registry.transformers.emplace(std::move(name), false);
  return {};
}

struct BuiltIn {
  std::once_flag once;
  ModelRegistry registry;
};

std::string embedded_registry(std::string_view version) {
  const std::string path = "vllm-" + std::string(version) + "/registry.json";
  const auto files = embedded_tables();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const EmbeddedFile& file) { return file.path == path; });
  KERNELPATH_ASSERT(found != files.end());
  return std::string(found->content);
}

}  // namespace

const ArchitectureRow* ModelRegistry::find(std::string_view architecture) const {
  const auto found =
      std::find_if(architectures.begin(), architectures.end(),
                   [&](const ArchitectureRow& row) { return row.architecture == architecture; });
  return found == architectures.end() ? nullptr : &*found;
}

Result<ModelRegistry> parse_registry(std::string text, const std::string& file) {
  KERNELPATH_TRY(document, json::parse_object(std::move(text), file));
  KERNELPATH_TRY(table,
                 JsonFields::of(document.root, {.code = ErrorCode::kInputSchema, .file = file}));
  KERNELPATH_CHECK_OK(check_table_header(table, "vllm", "registry"));
  ModelRegistry registry;
  ModelInfo defaults;
  KERNELPATH_TRY(info_defaults, table.object("info_defaults"));
  KERNELPATH_CHECK_OK(read_info(info_defaults, defaults));
  KERNELPATH_TRY(rows, table.objects("architectures"));
  for (const JsonFields& row : rows) {
    KERNELPATH_TRY(architecture, read_architecture(row, defaults));
    registry.architectures.push_back(std::move(architecture));
  }
  KERNELPATH_CHECK_OK(read_pairs(table, "previously_supported", registry.previously_supported));
  KERNELPATH_CHECK_OK(read_pairs(table, "out_of_tree", registry.out_of_tree));
  KERNELPATH_CHECK_OK(read_pairs(table, "hooks", registry.hooks));
  KERNELPATH_CHECK_OK(read_suffixes(table, registry));
  KERNELPATH_CHECK_OK(read_transformers(table, registry));
  return registry;
}

const ModelRegistry& built_in_registry(std::string_view version) {
  static std::vector<BuiltIn> registries(built_in_versions().size());
  const auto versions = built_in_versions();
  const auto found = std::find(versions.begin(), versions.end(), version);
  KERNELPATH_ASSERT(found != versions.end());
  BuiltIn& entry = registries[static_cast<std::size_t>(found - versions.begin())];
  std::call_once(entry.once, [&] {
    auto parsed = parse_registry(embedded_registry(version),
                                 "vllm-" + std::string(version) + "/registry.json");
    KERNELPATH_ASSERT(parsed.has_value());
    entry.registry = std::move(*parsed);
  });
  return entry.registry;
}

}  // namespace kernelpath::engines::vllm
