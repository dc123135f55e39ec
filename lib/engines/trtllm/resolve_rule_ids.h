#pragma once

#include <string_view>

// Ids of the decisions that choose a model class, as the engine's recorded answers write them;
// those of the registry are in registry/rule_ids.h. A step of a Resolution carries the id with
// "TRT-" before it.
namespace kernelpath::engines::trtllm::rule {

// Architecture → class.
inline constexpr std::string_view kNoArch = "R0-NO-ARCH";
inline constexpr std::string_view kArch0 = "R1-ARCH0";
inline constexpr std::string_view kMmEncoder = "R2-MM-ENCODER";
inline constexpr std::string_view kEagle3Rewrite = "R3-EAGLE3-REWRITE";
inline constexpr std::string_view kV2TargetWins = "R4-V2-TARGET-WINS";

// Selection of a modeling_v2 target.
inline constexpr std::string_view kV2Off = "V2-OFF";
inline constexpr std::string_view kV2NoArch = "V2-NO-ARCH";
inline constexpr std::string_view kV2NoRouter = "V2-NO-ROUTER";
inline constexpr std::string_view kV2NoTarget = "V2-NO-TARGET";
inline constexpr std::string_view kV2OutOfBounds = "V2-OUT-OF-BOUNDS";
inline constexpr std::string_view kV2Target = "V2-TARGET";

// from_config.
inline constexpr std::string_view kBuildEncoder = "F1-BUILD-ENCODER";
inline constexpr std::string_view kSkipWeights = "F2-SKIP-WEIGHTS-IN-INIT";
inline constexpr std::string_view kNoTargetRequireRaise = "F3-NOTARGET-REQUIRE-RAISE";
inline constexpr std::string_view kNoTargetAutoFallback = "F4-NOTARGET-AUTO-FALLBACK";

// Codes of what the engine raises.
inline constexpr std::string_view kUnknownArch = "UNKNOWN-ARCH";
inline constexpr std::string_view kUnknownMmEncoder = "UNKNOWN-MM-ENCODER";
inline constexpr std::string_view kNoArchitectures = "NO-ARCHITECTURES";
inline constexpr std::string_view kV2RequireNoRouter = "V2-REQUIRE-NO-ROUTER";
inline constexpr std::string_view kV2RequireNoTarget = "V2-REQUIRE-NO-TARGET";
inline constexpr std::string_view kV2RequireOutOfBounds = "V2-REQUIRE-OUT-OF-BOUNDS";
inline constexpr std::string_view kNoTargetRequire = "NOTARGET-REQUIRE";
inline constexpr std::string_view kArchitectureNotProvided = "ARCHITECTURE-NOT-PROVIDED";
inline constexpr std::string_view kUnknownModelArchitecture = "UNKNOWN-MODEL-ARCHITECTURE";
inline constexpr std::string_view kGemma4NeedsTransformers = "GEMMA4-NEEDS-NEWER-TRANSFORMERS";
inline constexpr std::string_view kMissingDependency = "MISSING-DEPENDENCY";
inline constexpr std::string_view kAttributeError = "ATTRIBUTE-ERROR";
inline constexpr std::string_view kImportError = "P1-ATTRIBUTEERROR-BECOMES-IMPORTERROR";
inline constexpr std::string_view kNoAttribute = "P3-NO-ATTRIBUTE";
inline constexpr std::string_view kVisionWithoutModel = "VISION-ENCODER-WITHOUT-MODEL";
inline constexpr std::string_view kProviderStart = "PROVIDER-START-FAILED";

}  // namespace kernelpath::engines::trtllm::rule
