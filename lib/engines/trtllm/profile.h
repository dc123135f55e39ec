#pragma once

#include "base/result.h"
#include "engines/table_header.h"
#include "hardware/device.h"
#include "registry/drift.h"
#include "registry/registration.h"
#include "registry/static_index.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::trtllm {

// One row of the static architecture index, with the class that its module registers.
struct ArchitectureRow {
  std::string architecture;
  std::string module;                     // short name: "modeling_llama"
  std::optional<std::string> class_name;  // absent where no source settled it
  std::string established_by;             // "decorator", "class-index", "inferred", …
  std::vector<std::string> kinds;         // "causal_lm", "multimodal", "vision_encoder", …
  std::vector<std::string> sources;       // tags of Profile::sources
  struct VisionEncoder {
    std::string class_name;
    std::optional<std::string> base_class;
  };
  std::optional<VisionEncoder> vision_encoder;
};

// A configuration class that the package adds at import, unless the installed transformers knows
// the model_type.
struct ConfigTypeRow {
  std::string model_type;
  std::string config_class;
};

// A hand-written forward for one checkpoint, GPU architecture and parallel layout.
struct ModelingV2Target {
  std::string name;          // of its class, and the registry key
  std::string architecture;  // architectures[0] of the checkpoint
  std::string module;        // full name; external by the package boundary
  hardware::Capability capability;
  std::int64_t num_hidden_layers = 0;
  std::int64_t hidden_size = 0;
  std::int64_t num_local_experts = 0;
  std::int64_t world_size = 1;
};

struct ModelingV2Table {
  std::string package;
  registry::IndexTable routers;  // architecture → routing module, relative to the package
  std::vector<ModelingV2Target> targets;
};

// An architecture that was seen in the engine, but not in the index that was read.
struct OutsideRow {
  std::string architecture;
  std::optional<std::string> module;
  std::string evidence;
};

// The tables of TensorRT-LLM's model classes at one version.
struct Profile {
  std::string version;  // "2026-11"
  registry::StaticIndex index;
  std::vector<ArchitectureRow> architectures;
  std::vector<std::string> spec_modes_without_builder;
  std::vector<ConfigTypeRow> config_types;
  ModelingV2Table modeling_v2;
  std::vector<std::string> not_generative;  // architectures with ModelConfig.is_generation off
  std::vector<OutsideRow> outside_the_index;
  std::vector<TableSource> sources;
  // Full module name → what importing it registers, in the engine's order. Every module that a
  // table names is there, also one that registers nothing.
  std::map<std::string, std::vector<registry::Registration>, std::less<>> modules;

  // Null pointer if the index has no such row.
  [[nodiscard]] const ArchitectureRow* find_architecture(std::string_view architecture) const;
  [[nodiscard]] const OutsideRow* find_outside(std::string_view architecture) const;
};

// The built-in modules with their registrations under short names, as find_drift() wants them.
registry::BuiltInModules built_in_modules(const Profile& profile);

// The profile that the build embedded. Parsed at the first call; safe from several threads.
const Profile& built_in_profile();

// Reads a registry table. `file` is used in errors only. Error kInputSchema for broken tables and
// for a schema version that this build does not know; also what json::parse refuses.
Result<Profile> parse_profile(std::string text, const std::string& file);

// The profile of --profile-dir: FOLDER/trtllm-2026-11/registry.json, else FOLDER/registry.json.
// Errors: kInputMissing if neither is there, and those of parse_profile.
Result<Profile> load_profile(const std::string& folder);

}  // namespace kernelpath::engines::trtllm
