#include "cli/report_files.h"

#include "base/build_info.h"
#include "base/text.h"
#include "cli/terminal.h"

#include <algorithm>
#include <unistd.h>

namespace kernelpath::cli {
namespace {

struct Target {
  std::string format;
  std::string path;  // "-": standard output
};

Target read_target(const Program& program, const std::string& text,
                   const std::string& default_format) {
  const std::size_t colon = text.find(':');
  const std::vector<std::string> formats = split(program.formats, '|');
  const std::string prefix = text.substr(0, colon);
  const bool names_format = colon != std::string::npos && colon + 1 < text.size() &&
                            std::find(formats.begin(), formats.end(), prefix) != formats.end();
  if (names_format) return {prefix, text.substr(colon + 1)};
  return {default_format, text};
}

report::View view_for(const Invocation& invocation, report::View view, bool to_stdout) {
  const bool terminal = to_stdout && is_terminal(STDOUT_FILENO);
  view.color =
      use_color(invocation.settings.text(Option::kColor), invocation.environment, terminal);
  const std::int64_t terminal_columns = to_stdout ? terminal_width(STDOUT_FILENO) : 0;
  view.width = invocation.settings.integer(Option::kWidth).value_or(terminal_columns);
  return view;
}

ReportFile make_report(const Invocation& invocation, const Target& target,
                       const report::View& view) {
  const bool to_stdout = target.path == "-";
  return {.format = target.format,
          .output = to_stdout ? Output::standard_output() : Output::file(target.path),
          .view = view_for(invocation, view, to_stdout)};
}

std::string answer_text(ReportFile& report, const report::Tool& tool,
                        const report::InputAnswer& answer) {
  std::string out;
  if (report.format == "jsonl") {
    if (!report.begun) out = report::inspect_jsonl_header(tool);
    return out + report::inspect_jsonl_line(answer, report.view);
  }
  if (report.begun) out = "\n";
  if (report.format == "md") return out + report::inspect_markdown(answer, report.view);
  return out + report::inspect_text(answer, report.view);
}

}  // namespace

report::Tool tool_of(const Program& program) {
  return {std::string(program.name), std::string(build_info().version)};
}

std::vector<ReportFile> make_reports(const Invocation& invocation, const report::View& view) {
  const std::string& format = invocation.settings.text(Option::kFormat);
  std::vector<std::string> targets = invocation.settings.list(Option::kOutput);
  if (targets.empty()) targets = {format + ":-"};
  std::vector<ReportFile> out;
  out.reserve(targets.size());
  for (const std::string& text : targets) {
    out.push_back(make_report(invocation, read_target(invocation.program, text, format), view));
  }
  return out;
}

Result<void> add_answer(std::vector<ReportFile>& reports, const report::Tool& tool,
                        const report::InputAnswer& answer) {
  for (ReportFile& report : reports) {
    if (report.format == "json") continue;
    KERNELPATH_CHECK_OK(report.output.write(answer_text(report, tool, answer)));
    report.begun = true;
  }
  return {};
}

Result<void> finish_reports(std::vector<ReportFile>& reports, const report::Tool& tool,
                            const std::vector<report::InputAnswer>& answers) {
  if (answers.empty()) return {};
  for (ReportFile& report : reports) {
    if (report.format == "json") {
      KERNELPATH_CHECK_OK(report.output.write(report::inspect_json(tool, answers, report.view)));
    }
    KERNELPATH_CHECK_OK(report.output.commit());
  }
  return {};
}

}  // namespace kernelpath::cli
