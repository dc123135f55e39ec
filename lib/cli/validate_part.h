#pragma once

#include "cli/validate_judge.h"
#include "report/validate_document.h"

namespace kernelpath::cli {

// What is reported of one engine: its own findings, and those of the rules that all engines share.
struct EnginePart {
  report::EngineFindings own = {};
  report::EngineFindings shared = {};
};

// Judges the combination by all rules, the engine's own refusal and what of `command` (may be a
// null pointer) became no argument. Only rules that count are left.
EnginePart engine_part(const EngineCombination& combination, const JudgedEngine& judged,
                       const features::CommandReading* command, const LoadedModel* model);

}  // namespace kernelpath::cli
