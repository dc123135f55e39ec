#include "json/writer.h"
#include "report/diff.h"
#include "report/diff_summary.h"
#include "report/json_parts.h"
#include "report/memory.h"

namespace kernelpath::report {
namespace {

using json::Writer;

void write_side(Writer& w, std::string_view name, const engines::Resolution& resolution) {
  w.key(name).begin_object();
  w.member("engine", resolution.engine).member("version", resolution.version);
  w.member("status", engines::status_name(resolution.status));
  if (resolution.error) {
    w.key("error").begin_object();
    w.member("type", resolution.error->type).member("code", resolution.error->code);
    w.member("message", resolution.error->message);
    w.end_object();
  }
  w.end_object();
}

void write_answer(Writer& w, const DiffAnswer& answer) {
  w.begin_object();
  w.member("model", answer.model).member("path", answer.path).member("device", answer.device);
  write_side(w, "from", answer.from);
  write_side(w, "to", answer.to);
  w.key("differences").begin_array();
  for (const engines::Difference& difference : answer.differences) {
    w.begin_object().member("aspect", difference.aspect);
    if (!difference.where.empty()) w.member("where", difference.where);
    w.member("from", difference.from).member("to", difference.to);
    write_strings(w, "rules", difference.rules);
    w.end_object();
  }
  w.end_array();
  w.key("memory").begin_array();
  for (const AccountDifference& row : account_differences(answer.from.memory, answer.to.memory)) {
    w.begin_object().member("figure", row.figure).member("cause", row.cause);
    w.member("from_bytes", row.from_bytes).member("to_bytes", row.to_bytes);
    w.end_object();
  }
  w.end_array().end_object();
}

void write_header(Writer& w, const Tool& tool) {
  w.member("schema", kDiffSchema).member("schema_version", kDiffSchemaVersion);
  w.key("tool").begin_object();
  w.member("name", tool.name).member("version", tool.version);
  w.end_object();
}

void write_summary(Writer& w, const std::vector<DiffAnswer>& answers) {
  const DiffSummary summary = summarise(answers);
  w.key("summary").begin_object();
  w.member("models", static_cast<std::int64_t>(summary.models));
  w.member("unchanged", static_cast<std::int64_t>(summary.unchanged));
  w.member("unchanged_but_form", static_cast<std::int64_t>(summary.unchanged_but_form));
  w.key("aspects").begin_object();
  for (const AspectCount& count : summary.aspects) {
    w.member(count.aspect, static_cast<std::int64_t>(count.models));
  }
  w.end_object().key("changes").begin_array();
  for (const SharedChange& change : summary.changes) {
    w.begin_object().member("aspect", change.aspect);
    if (!change.where.empty()) w.member("where", change.where);
    w.member("from", change.from).member("to", change.to);
    write_strings(w, "rules", change.rules);
    write_strings(w, "models", change.models);
    w.end_object();
  }
  w.end_array().end_object();
}

void write_document(Writer& w, const Tool& tool, const std::vector<DiffAnswer>& answers) {
  w.begin_object();
  write_header(w, tool);
  w.key("models").begin_array();
  for (const DiffAnswer& answer : answers) write_answer(w, answer);
  w.end_array();
  write_summary(w, answers);
  w.end_object();
}

}  // namespace

std::string diff_json(const Tool& tool, const std::vector<DiffAnswer>& answers) {
  Writer w;
  write_document(w, tool, answers);
  return w.take(2) + "\n";
}

std::string diff_json_line(const Tool& tool, const std::vector<DiffAnswer>& answers) {
  Writer w;
  write_document(w, tool, answers);
  return w.take(0);
}

std::string diff_jsonl(const Tool& tool, const std::vector<DiffAnswer>& answers) {
  Writer header;
  header.begin_object();
  write_header(header, tool);
  header.end_object();
  std::string out = header.take(0) + "\n";
  for (const DiffAnswer& answer : answers) {
    Writer line;
    write_answer(line, answer);
    out += line.take(0) + "\n";
  }
  return out;
}

}  // namespace kernelpath::report
