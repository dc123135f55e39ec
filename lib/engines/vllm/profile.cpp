#include "engines/vllm/profile.h"

#include "base/assert.h"
#include "engines/json_fields.h"
#include "engines/table_header.h"
#include "engines/tables.h"
#include "engines/vllm/profile_readers.h"
#include "engines/vllm/table_fields.h"
#include "json/document.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <mutex>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kFolderPrefix = "vllm-";
constexpr std::string_view kBackendsTable = "backends";
constexpr std::string_view kPrioritiesTable = "priorities";
constexpr std::string_view kPrefillTable = "mla_prefill";

// Reads one table of the folder with `read`. The version of the first table is the profile's; the
// others must have the same.
Result<void> read_table(std::string text, const std::string& file, std::string_view name,
                        Result<void> (*read)(const JsonFields&, Profile&), Profile& profile) {
  KERNELPATH_TRY(document, json::parse_object(std::move(text), file));
  KERNELPATH_TRY(table,
                 JsonFields::of(document.root, {.code = ErrorCode::kInputSchema, .file = file}));
  KERNELPATH_CHECK_OK(check_table_header(table, "vllm", name));
  KERNELPATH_TRY(version, table.string("version"));
  const std::optional<Release> release = parse_release(version);
  if (!release) return fail(table.error("version", "expected a release such as \"0.25.1\""));
  if (!profile.version.empty() && profile.version != version) {
    return fail(table.error("version", "the folder's other tables are of " + profile.version));
  }
  profile.version = version;
  profile.release = *release;
  return read(table, profile);
}

std::string embedded_text(std::string_view version, std::string_view table) {
  const std::string path =
      std::string(kFolderPrefix) + std::string(version) + "/" + std::string(table) + ".json";
  const auto files = embedded_tables();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const EmbeddedFile& file) { return file.path == path; });
  KERNELPATH_ASSERT(found != files.end());
  return std::string(found->content);
}

// Versions of the embedded folders, oldest first.
std::vector<std::string> find_versions() {
  std::vector<std::string> versions;
  for (const EmbeddedFile& file : embedded_tables()) {
    if (!file.path.starts_with(kFolderPrefix)) continue;
    const std::string_view rest = file.path.substr(kFolderPrefix.size());
    const std::string version(rest.substr(0, rest.find('/')));
    if (std::find(versions.begin(), versions.end(), version) == versions.end()) {
      versions.push_back(version);
    }
  }
  std::sort(versions.begin(), versions.end(), [](const std::string& a, const std::string& b) {
    return parse_release(a) < parse_release(b);
  });
  return versions;
}

// One embedded version; parsed when it is first asked for.
struct BuiltIn {
  std::once_flag once;
  Profile profile;
};

}  // namespace

bool HeadSizes::accepts(std::int64_t head_size) const {
  if (min) return head_size >= *min;
  if (!listed) return true;
  return std::find(listed->begin(), listed->end(), head_size) != listed->end();
}

bool CapabilityRange::contains(hardware::Capability capability) const {
  return (!first || *first <= capability) && (!last || capability <= *last);
}

const BackendMember* Profile::find_member(std::string_view name) const {
  const auto found = std::find_if(members.begin(), members.end(), [&](const BackendMember& row) {
    return !row.mamba && row.name == name;
  });
  return found == members.end() ? nullptr : &*found;
}

const BackendClass* Profile::find_layer_class(std::string_view class_name) const {
  const auto found =
      std::find_if(layer_classes.begin(), layer_classes.end(),
                   [&](const BackendClass& row) { return row.class_name == class_name; });
  return found == layer_classes.end() ? nullptr : &*found;
}

const PrefillBackend* Profile::find_prefill_backend(std::string_view name) const {
  const auto found = std::find_if(prefill_backends.begin(), prefill_backends.end(),
                                  [&](const PrefillBackend& row) { return row.name == name; });
  return found == prefill_backends.end() ? nullptr : &*found;
}

const KvDtype* Profile::find_kv_dtype(std::string_view name) const {
  const auto found = std::find_if(kv_dtypes.begin(), kv_dtypes.end(),
                                  [&](const KvDtype& row) { return row.name == name; });
  return found == kv_dtypes.end() ? nullptr : &*found;
}

bool Profile::is_quantized(std::string_view kv_dtype) const {
  const KvDtype* row = find_kv_dtype(kv_dtype);
  return row != nullptr && row->quantized;
}

Result<Profile> parse_profile(ProfileTexts texts, const std::string& folder) {
  Profile profile;
  KERNELPATH_CHECK_OK(read_table(std::move(texts.backends), folder + "/backends.json",
                                 kBackendsTable, read_backends, profile));
  KERNELPATH_CHECK_OK(read_table(std::move(texts.priorities), folder + "/priorities.json",
                                 kPrioritiesTable, read_priorities, profile));
  KERNELPATH_CHECK_OK(read_table(std::move(texts.mla_prefill), folder + "/mla_prefill.json",
                                 kPrefillTable, read_mla_prefill, profile));
  return profile;
}

std::span<const std::string> built_in_versions() {
  static const std::vector<std::string> kVersions = find_versions();
  return kVersions;
}

const Profile& built_in_profile(std::string_view version) {
  static std::vector<BuiltIn> profiles(built_in_versions().size());
  const auto versions = built_in_versions();
  const auto found = std::find(versions.begin(), versions.end(), version);
  KERNELPATH_ASSERT(found != versions.end());
  BuiltIn& entry = profiles[static_cast<std::size_t>(found - versions.begin())];
  std::call_once(entry.once, [&] {
    auto parsed = parse_profile({.backends = embedded_text(version, kBackendsTable),
                                 .priorities = embedded_text(version, kPrioritiesTable),
                                 .mla_prefill = embedded_text(version, kPrefillTable)},
                                std::string(kFolderPrefix) + std::string(version));
    KERNELPATH_ASSERT(parsed.has_value());
    entry.profile = std::move(*parsed);
  });
  return entry.profile;
}

std::optional<Release> parse_release(std::string_view text) {
  Release release;
  const std::array<int*, 3> parts = {&release.major, &release.minor, &release.patch};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (int* part : parts) {
    if (part != parts[0]) {
      if (at == end || *at != '.') return std::nullopt;
      ++at;
    }
    const auto [next, error] = std::from_chars(at, end, *part);
    if (error != std::errc()) return std::nullopt;
    at = next;
  }
  if (at != end) return std::nullopt;
  return release;
}

}  // namespace kernelpath::engines::vllm
