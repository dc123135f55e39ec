#include "report/validate_document.h"
#include "report/validate_markup.h"

#include <fmt/format.h>

namespace kernelpath::report {
namespace {

constexpr std::string_view kHead =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<title>llm-validate</title>\n<style>\n"
    "body{font-family:sans-serif;max-width:75em;margin:2em auto;padding:0 1em}\n"
    "table{border-collapse:collapse;width:100%}\n"
    "th,td{border:1px solid #bbb;padding:.3em .5em;text-align:left;vertical-align:top}\n"
    ".error{background:#fdd}.warn{background:#ffe9c4}.note{background:#eef}.ok{background:#dfd}\n"
    "</style>\n</head>\n<body>\n";

void append_row(std::string& out, const EngineFindings& engine, const ReportedFinding& reported) {
  const features::Finding& finding = reported.finding;
  out += fmt::format(
      "<tr><td>{}</td><td "
      "class=\"{}\">{}{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}{}</td></tr>\n",
      escape_markup(engine.engine), level_word(finding.level), level_word(finding.level),
      reported.known ? " (known)" : "", escape_markup(finding.id), escape_markup(finding.message),
      escape_markup(reported.place.shown), escape_markup(finding.fix),
      reported.suggestion.empty() ? "" : "<br>change: " + escape_markup(reported.suggestion));
}

void append_input(std::string& out, const ValidatedInput& input) {
  out += fmt::format(
      "<h2>{} on {}</h2>\n<table>\n<tr><th>engine</th><th>level</th><th>rule</th>"
      "<th>what</th><th>at</th><th>do</th></tr>\n",
      escape_markup(input.model.empty() ? "Combination" : input.model),
      escape_markup(input.device));
  for (const EngineFindings& engine : input.engines) {
    if (engine.findings.empty()) {
      out += fmt::format(
          "<tr><td>{}</td><td class=\"ok\">ok</td><td></td><td>{}</td><td></td>"
          "<td></td></tr>\n",
          escape_markup(engine.engine), escape_markup(engine.summary));
    }
    for (const ReportedFinding& finding : engine.findings) append_row(out, engine, finding);
  }
  out += "</table>\n";
}

}  // namespace

std::string validate_html(const ValidateReport& report) {
  std::string out(kHead);
  out += "<h1>llm-validate</h1>\n";
  for (const ValidatedInput& input : report.inputs) append_input(out, input);
  const FindingCounts counts = count_findings(report);
  out += fmt::format("<p>{} error, {} warn, {} note, {} in the baseline</p>\n", counts.error,
                     counts.warn, counts.note, counts.known);
  return out + "</body>\n</html>\n";
}

}  // namespace kernelpath::report
