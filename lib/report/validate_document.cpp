#include "report/validate_document.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::report {
namespace {

template <class Visit>
void each_finding(const ValidateReport& report, Visit visit) {
  for (const ValidatedInput& input : report.inputs) {
    for (const EngineFindings& engine : input.engines) {
      for (const ReportedFinding& finding : engine.findings) visit(input, engine, finding);
    }
  }
}

void add_text(std::set<std::string>& out, const json::Value* value) {
  if (value != nullptr && value->is_string()) out.insert(value->as_string());
}

std::span<const json::Value> items_of(const json::Value* value) {
  if (value == nullptr || !value->is_array()) return {};
  return value->items();
}

}  // namespace

FindingCounts count_findings(const ValidateReport& report) {
  FindingCounts out;
  each_finding(report, [&out](const auto&, const auto&, const ReportedFinding& finding) {
    if (finding.known) {
      ++out.known;
      return;
    }
    if (finding.finding.level == features::Level::kError) ++out.error;
    if (finding.finding.level == features::Level::kWarn) ++out.warn;
    if (finding.finding.level == features::Level::kNote) ++out.note;
  });
  return out;
}

bool fails(const ValidateReport& report, features::Level level) {
  bool out = false;
  each_finding(report, [&out, level](const auto&, const auto&, const ReportedFinding& finding) {
    out = out || (!finding.known && finding.finding.level >= level);
  });
  return out;
}

features::Level worst_level(const EngineFindings& engine) {
  features::Level worst = features::Level::kDerive;
  for (const ReportedFinding& finding : engine.findings) {
    if (!finding.known) worst = std::max(worst, finding.finding.level);
  }
  return worst;
}

std::string_view level_word(features::Level level) {
  return level == features::Level::kDerive ? "ok" : features::level_name(level);
}

std::string fingerprint(const EngineFindings& engine, std::string_view model,
                        const ReportedFinding& finding) {
  return fmt::format("{}|{}|{}|{}", finding.finding.id, engine.engine, model, finding.place.at);
}

Result<std::set<std::string>> read_baseline(const json::Document& document) {
  std::set<std::string> out;
  const json::Value* const findings = document.root.find("findings");
  const json::Value* const runs = document.root.find("runs");
  if (findings == nullptr && runs == nullptr) {
    return fail({.code = ErrorCode::kInputSchema,
                 .message = "neither a validate document nor a SARIF report",
                 .file = document.file,
                 .where = "/"});
  }
  for (const json::Value& finding : items_of(findings)) {
    add_text(out, finding.find("fingerprint"));
  }
  for (const json::Value& run : items_of(runs)) {
    for (const json::Value& result : items_of(run.find("results"))) {
      const json::Value* const prints = result.find("partialFingerprints");
      if (prints != nullptr) add_text(out, prints->find("kernelpath/v1"));
    }
  }
  return out;
}

void apply_baseline(ValidateReport& report, const std::set<std::string>& baseline) {
  for (ValidatedInput& input : report.inputs) {
    for (EngineFindings& engine : input.engines) {
      for (ReportedFinding& finding : engine.findings) {
        finding.known = baseline.contains(fingerprint(engine, input.model, finding));
      }
    }
  }
}

}  // namespace kernelpath::report
