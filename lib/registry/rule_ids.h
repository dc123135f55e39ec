#pragma once

#include <string_view>

// Ids of the registry's decisions, as they stand in Event::rule. They are part of the output
// (steps of a resolution), so they never change their meaning.
namespace kernelpath::registry::rule {

// Look-up of a class.
inline constexpr std::string_view kRegistryHit = "REGISTRY-HIT";
inline constexpr std::string_view kRegistryHitVision = "REGISTRY-HIT-VISION";
inline constexpr std::string_view kExternalDeclared = "EXTERNAL-DECLARED";
inline constexpr std::string_view kIndexHit = "INDEX-HIT";
inline constexpr std::string_view kIndexMiss = "INDEX-MISS";
inline constexpr std::string_view kSpecHit = "SPEC-HIT";
inline constexpr std::string_view kSpecIndexMiss = "SPEC-INDEX-MISS";

// Loading a module.
inline constexpr std::string_view kImport = "IMPORT";
inline constexpr std::string_view kImportCached = "IMPORT-CACHED";
inline constexpr std::string_view kImportMissingWarn = "IMPORT-MISSING-WARN";

// Applying one registration.
inline constexpr std::string_view kRegSet = "REG-SET";
inline constexpr std::string_view kRegKeep = "REG-KEEP";
inline constexpr std::string_view kRegOverwrite = "REG-OVERWRITE";
inline constexpr std::string_view kSpecSet = "SPEC-SET";
inline constexpr std::string_view kSpecKeep = "SPEC-KEEP";

// Declaring external providers.
inline constexpr std::string_view kDeclare = "DECLARE";
inline constexpr std::string_view kDeclareNoop = "DECLARE-NOOP";
inline constexpr std::string_view kRebuildClear = "REBUILD-CLEAR";
inline constexpr std::string_view kReplay = "REPLAY";
inline constexpr std::string_view kReplaySkip = "REPLAY-SKIP";

// Attribute access on the package.
inline constexpr std::string_view kAttributeCached = "P0-CACHED";
inline constexpr std::string_view kAttributeCache = "P2-CACHE-GLOBAL";
inline constexpr std::string_view kSubmodule = "P4-SUBMODULE";

}  // namespace kernelpath::registry::rule
