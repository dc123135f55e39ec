#include "cli/validate_report.h"

#include "base/file.h"
#include "cli/report_files.h"
#include "json/document.h"

namespace kernelpath::cli {
namespace {

// Nothing of a JSON report is longer.
constexpr std::size_t kMostBaselineBytes = std::size_t{64} << 20;

// Nothing for "never".
std::optional<features::Level> fail_level(const Settings& settings) {
  return features::find_level(settings.text(Option::kFailOn));
}

bool on_github(const Invocation& invocation) {
  const std::string* const value = invocation.environment.find("GITHUB_ACTIONS");
  const bool asked = invocation.settings.is_set(Option::kFormat) &&
                     invocation.settings.of(Option::kFormat).set_by == SetBy::kCommandLine;
  return value != nullptr && *value == "true" && !asked;
}

std::string text_of(const report::ValidateReport& report, const ReportFile& file,
                    const Settings& settings, int exit_code) {
  // With --fail-on never nothing fails the job; a reader of JUnit still wants to see the errors.
  const features::Level fail_on = fail_level(settings).value_or(features::Level::kError);
  if (file.format == "json") return report::validate_json(report, 2);
  if (file.format == "jsonl") return report::validate_jsonl(report);
  if (file.format == "md") return report::validate_markdown(report);
  if (file.format == "html") return report::validate_html(report);
  if (file.format == "sarif") return report::validate_sarif(report);
  if (file.format == "junit") return report::validate_junit(report, fail_on);
  if (file.format == "github") return report::validate_github(report);
  return report::validate_text(report, file.view, exit_code);
}

}  // namespace

Result<void> apply_baseline_file(const Settings& settings, report::ValidateReport& report) {
  const std::string& path = settings.text(Option::kBaseline);
  if (path.empty()) return {};
  KERNELPATH_TRY(file, read_file(path, kMostBaselineBytes));
  json::Limits limits;
  limits.max_bytes = kMostBaselineBytes;
  KERNELPATH_TRY(document, json::parse_object(std::move(file.text), path, limits));
  KERNELPATH_TRY(baseline, report::read_baseline(document));
  report::apply_baseline(report, baseline);
  return {};
}

int finding_code(const Settings& settings, const report::ValidateReport& report) {
  const std::optional<features::Level> level = fail_level(settings);
  return level && report::fails(report, *level) ? kExitFinding : kExitOk;
}

Result<void> write_validate_reports(const Invocation& invocation, const report::View& view,
                                    const report::ValidateReport& report, int exit_code) {
  std::vector<ReportFile> files = make_reports(invocation, view);
  const bool plain = invocation.settings.list(Option::kOutput).empty();
  for (ReportFile& file : files) {
    if (plain && file.format == "text" && on_github(invocation)) file.format = "github";
    KERNELPATH_CHECK_OK(file.output.write(text_of(report, file, invocation.settings, exit_code)));
    KERNELPATH_CHECK_OK(file.output.commit());
  }
  return {};
}

}  // namespace kernelpath::cli
