#pragma once

#include "cli/program.h"
#include "report/inspect.h"
#include "report/validate_document.h"

namespace kernelpath::cli {

// Marks what --baseline has found already. Errors: kInput….
Result<void> apply_baseline_file(const Settings& settings, report::ValidateReport& report);

// 1 if there is a finding of --fail-on or worse, else 0.
int finding_code(const Settings& settings, const report::ValidateReport& report);

// Prints the report in every format asked for. GitHub's runner gets its annotations without asking.
Result<void> write_validate_reports(const Invocation& invocation, const report::View& view,
                                    const report::ValidateReport& report, int exit_code);

}  // namespace kernelpath::cli
