#include "engines/vllm/engine_rows.h"

#include "base/text.h"
#include "engines/table_list.h"
#include "engines/vllm/arguments.h"
#include "engines/vllm/contract.h"
#include "engines/vllm/packages.h"
#include "engines/vllm/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::vllm {
namespace {

std::string or_dash(std::string_view text) { return text.empty() ? "-" : std::string(text); }

std::vector<TableRow> architecture_rows(const ReleaseTables& tables) {
  std::vector<TableRow> out;
  for (const ArchitectureRow& row : tables.registry.architectures) {
    std::vector<std::string> traits;
    if (row.info.is_pooling) traits.emplace_back("pooling");
    if (row.info.is_hybrid) traits.emplace_back("hybrid");
    if (row.info.is_attention_free) traits.emplace_back("attention-free");
    if (row.info.supports_multimodal) traits.emplace_back("multimodal");
    out.push_back({row.architecture,
                   {{"module", row.module},
                    {"class", row.class_name},
                    {"categories", or_dash(join(row.categories, " "))},
                    {"traits", or_dash(join(traits, " "))},
                    {"needs", or_dash(row.missing)}}});
  }
  return out;
}

std::vector<TableRow> removed_rows(const ReleaseTables& tables) {
  std::vector<TableRow> out;
  for (const auto& [name, version] : tables.registry.previously_supported) {
    out.push_back({name, {{"last version", version}, {"plugin", "-"}}});
  }
  for (const auto& [name, plugin] : tables.registry.out_of_tree) {
    out.push_back({name, {{"last version", "-"}, {"plugin", plugin}}});
  }
  return out;
}

std::vector<TableRow> suffix_rows(const ReleaseTables& tables) {
  std::vector<TableRow> out;
  for (const SuffixRow& row : tables.registry.suffixes) {
    out.push_back({row.suffix, {{"runner", row.runner}, {"convert", row.convert}}});
  }
  return out;
}

std::vector<TableRow> dtype_rows(const ReleaseTables& tables) {
  std::vector<TableRow> out;
  const SettingInfo* info = tables.settings.find("dtype");
  if (info == nullptr) return out;
  for (const std::string& name : info->choices) {
    out.push_back({name, {{"about", name == "auto" ? "the model's" : "-"}}});
  }
  for (const std::string_view name : {"bf16", "fp16", "f16", "fp32"}) {
    out.push_back({std::string(name), {{"about", "this program's short name"}}});
  }
  return out;
}

std::vector<TableRow> kv_dtype_rows(const ReleaseTables& tables) {
  std::vector<TableRow> out;
  for (const KvDtype& row : tables.profile.kv_dtypes) {
    out.push_back({row.name,
                   {{"mode", row.quant_mode},
                    {"stored as", row.stored_as.empty() ? "the model's dtype" : row.stored_as},
                    {"bytes", row.bytes == 0 ? "-" : fmt::to_string(row.bytes)}}});
  }
  for (const std::string_view name : {"bf16", "fp16", "f16"}) {
    out.push_back({std::string(name), {{"mode", "this program's short name"}}});
  }
  return out;
}

std::vector<TableRow> package_rows(const ReleaseTables& /*tables*/) {
  std::vector<TableRow> out;
  out.reserve(kPackages.size());
  for (const PackageInfo& row : kPackages) {
    out.push_back({std::string(row.name),
                   {{"there by default", Packages{}.*(row.member) ? "yes" : "no"},
                    {"about", std::string(row.about)}}});
  }
  for (const PackageAlias& row : kPackageAliases) {
    out.push_back({std::string(row.alias),
                   {{"there by default", "-"}, {"about", "short for " + std::string(row.name)}}});
  }
  return out;
}

void append_setting(const SettingInfo& row, std::vector<TableRow>& out) {
  out.push_back({row.name,
                 {{"default", or_dash(row.default_value)},
                  {"type", row.type_text},
                  {"choices", or_dash(join(row.choices, " "))}}});
}

std::vector<TableRow> setting_rows(const ReleaseTables& tables) {
  std::vector<TableRow> out;
  for (const SettingInfo& row : tables.settings.rows()) append_setting(row, out);
  for (const SettingInfo& row : plugin_settings()) append_setting(row, out);
  return out;
}

std::vector<TableRow> variable_rows(const ReleaseTables& tables) {
  std::vector<TableRow> out;
  for (const std::string& name : tables.settings.variables()) {
    const std::string_view effect = effect_of_variable(name);
    out.push_back({name, {{"effect here", effect.empty() ? "none" : std::string(effect)}}});
  }
  return out;
}

std::string dims_text(const std::optional<std::vector<MlaDims>>& dims) {
  if (!dims) return "any";
  std::vector<std::string> parts;
  for (const MlaDims& row : *dims) {
    parts.push_back(fmt::format("({}, {}, {})", row.nope, row.rope, row.value));
  }
  return join(parts, " ");
}

std::string ranges_text(const PrefillBackend& row) {
  if (row.mi300_only) return "gfx942 gfx950";
  std::vector<std::string> parts;
  for (const CapabilityRange& range : row.capabilities) {
    const auto text = [](const std::optional<hardware::Capability>& bound) {
      return bound ? fmt::format("{}.{}", bound->major, bound->minor) : std::string();
    };
    if (!range.first && !range.last) return "any";
    parts.push_back(text(range.first) + ".." + text(range.last));
  }
  return join(parts, " ");
}

std::vector<TableRow> prefill_rows(const ReleaseTables& tables) {
  std::vector<TableRow> out;
  for (const PrefillBackend& row : tables.profile.prefill_backends) {
    out.push_back({row.name,
                   {{"class", or_dash(row.class_name)},
                    {"capabilities", or_dash(ranges_text(row))},
                    {"dtypes", or_dash(join(row.dtypes, " "))},
                    {"dims (nope, rope, v)", dims_text(row.dims)}}});
  }
  return out;
}

constexpr auto kTables = std::to_array<TableMaker<ReleaseTables>>({
    {"architectures", architecture_rows},
    {"removed-architectures", removed_rows},
    {"suffixes", suffix_rows},
    {"backends", contract_rows},
    {"priorities", priority_rows},
    {"mla-prefill-backends", prefill_rows},
    {"dtypes", dtype_rows},
    {"kv-dtypes", kv_dtype_rows},
    {"packages", package_rows},
    {"settings", setting_rows},
    {"variables", variable_rows},
});

}  // namespace

std::vector<std::string> table_kinds() { return kinds_of(kTables); }

std::vector<TableRow> table_rows(const ReleaseTables& tables, std::string_view kind) {
  return rows_of(kTables, kind, tables);
}

}  // namespace kernelpath::engines::vllm
