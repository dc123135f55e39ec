#pragma once

#include "features/validate.h"
#include "json/document.h"
#include "report/inspect.h"

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// What llm-validate found, and its printers. Printing never changes a verdict.
namespace kernelpath::report {

inline constexpr std::string_view kValidateSchema = "kernelpath/validate";
inline constexpr std::string_view kValidateSchemaVersion = "1.0.0";

// Where the cause of a finding stands.
struct FindingPlace {
  std::string at = {};     // "option:/kv_cache_config/dtype", "config:/head_dim"; empty: nowhere
  std::string shown = {};  // as the user wrote it: "--kv", "kv_cache_config.dtype"
  std::string file = {};   // the file that states it; empty for options
  std::optional<json::Position> position = {};  // in that file
};

struct ReportedFinding {
  features::Finding finding = {};
  FindingPlace place = {};
  std::string suggestion = {};  // of --suggest; empty if nobody asked
  bool known = false;           // in the baseline: shown, but it does not count
};

// One engine version's answer for one model.
struct EngineFindings {
  std::string engine = {};
  std::string version = {};  // empty for rules that all engines share
  std::string summary = {};  // what will run: "TRTLLM; KV fp8"
  std::vector<ReportedFinding> findings = {};
  std::string suggestion = {};  // that mends all errors together
};

struct ValidatedInput {
  std::string model = {};   // as shown; empty: the combination alone
  std::string device = {};  // "h100-sxm (sm90, 80 GB)"
  std::vector<EngineFindings> engines = {};
};

struct ValidateReport {
  Tool tool = {};
  std::vector<ValidatedInput> inputs = {};
};

struct FindingCounts {
  std::size_t error = 0;
  std::size_t warn = 0;
  std::size_t note = 0;
  std::size_t known = 0;  // of any level
};
FindingCounts count_findings(const ValidateReport& report);

// True if a finding that counts is of `level` or worse: exit code 1.
bool fails(const ValidateReport& report, features::Level level);

// The worst level of one engine's findings that count; kDerive if there is none.
features::Level worst_level(const EngineFindings& engine);
// "ok", "note", "warn", "error".
std::string_view level_word(features::Level level);

// What a finding is recognised by from run to run: rule, engine, model and place, not its wording.
std::string fingerprint(const EngineFindings& engine, std::string_view model,
                        const ReportedFinding& finding);

// The fingerprints of an earlier JSON or SARIF report. Error kInputSchema: it is neither.
Result<std::set<std::string>> read_baseline(const json::Document& document);
// Marks the findings that the baseline has.
void apply_baseline(ValidateReport& report, const std::set<std::string>& baseline);

std::string validate_json(const ValidateReport& report, int indent);
// The header object, then one finding a line.
std::string validate_jsonl(const ValidateReport& report);
std::string validate_text(const ValidateReport& report, const View& view, int exit_code);
std::string validate_markdown(const ValidateReport& report);
std::string validate_html(const ValidateReport& report);
// Static Analysis Results Interchange Format 2.1.0: one run; its rules are those of the tables
// used.
std::string validate_sarif(const ValidateReport& report);
// One suite a model, one case for each engine × rule; warnings and notes are its output.
std::string validate_junit(const ValidateReport& report, features::Level fail_on);
// One workflow command a finding: "::error file=…,line=…,title=…::…".
std::string validate_github(const ValidateReport& report);

}  // namespace kernelpath::report
