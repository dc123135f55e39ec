#pragma once

#include "base/result.h"
#include "cli/output.h"
#include "cli/program.h"
#include "report/inspect.h"

#include <string>
#include <vector>

namespace kernelpath::cli {

// The program and its version, as every document names them.
report::Tool tool_of(const Program& program);

// One report of a run: a format and where it goes.
struct ReportFile {
  std::string format;  // "text", "json", "jsonl", "md"
  Output output;
  report::View view;
  bool begun = false;
};

// Standard output, or one file for each -o [FORMAT:]FILE.
std::vector<ReportFile> make_reports(const Invocation& invocation, const report::View& view);

// Prints one answer to every report; "json" keeps it for finish_reports().
Result<void> add_answer(std::vector<ReportFile>& reports, const report::Tool& tool,
                        const report::InputAnswer& answer);

// Writes the documents that hold all answers and puts files in their places. Without answers
// nothing appears.
Result<void> finish_reports(std::vector<ReportFile>& reports, const report::Tool& tool,
                            const std::vector<report::InputAnswer>& answers);

}  // namespace kernelpath::cli
