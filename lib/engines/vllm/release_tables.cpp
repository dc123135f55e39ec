#include "engines/vllm/release_tables.h"

#include "base/file.h"

#include <utility>

namespace kernelpath::engines::vllm {
namespace {

// Twenty times the largest table of a release.
constexpr std::size_t kMaxTableBytes = 4U << 20U;

Result<std::string> read_table_text(const std::string& folder, std::string_view name) {
  Result<FileContents> file = read_file(join_path(folder, name), kMaxTableBytes);
  if (file) return std::move(file->text);
  Error error = std::move(file).error();
  if (error.code == ErrorCode::kInputMissing) {
    error.hint = "--profile-dir takes a folder that scripts/extract-profile wrote";
  }
  return fail(std::move(error));
}

}  // namespace

ReleaseTables built_in_tables(std::string_view version) {
  return {built_in_profile(version), built_in_registry(version), built_in_settings(version)};
}

Result<std::unique_ptr<LoadedTables>> load_tables(const std::string& folder) {
  KERNELPATH_TRY(backends, read_table_text(folder, "backends.json"));
  KERNELPATH_TRY(priorities, read_table_text(folder, "priorities.json"));
  KERNELPATH_TRY(mla_prefill, read_table_text(folder, "mla_prefill.json"));
  KERNELPATH_TRY(registry_text, read_table_text(folder, "registry.json"));
  KERNELPATH_TRY(settings_text, read_table_text(folder, "settings.json"));
  KERNELPATH_TRY(profile, parse_profile({.backends = std::move(backends),
                                         .priorities = std::move(priorities),
                                         .mla_prefill = std::move(mla_prefill)},
                                        folder));
  KERNELPATH_TRY(registry,
                 parse_registry(std::move(registry_text), join_path(folder, "registry.json")));
  KERNELPATH_TRY(settings,
                 parse_settings(std::move(settings_text), join_path(folder, "settings.json")));
  if (settings.version() != profile.version) {
    return fail({.code = ErrorCode::kInputSchema,
                 .message = "settings.json is of version " + settings.version() +
                            ", the folder's other tables are of " + profile.version,
                 .file = folder});
  }
  auto out = std::make_unique<LoadedTables>();
  out->profile = std::move(profile);
  out->registry = std::move(registry);
  out->settings = std::move(settings);
  return out;
}

}  // namespace kernelpath::engines::vllm
