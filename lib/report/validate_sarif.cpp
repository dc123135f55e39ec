#include "features/rule_table.h"
#include "json/writer.h"
#include "report/validate_document.h"

#include <map>

namespace kernelpath::report {
namespace {

using json::Writer;

constexpr std::string_view kSarifSchema =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

std::string_view sarif_level(features::Level level) {
  switch (level) {
    case features::Level::kError:
      return "error";
    case features::Level::kWarn:
      return "warning";
    default:
      return "note";
  }
}

void write_text(Writer& w, std::string_view key, std::string_view text) {
  w.key(key).begin_object().member("text", text).end_object();
}

// A path as a URI reference: what is not allowed there, and what would end it, is escaped.
std::string uri_of(const std::string& path) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  static constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/+@=,";
  std::string out;
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4U];
    out += kHex[byte & 0xFU];
  }
  return out;
}

// The rules of every table used, each once, and their places in the list.
class SarifRules {
 public:
  explicit SarifRules(const ValidateReport& report) {
    for (const ValidatedInput& input : report.inputs) {
      for (const EngineFindings& engine : input.engines) add_table(engine.engine);
    }
  }

  void write(Writer& w) const {
    w.key("rules").begin_array();
    for (const auto& [engine, rule] : rules_) write_rule(w, engine, *rule);
    w.end_array();
  }

  std::optional<std::int64_t> index(const std::string& id) const {
    const auto found = index_.find(id);
    if (found == index_.end()) return std::nullopt;
    return found->second;
  }

 private:
  void add_table(const std::string& engine) {
    const features::RuleTable* const table = features::find_rule_table(engine);
    if (table == nullptr) return;
    for (const features::Rule& rule : table->rules) {
      if (rule.level == features::Level::kDerive || index_.contains(rule.id)) continue;
      index_.emplace(rule.id, static_cast<std::int64_t>(rules_.size()));
      rules_.emplace_back(engine, &rule);
    }
  }

  static void write_rule(Writer& w, const std::string& engine, const features::Rule& rule) {
    w.begin_object();
    w.member("id", rule.id);
    write_text(w, "shortDescription", rule.message.source());
    write_text(w, "fullDescription", rule.why);
    write_text(w, "help", rule.fix.source());
    if (!rule.issue.empty()) w.member("helpUri", rule.issue);
    w.key("defaultConfiguration").begin_object();
    w.member("level", sarif_level(rule.level));
    w.end_object();
    w.key("properties").begin_object();
    w.member("engine", engine);
    w.member("stage", features::stage_name(rule.stage));
    w.member("source", rule.source.project + " " + rule.source.file + " " + rule.source.version);
    w.end_object();
    w.end_object();
  }

  std::vector<std::pair<std::string, const features::Rule*>> rules_;
  std::map<std::string, std::int64_t> index_;
};

void write_location(Writer& w, const FindingPlace& place) {
  w.key("locations").begin_array();
  if (!place.file.empty() || !place.shown.empty()) {
    w.begin_object();
    if (!place.file.empty()) {
      w.key("physicalLocation").begin_object();
      w.key("artifactLocation").begin_object().member("uri", uri_of(place.file)).end_object();
      if (place.position && place.position->line > 0) {
        w.key("region").begin_object();
        w.member("startLine", static_cast<std::int64_t>(place.position->line));
        w.member("startColumn", static_cast<std::int64_t>(place.position->column));
        w.end_object();
      }
      w.end_object();
    }
    if (!place.shown.empty()) {
      w.key("logicalLocations").begin_array().begin_object();
      w.member("fullyQualifiedName", place.shown).member("kind", "parameter");
      w.end_object().end_array();
    }
    w.end_object();
  }
  w.end_array();
}

void write_result(Writer& w, const SarifRules& rules, const ValidatedInput& input,
                  const EngineFindings& engine, const ReportedFinding& reported) {
  const features::Finding& finding = reported.finding;
  w.begin_object();
  w.member("ruleId", finding.id);
  if (const auto index = rules.index(finding.id)) w.member("ruleIndex", *index);
  w.member("level", sarif_level(finding.level));
  std::string text = engine.engine + ": " + finding.message;
  if (!finding.fix.empty()) text += ". Do: " + finding.fix;
  write_text(w, "message", text);
  write_location(w, reported.place);
  w.key("partialFingerprints").begin_object();
  w.member("kernelpath/v1", fingerprint(engine, input.model, reported));
  w.end_object();
  if (reported.known) w.member("baselineState", "unchanged");
  w.key("properties").begin_object();
  w.member("engine", engine.engine);
  if (!engine.version.empty()) w.member("version", engine.version);
  if (!input.model.empty()) w.member("model", input.model);
  if (!reported.suggestion.empty()) w.member("suggestion", reported.suggestion);
  w.end_object();
  w.end_object();
}

}  // namespace

std::string validate_sarif(const ValidateReport& report) {
  const SarifRules rules(report);
  Writer w;
  w.begin_object();
  w.member("$schema", kSarifSchema).member("version", "2.1.0");
  w.key("runs").begin_array().begin_object();
  w.key("tool").begin_object().key("driver").begin_object();
  w.member("name", report.tool.name).member("version", report.tool.version);
  rules.write(w);
  w.end_object().end_object();
  w.key("results").begin_array();
  for (const ValidatedInput& input : report.inputs) {
    for (const EngineFindings& engine : input.engines) {
      for (const ReportedFinding& finding : engine.findings) {
        write_result(w, rules, input, engine, finding);
      }
    }
  }
  w.end_array();
  w.member("columnKind", "unicodeCodePoints");
  w.end_object().end_array();
  w.end_object();
  return w.take(2) + "\n";
}

}  // namespace kernelpath::report
