#include "report/validate_document.h"
#include "report/validate_markup.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::report {
namespace {

bool is_failure(const ReportedFinding& finding, features::Level fail_on) {
  return !finding.known && finding.finding.level >= fail_on;
}

std::string details(const ReportedFinding& reported) {
  std::string out = reported.finding.message + "\n";
  if (!reported.place.shown.empty()) out += "at: " + reported.place.shown + "\n";
  if (!reported.finding.fix.empty()) out += "do: " + reported.finding.fix + "\n";
  if (!reported.suggestion.empty()) out += "change: " + reported.suggestion + "\n";
  return out;
}

void append_case(std::string& out, const EngineFindings& engine, const ReportedFinding& reported,
                 features::Level fail_on) {
  const features::Finding& finding = reported.finding;
  out += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"0\">\n",
                     escape_markup(engine.engine), escape_markup(finding.id));
  if (is_failure(reported, fail_on)) {
    out += fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                       features::level_name(finding.level), escape_markup(finding.message),
                       escape_markup(details(reported)));
  } else {
    out += fmt::format(
        "      <system-out>{}</system-out>\n",
        escape_markup(std::string(features::level_name(finding.level)) +
                      (reported.known ? " (in the baseline): " : ": ") + details(reported)));
  }
  out += "    </testcase>\n";
}

// An engine without findings is a case that passed: a report without it could not be told from one
// that never asked.
void append_engine(std::string& out, const EngineFindings& engine, features::Level fail_on) {
  if (engine.findings.empty()) {
    out += fmt::format("    <testcase classname=\"{}\" name=\"rules\" time=\"0\"/>\n",
                       escape_markup(engine.engine));
  }
  for (const ReportedFinding& finding : engine.findings) {
    append_case(out, engine, finding, fail_on);
  }
}

struct SuiteCounts {
  std::size_t tests = 0;
  std::size_t failures = 0;
};

SuiteCounts count(const ValidatedInput& input, features::Level fail_on) {
  SuiteCounts out;
  for (const EngineFindings& engine : input.engines) {
    out.tests += std::max<std::size_t>(1, engine.findings.size());
    for (const ReportedFinding& finding : engine.findings) {
      out.failures += is_failure(finding, fail_on) ? 1 : 0;
    }
  }
  return out;
}

}  // namespace

std::string validate_junit(const ValidateReport& report, features::Level fail_on) {
  SuiteCounts all;
  std::string suites;
  for (const ValidatedInput& input : report.inputs) {
    const SuiteCounts counts = count(input, fail_on);
    all.tests += counts.tests;
    all.failures += counts.failures;
    suites += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"0\" "
        "time=\"0\">\n",
        escape_markup(input.model.empty() ? "combination" : input.model), counts.tests,
        counts.failures);
    for (const EngineFindings& engine : input.engines) append_engine(suites, engine, fail_on);
    suites += "  </testsuite>\n";
  }
  return fmt::format(
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
             "<testsuites name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" time=\"0\">\n",
             escape_markup(report.tool.name), all.tests, all.failures) +
         suites + "</testsuites>\n";
}

}  // namespace kernelpath::report
