#include "report/validate_document.h"

#include <fmt/format.h>

namespace kernelpath::report {
namespace {

std::string_view command_of(features::Level level) {
  switch (level) {
    case features::Level::kError:
      return "error";
    case features::Level::kWarn:
      return "warning";
    default:
      return "notice";
  }
}

// What a workflow command would take as its end or as the end of a property.
std::string escape(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    if (c == '%') {
      out += "%25";
    } else if (c == '\r') {
      out += "%0D";
    } else if (c == '\n') {
      out += "%0A";
    } else if (property && c == ':') {
      out += "%3A";
    } else if (property && c == ',') {
      out += "%2C";
    } else {
      out += c;
    }
  }
  return out;
}

std::string command(const EngineFindings& engine, const ReportedFinding& reported) {
  const features::Finding& finding = reported.finding;
  std::string out = fmt::format("::{} ", command_of(finding.level));
  if (!reported.place.file.empty()) {
    out += fmt::format("file={},", escape(reported.place.file, true));
    if (reported.place.position && reported.place.position->line > 0) {
      out += fmt::format("line={},col={},", reported.place.position->line,
                         reported.place.position->column);
    }
  }
  std::string message = fmt::format("{}: {}", engine.engine, finding.message);
  if (!reported.place.shown.empty()) message += fmt::format("\nat: {}", reported.place.shown);
  if (!finding.fix.empty()) message += fmt::format("\ndo: {}", finding.fix);
  if (!reported.suggestion.empty()) message += fmt::format("\nchange: {}", reported.suggestion);
  return out + fmt::format("title={}::{}\n", escape(finding.id, true), escape(message, false));
}

}  // namespace

std::string validate_github(const ValidateReport& report) {
  std::string out;
  for (const ValidatedInput& input : report.inputs) {
    for (const EngineFindings& engine : input.engines) {
      for (const ReportedFinding& finding : engine.findings) {
        if (!finding.known) out += command(engine, finding);
      }
    }
  }
  return out;
}

}  // namespace kernelpath::report
