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

void write_text_if(Writer& w, std::string_view key, std::string_view text) {
  if (!text.empty()) write_text(w, key, text);
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

// The rules of every table used, and those of findings that stand in none (what a resolution
// refuses, what is wrong with a command line), each once, and their places in the list.
class SarifRules {
 public:
  explicit SarifRules(const ValidateReport& report) {
    for (const ValidatedInput& input : report.inputs) {
      for (const EngineFindings& engine : input.engines) add_table(engine.engine);
    }
    for (const ValidatedInput& input : report.inputs) {
      for (const EngineFindings& engine : input.engines) add_findings(engine);
    }
  }

  void write(Writer& w) const {
    w.key("rules").begin_array();
    for (const Entry& entry : rules_) write_rule(w, entry);
    w.end_array();
  }

  [[nodiscard]] std::int64_t index(const std::string& id) const { return index_.at(id); }

 private:
  struct Entry {
    std::string engine = {};
    std::string id = {};
    features::Level level = features::Level::kError;
    const features::Rule* rule = nullptr;  // null pointer: nothing more is known of it
  };

  void add(Entry entry) {
    if (!index_.emplace(entry.id, static_cast<std::int64_t>(rules_.size())).second) return;
    rules_.push_back(std::move(entry));
  }

  void add_table(const std::string& engine) {
    for (const features::RuleTable* const table : features::rule_tables(engine)) {
      for (const features::Rule& rule : table->rules) {
        if (rule.level == features::Level::kDerive) continue;
        add({.engine = engine, .id = rule.id, .level = rule.level, .rule = &rule});
      }
    }
  }

  void add_findings(const EngineFindings& engine) {
    for (const ReportedFinding& reported : engine.findings) {
      const features::Finding& finding = reported.finding;
      add({.engine = engine.engine,
           .id = finding.id,
           .level = finding.level,
           .rule = finding.rule});
    }
  }

  static void write_rule(Writer& w, const Entry& entry) {
    w.begin_object();
    w.member("id", entry.id);
    if (entry.rule != nullptr) {
      write_text_if(w, "shortDescription", entry.rule->message.source());
      write_text_if(w, "fullDescription", entry.rule->why);
      write_text_if(w, "help", entry.rule->fix.source());
      if (!entry.rule->issue.empty()) w.member("helpUri", entry.rule->issue);
    }
    w.key("defaultConfiguration").begin_object();
    w.member("level", sarif_level(entry.level));
    w.end_object();
    w.key("properties").begin_object();
    w.member("engine", entry.engine);
    if (entry.rule != nullptr) {
      const engines::Source& source = entry.rule->source;
      w.member("stage", features::stage_name(entry.rule->stage));
      w.member("source", source.project + " " + source.file + " " + source.version);
    }
    w.end_object();
    w.end_object();
  }

  std::vector<Entry> rules_;
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
  w.member("ruleIndex", rules.index(finding.id));
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
