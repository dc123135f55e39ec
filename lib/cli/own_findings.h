#pragma once

#include "engines/engine.h"
#include "engines/resolution.h"
#include "features/command_line.h"
#include "features/rule.h"
#include "report/validate_document.h"

#include <string>
#include <string_view>
#include <vector>

// Findings that come from no rule table: what an engine's resolution refuses or changes, and what
// of an engine's command line did not become an argument.

namespace kernelpath::cli {

// Adds the engine's refusal and its warnings to `findings`, unless one of these or of the `shared`
// ones says the same already.
void add_resolution_findings(const engines::Engine& engine, const engines::Resolution& resolution,
                             const report::EngineFindings& shared,
                             report::EngineFindings& findings);

std::vector<report::ReportedFinding> command_findings(const features::CommandReading& command);

// The rules behind command_findings().
std::vector<const features::Rule*> command_rules();

}  // namespace kernelpath::cli
