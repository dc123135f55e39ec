#pragma once

#include "base/result.h"
#include "engines/vllm/model_registry.h"
#include "engines/vllm/profile.h"
#include "engines/vllm/setting_table.h"

#include <memory>
#include <string>
#include <string_view>

namespace kernelpath::engines::vllm {

// Everything that was extracted from one release.
struct ReleaseTables {
  const Profile& profile;
  const ModelRegistry& registry;
  const SettingTable& settings;
};

// The embedded tables of a version of built_in_versions().
ReleaseTables built_in_tables(std::string_view version);

// Tables that were read from a folder.
struct LoadedTables {
  Profile profile;
  ModelRegistry registry;
  SettingTable settings;
  [[nodiscard]] ReleaseTables view() const { return {profile, registry, settings}; }
};

// Reads backends.json, priorities.json, mla_prefill.json, registry.json and settings.json of
// `folder`. Errors: kInputMissing for a table that is not there, kInputSchema for a broken one, for
// a schema that this build does not read and for tables of different versions.
Result<std::unique_ptr<LoadedTables>> load_tables(const std::string& folder);

}  // namespace kernelpath::engines::vllm
