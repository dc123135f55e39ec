#include "json/writer.h"
#include "report/json_parts.h"
#include "report/validate_document.h"

namespace kernelpath::report {
namespace {

using json::Writer;

void write_place(Writer& w, const FindingPlace& place) {
  member_if(w, "at", place.at);
  member_if(w, "option", place.shown);
  member_if(w, "file", place.file);
  if (place.position) {
    w.member("line", static_cast<std::int64_t>(place.position->line));
    w.member("column", static_cast<std::int64_t>(place.position->column));
  }
}

void write_finding(Writer& w, const ValidatedInput& input, const EngineFindings& engine,
                   const ReportedFinding& reported) {
  const features::Finding& finding = reported.finding;
  w.begin_object();
  w.member("id", finding.id);
  w.member("level", features::level_name(finding.level));
  w.member("engine", engine.engine);
  member_if(w, "version", engine.version);
  member_if(w, "model", input.model);
  write_place(w, reported.place);
  w.member("message", finding.message);
  if (finding.rule != nullptr) {
    member_if(w, "why", finding.rule->why);
    if (!finding.rule->allowed.empty()) {
      w.key("allowed").begin_array();
      for (const std::string& name : finding.rule->allowed) w.value(name);
      w.end_array();
    }
  }
  member_if(w, "fix", finding.fix);
  member_if(w, "suggestion", reported.suggestion);
  if (!finding.effects.empty()) {
    w.key("effects").begin_object();
    for (const auto& [name, value] : finding.effects) w.member(name, value);
    w.end_object();
  }
  if (finding.rule != nullptr) {
    member_if(w, "error_type", finding.rule->error_type);
    w.member("stage", features::stage_name(finding.rule->stage));
    member_if(w, "issue", finding.rule->issue);
    write_source(w, finding.rule->source);
  }
  w.member("known", reported.known);
  w.member("fingerprint", fingerprint(engine, input.model, reported));
  w.end_object();
}

void write_header(Writer& w, const ValidateReport& report) {
  w.member("schema", kValidateSchema);
  w.member("schema_version", kValidateSchemaVersion);
  w.key("tool").begin_object();
  w.member("name", report.tool.name).member("version", report.tool.version);
  w.end_object();
}

void write_summary(Writer& w, const ValidateReport& report) {
  const FindingCounts counts = count_findings(report);
  w.key("summary").begin_object();
  w.member("error", static_cast<std::int64_t>(counts.error));
  w.member("warn", static_cast<std::int64_t>(counts.warn));
  w.member("note", static_cast<std::int64_t>(counts.note));
  w.member("known", static_cast<std::int64_t>(counts.known));
  w.end_object();
}

void write_inputs(Writer& w, const ValidateReport& report) {
  w.key("inputs").begin_array();
  for (const ValidatedInput& input : report.inputs) {
    w.begin_object();
    w.key("model");
    if (input.model.empty()) {
      w.value(nullptr);
    } else {
      w.value(input.model);
    }
    w.member("device", input.device);
    w.key("engines").begin_array();
    for (const EngineFindings& engine : input.engines) {
      w.begin_object();
      w.member("engine", engine.engine);
      member_if(w, "version", engine.version);
      w.member("verdict", level_word(worst_level(engine)));
      member_if(w, "summary", engine.summary);
      member_if(w, "suggestion", engine.suggestion);
      w.end_object();
    }
    w.end_array();
    w.end_object();
  }
  w.end_array();
}

}  // namespace

std::string validate_json(const ValidateReport& report, int indent) {
  Writer w;
  w.begin_object();
  write_header(w, report);
  write_summary(w, report);
  write_inputs(w, report);
  w.key("findings").begin_array();
  for (const ValidatedInput& input : report.inputs) {
    for (const EngineFindings& engine : input.engines) {
      for (const ReportedFinding& finding : engine.findings) {
        write_finding(w, input, engine, finding);
      }
    }
  }
  w.end_array();
  w.end_object();
  return w.take(indent) + "\n";
}

std::string validate_jsonl(const ValidateReport& report) {
  Writer header;
  header.begin_object();
  write_header(header, report);
  write_summary(header, report);
  write_inputs(header, report);
  header.end_object();
  std::string out = header.take(0) + "\n";
  for (const ValidatedInput& input : report.inputs) {
    for (const EngineFindings& engine : input.engines) {
      for (const ReportedFinding& finding : engine.findings) {
        Writer line;
        write_finding(line, input, engine, finding);
        out += line.take(0) + "\n";
      }
    }
  }
  return out;
}

}  // namespace kernelpath::report
