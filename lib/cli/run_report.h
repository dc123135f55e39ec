#pragma once

#include "base/result.h"
#include "cli/report_files.h"
#include "cli/run_comparison.h"
#include "cli/run_requests.h"
#include "report/inspect.h"
#include "runtime/generator.h"
#include "runtime/session.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::cli {

// Semantic version of llm-run's JSON documents and events; every change of their fields bumps it
// (CHANGELOG.md).
inline constexpr std::string_view kRunSchema = "kernelpath/run";
inline constexpr std::string_view kRunSchemaVersion = "1.1.0";

// What is known before the first token.
struct RunStart {
  report::Tool tool;
  const report::InputAnswer& answer;  // the Resolution that is executed
  const runtime::SessionPlan& plan;
  std::int64_t requests = 0;
  bool has_text = true;   // there is a tokenizer
  bool compares = false;  // --expect: the comparison is the answer
  int threads = 1;
  std::string_view kernels;  // "avx512"
  bool huge_pages = false;
  const runtime::SessionMemory& memory;
};

// Writes what is generated, in one format, to one place.
class RunReport {
 public:
  virtual ~RunReport() = default;
  virtual Result<void> begin(const RunStart& start) = 0;
  virtual Result<void> token(const runtime::TokenEvent& event) = 0;
  virtual Result<void> done(const runtime::DoneEvent& event) = 0;
  // A request that was not run at all.
  virtual Result<void> failed(const FailedRequest& request) = 0;
  // Of --expect, once all is done.
  virtual Result<void> compared(std::span<const Comparison> comparisons) = 0;
  virtual Result<void> end(const runtime::GeneratorTotals& totals) = 0;
  // Nobody reads it any more.
  [[nodiscard]] virtual bool reader_is_gone() const = 0;
};

// "text": the generated text as it comes; of several requests each one whole, under its name, when
// it is done. "md": a section a request, and a table of them. With --expect both hold the
// comparison in place of texts. "jsonl": an event a line. "json": one document at the end.
std::unique_ptr<RunReport> make_run_report(ReportFile file);

// All reports of a run as one sink.
class RunReports : public runtime::EventSink {
 public:
  explicit RunReports(std::vector<ReportFile> files);

  Result<void> begin(const RunStart& start);
  Result<void> token(const runtime::TokenEvent& event) override;
  Result<void> done(const runtime::DoneEvent& event) override;
  Result<void> failed(const FailedRequest& request);
  Result<void> compared(std::span<const Comparison> comparisons);
  Result<void> end(const runtime::GeneratorTotals& totals);
  [[nodiscard]] bool readers_are_gone() const;

 private:
  Result<void> for_each(const std::function<Result<void>(RunReport&)>& call);

  std::vector<std::unique_ptr<RunReport>> reports_;
};

}  // namespace kernelpath::cli
