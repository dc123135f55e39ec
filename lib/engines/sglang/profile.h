#pragma once

#include "base/result.h"
#include "json/value.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::sglang {

// One field of the engine's server arguments.
struct ArgumentRow {
  std::string name = {};
  std::string type = {};
  json::Value default_value = {};
  json::Value fallback = {};  // what a reader gets while the field is unset
  std::vector<std::string> choices = {};
  std::vector<std::string> flags = {};  // of the command line; empty: not an option
  bool takes_value = true;
  bool many = false;

  [[nodiscard]] bool is_flag() const { return !takes_value; }
};

struct ArchitectureRow {
  std::string architecture = {};
  std::string module = {};  // "sglang.srt.models.llama"
};

struct BackendRow {
  std::string name = {};
  std::vector<std::string> builds = {};   // what its factory returns, as written
  std::vector<std::string> refuses = {};  // refusals in the factory
};

using Names = std::vector<std::string>;

struct QuantizationLists {
  Names methods = {};  // on CUDA, CPU and XPU "mxfp4" is one more
  Names rocm = {};
  Names optimized = {};
  Names requantization = {};
  std::map<std::string, Names, std::less<>> compatible =
      {};  // asked for → stated by the checkpoint
};

// The tables of one release. Source: data/engines/sglang-<version>, read from the package.
struct Profile {
  std::string version = {};
  std::vector<ArchitectureRow> architectures = {};           // sorted by name
  std::map<std::string, Names, std::less<>> overrides = {};  // architecture → rules, in order
  std::map<std::string, json::Value, std::less<>> constant_overrides = {};
  std::map<std::string, std::string, std::less<>> draft_rewrites = {};
  std::map<std::string, Names, std::less<>> groups = {};
  std::map<std::string, json::Value, std::less<>> config_classes = {};  // model_type → defaults
  QuantizationLists quantization = {};
  std::vector<BackendRow> backends = {};
  std::vector<ArgumentRow> arguments = {};
  std::map<std::string, std::size_t, std::less<>> argument_index = {};

  [[nodiscard]] const ArchitectureRow* find_architecture(std::string_view name) const;
  [[nodiscard]] const ArgumentRow* find_argument(std::string_view name) const;
  [[nodiscard]] const BackendRow* find_backend(std::string_view name) const;
  // True if the list called `group` holds `name`. Asserts that the table has the list.
  [[nodiscard]] bool in_group(std::string_view group, std::string_view name) const;
  [[nodiscard]] const Names& group(std::string_view group) const;
};

bool contains(std::span<const std::string> names, std::string_view name);

struct ProfileTexts {
  std::string registry;
  std::string backends;
  std::string settings;
};

// Error kInputSchema. `folder` is used in errors only.
Result<Profile> parse_profile(ProfileTexts texts, const std::string& folder);

// The tables in this build, or those of use_profile_folder().
const Profile& built_in_profile();

// Takes the tables of `folder` in their place, for the life of the process; call it before the
// first question. Errors: kInputMissing, kInputSchema, what reading a file gives.
Result<void> use_profile_folder(const std::string& folder);

}  // namespace kernelpath::engines::sglang
