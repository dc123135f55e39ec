#pragma once

#include "base/result.h"
#include "engines/vllm/backend_table.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::engines::vllm {

// "0.25.1".
struct Release {
  int major = 0;
  int minor = 0;
  int patch = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): the 0 that it generates is no pointer
  friend auto operator<=>(const Release&, const Release&) = default;
};

// What decides between orders of backends.
enum class Fact : std::uint8_t {
  kQuantizedKv,
  kFewHeads,  // at most Priorities::few_heads_at_most query heads, if their number is known
  kNonCausal,
  kHeadSize512,
  kMmPrefix,
  kSparse,
  kMla,
  kKvConnector,
  kAiterMla,
  kAiterMha,
  kAiterFound,
  kAiterRdna,
};

// An order of backends, and the facts that it holds for; exactly one row fits a machine.
struct PriorityRow {
  std::vector<std::pair<Fact, bool>> when;
  std::vector<std::string> order;
};

// The rows of some device generations (major numbers of the compute capability).
struct PriorityEntry {
  std::vector<std::int64_t> majors;
  std::vector<PriorityRow> rows;
};

struct Priorities {
  std::int64_t few_heads_at_most = 0;
  std::vector<PriorityEntry> plain;
  std::vector<PriorityEntry> mla;
  std::vector<PriorityEntry> vision;  // of vision encoders
  std::vector<PriorityRow> rocm;
};

// Sizes of a multi-head latent attention layer: without rope, with rope, values.
struct MlaDims {
  std::int64_t nope = 0;
  std::int64_t rope = 0;
  std::int64_t value = 0;
  friend bool operator==(const MlaDims&, const MlaDims&) = default;
};

// What a prefill backend needs installed.
enum class PrefillNeeds : std::uint8_t {
  kNothing,
  kFlashAttnFunction,  // any GPU platform has it; on AMD an installed flash-attn
  kFlashInfer,
  kTokenspeed,
  kAiter,
  kZentorch,
};

struct PrefillBackend {
  std::string name;
  std::string path;  // empty: it must be registered before use
  std::string class_name;
  std::string reported_name;
  std::vector<std::string> dtypes;
  std::vector<CapabilityRange> capabilities;
  bool mi300_only = false;  // the capability does not count, the AMD generation does
  PrefillNeeds needs = PrefillNeeds::kNothing;
  std::optional<std::vector<MlaDims>> dims;  // nothing: any
  bool names_dims = false;                   // its refusal lists the dimensions it takes
  bool names_package = false;                // its refusal says what to install
  bool refuses_batch_invariance = false;
};

struct PrefillOrder {
  std::optional<MlaDims> dims;  // nothing: all others
  std::vector<std::string> order;
};

struct PrefillEntry {
  std::vector<std::int64_t> majors;
  std::vector<PrefillOrder> rows;
};

// The tables of vLLM's attention backends at one version. Classes point into the profile, so it
// does not move.
struct Profile {
  Profile() = default;
  ~Profile() = default;
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  Profile(Profile&&) = default;
  Profile& operator=(Profile&&) = default;

  std::string version;
  Release release;
  std::vector<KvDtype> kv_dtypes;
  std::deque<BackendClass> classes;
  std::deque<BackendClass> layer_classes;      // of layers that no selector serves
  std::vector<BackendMember> members;          // in the enum's order
  std::vector<std::string> layouts;            // of the enum of layouts (since 0.33)
  std::vector<std::string> layout_preference;  // where no backend has one
  // The order of [layers, blocks, heads, tokens, content] in memory, of each layout.
  std::vector<StrideOrder> layout_orders;
  Priorities priorities;
  std::vector<PrefillBackend> prefill_backends;  // in the enum's order
  std::vector<PrefillEntry> prefill_orders;

  [[nodiscard]] bool at_least(int major, int minor) const {
    return release >= Release{.major = major, .minor = minor, .patch = 0};
  }
  // Attention backends only; null pointer for an unknown name. Any case is the caller's business.
  [[nodiscard]] const BackendMember* find_member(std::string_view name) const;
  // By the name of the class ("GDNAttentionBackend"); null pointer for others.
  [[nodiscard]] const BackendClass* find_layer_class(std::string_view class_name) const;
  [[nodiscard]] const PrefillBackend* find_prefill_backend(std::string_view name) const;
  [[nodiscard]] const KvDtype* find_kv_dtype(std::string_view name) const;
  [[nodiscard]] bool is_quantized(std::string_view kv_dtype) const;
};

// The texts of one version's tables, each with the name that errors give it.
struct ProfileTexts {
  std::string backends;
  std::string priorities;
  std::string mla_prefill;
};

// Reads the tables. `folder` is used in errors only. Errors: kInputSchema for a broken table, an
// unknown schema version or a rule that this build does not have; what json::parse refuses.
Result<Profile> parse_profile(ProfileTexts texts, const std::string& folder);

// The versions that the build embedded, oldest first.
std::span<const std::string> built_in_versions();

// The embedded profile of a version of built_in_versions(). Parsed at the first call; safe from
// several threads.
const Profile& built_in_profile(std::string_view version);

// "0.25.1" → {0, 25, 1}; nothing for anything else.
std::optional<Release> parse_release(std::string_view text);

}  // namespace kernelpath::engines::vllm
