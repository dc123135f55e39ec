#include "cli/run_report.h"

#include "base/text.h"
#include "cli/log.h"
#include "json/document.h"
#include "json/writer.h"
#include "report/blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace kernelpath::cli {
namespace {

// What the process took, where the system says.
void write_memory(json::Writer& w, const runtime::SessionMemory& memory) {
  if (!memory.before || !memory.construction_peak) return;
  w.member("memory_before_bytes", *memory.before);
  w.member("memory_construction_peak_bytes", *memory.construction_peak);
}

// The header's fields. Timing and the machine stand apart from what repeats.
void write_start(json::Writer& w, const RunStart& start) {
  w.member("schema", kRunSchema).member("schema_version", kRunSchemaVersion);
  w.key("tool").begin_object().member("name", start.tool.name);
  w.member("version", start.tool.version).end_object();
  const Result<json::Document> resolution =
      json::parse(report::inspect_jsonl_line(start.answer, {.why = true}), "resolution");
  if (resolution) w.key("resolution").value(resolution->root);
  w.key("plan").begin_object();
  w.member("weight_bytes", start.plan.weight_bytes);
  w.member("kv_block_bytes", start.plan.kv_block_bytes);
  w.member("kv_blocks", start.plan.kv_blocks).member("kv_bytes", start.plan.kv_bytes);
  w.member("state_bytes", start.plan.state_bytes);
  w.member("workspace_bytes", start.plan.workspace_bytes);
  w.member("kernel_bytes", start.plan.kernel_bytes);
  w.member("construction_bytes", start.plan.construction_bytes).end_object();
  w.member("requests", start.requests);
  w.key("environment").begin_object().member("threads", start.threads);
  w.member("kernels", start.kernels).member("huge_pages", start.huge_pages);
  write_memory(w, start.memory);
  w.end_object();
}

void write_error(json::Writer& w, const Error& error) {
  const Result<json::Document> document = json::parse(error_json(error), "error");
  if (document) w.key("error").value(document->root);
}

void write_token(json::Writer& w, const runtime::TokenEvent& event) {
  w.member("id", std::int64_t{event.sampled.token}).member("text", event.text);
  w.member("logprob", double{event.sampled.logprob});
  if (event.sampled.top.empty()) return;
  w.key("top_logprobs").begin_array();
  for (const runtime::TokenLogprob& top : event.sampled.top) {
    w.begin_object().member("id", std::int64_t{top.token});
    w.member("logprob", double{top.logprob}).end_object();
  }
  w.end_array();
}

void write_done(json::Writer& w, const runtime::DoneEvent& event) {
  w.member("reason", runtime::finish_reason_name(event.reason));
  if (event.stop_string) w.member("stop_string", *event.stop_string);
  if (event.error) write_error(w, *event.error);
  w.member("prompt_tokens", event.prompt_tokens);
  w.member("reused_tokens", event.reused_tokens);
  w.member("generated_tokens", event.generated_tokens);
  if (event.proposed_tokens > 0) {
    w.member("proposed_tokens", event.proposed_tokens);
    w.member("accepted_tokens", event.accepted_tokens);
  }
  if (event.preemptions > 0) w.member("preemptions", event.preemptions);
  w.key("timing").begin_object().member("first_token_s", event.first_token_s);
  w.member("total_s", event.total_s).end_object();
}

void write_totals(json::Writer& w, const runtime::GeneratorTotals& totals) {
  w.key("timing").begin_object();
  w.member("steps", totals.steps).member("prefill_tokens", totals.prefill_tokens);
  w.member("prefill_s", totals.prefill_s).member("decode_tokens", totals.decode_tokens);
  w.member("decode_s", totals.decode_s).end_object();
}

void write_comparison(json::Writer& w, const Comparison& comparison) {
  w.member("request", comparison.request).member("prompt", comparison.prompt);
  w.member("verdict", verdict_of(comparison));
  if (!comparison.difference) return;
  const runtime::Difference& difference = *comparison.difference;
  w.member("step", difference.step);
  w.member("expected", std::int64_t{difference.expected});
  w.key("found");
  if (difference.found) {
    w.value(std::int64_t{*difference.found});
  } else {
    w.value(nullptr);
  }
  // Without gaps in the file none is known.
  if (std::isfinite(difference.gap)) w.member("gap", difference.gap);
}

class FileReport : public RunReport {
 public:
  explicit FileReport(Output output) : output_(std::move(output)) {}
  [[nodiscard]] bool reader_is_gone() const override { return output_.reader_is_gone(); }

 protected:
  Output& output() { return output_; }

 private:
  Output output_;
};

class TextReport : public FileReport {
 public:
  using FileReport::FileReport;

  Result<void> begin(const RunStart& start) override {
    streams_ = start.requests == 1;
    has_text_ = start.has_text;
    compares_ = start.compares;
    return {};
  }

  Result<void> token(const runtime::TokenEvent& event) override {
    if (compares_) return {};
    // Without a tokenizer the ids are what there is.
    const std::string text = has_text_ ? event.text : fmt::format("{} ", event.sampled.token);
    if (!streams_) {
      texts_[event.request] += text;
      return {};
    }
    if (text.empty()) return {};
    KERNELPATH_CHECK_OK(output().write(text));
    return output().flush();
  }

  Result<void> done(const runtime::DoneEvent& event) override {
    if (compares_) return {};
    // Of what failed before its first token there is nothing to end.
    if (streams_ && event.error && event.generated_tokens == 0) return {};
    if (streams_) return output().write(event.text + "\n");
    const std::string text = std::exchange(texts_[event.request], {}) + event.text;
    KERNELPATH_CHECK_OK(output().write(fmt::format("=== {}\n{}\n", event.request, text)));
    return output().flush();
  }

  // Standard error says why.
  Result<void> failed(const FailedRequest& /*request*/) override { return {}; }

  Result<void> compared(std::span<const Comparison> comparisons) override {
    return output().write(comparison_text(comparisons));
  }

  Result<void> end(const runtime::GeneratorTotals& /*totals*/) override {
    return output().commit();
  }

 private:
  bool streams_ = true;
  bool has_text_ = true;
  bool compares_ = false;
  std::map<std::string, std::string> texts_;
};

// A fence that no run of backticks in the text ends.
std::string fence_around(std::string_view text) {
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  std::string out;
  out.append(std::max<std::size_t>(longest + 1, 3), '`');
  return out;
}

class MarkdownReport : public FileReport {
 public:
  using FileReport::FileReport;

  Result<void> begin(const RunStart& start) override {
    has_text_ = start.has_text;
    compares_ = start.compares;
    return {};
  }

  Result<void> token(const runtime::TokenEvent& event) override {
    texts_[event.request] += has_text_ ? event.text : fmt::format("{} ", event.sampled.token);
    return {};
  }

  Result<void> done(const runtime::DoneEvent& event) override {
    const std::string text = std::exchange(texts_[event.request], {}) + event.text;
    table_.rows.push_back({{escape_for_terminal(event.request)},
                           {std::to_string(event.prompt_tokens)},
                           {std::to_string(event.generated_tokens)},
                           {std::string(runtime::finish_reason_name(event.reason))}});
    if (compares_) return {};
    const std::string fence = fence_around(text);
    KERNELPATH_CHECK_OK(output().write(
        report::render_markdown({report::heading_block(escape_for_terminal(event.request))})));
    KERNELPATH_CHECK_OK(output().write(fmt::format("\n{0}text\n{1}\n{0}\n\n", fence, text)));
    return output().flush();
  }

  Result<void> failed(const FailedRequest& request) override {
    table_.rows.push_back({{escape_for_terminal(request.id)},
                           {"-"},
                           {"-"},
                           {"error: " + escape_for_terminal(request.error.text())}});
    return {};
  }

  Result<void> compared(std::span<const Comparison> comparisons) override {
    return output().write(report::render_markdown({comparison_table(comparisons)}));
  }

  Result<void> end(const runtime::GeneratorTotals& /*totals*/) override {
    if (!compares_) KERNELPATH_CHECK_OK(output().write(report::render_markdown({table_})));
    return output().commit();
  }

 private:
  bool has_text_ = true;
  bool compares_ = false;
  std::map<std::string, std::string> texts_;
  report::Block table_{.kind = report::Block::Kind::kTable,
                       .header = {"request", "prompt tokens", "tokens", "end"}};
};

class JsonLinesReport : public FileReport {
 public:
  using FileReport::FileReport;

  Result<void> begin(const RunStart& start) override {
    json::Writer w;
    w.begin_object();
    write_start(w, start);
    return line(w.member("event", "start").end_object());
  }

  Result<void> token(const runtime::TokenEvent& event) override {
    json::Writer w;
    w.begin_object().member("event", "token").member("request", event.request);
    write_token(w, event);
    return line(w.end_object());
  }

  Result<void> done(const runtime::DoneEvent& event) override {
    json::Writer w;
    w.begin_object().member("event", "done").member("request", event.request);
    w.member("text", event.text);
    write_done(w, event);
    return line(w.end_object());
  }

  Result<void> failed(const FailedRequest& request) override {
    json::Writer w;
    w.begin_object().member("event", "error").member("request", request.id);
    write_error(w, request.error);
    return line(w.end_object());
  }

  Result<void> compared(std::span<const Comparison> comparisons) override {
    for (const Comparison& comparison : comparisons) {
      json::Writer w;
      w.begin_object().member("event", "comparison");
      write_comparison(w, comparison);
      KERNELPATH_CHECK_OK(line(w.end_object()));
    }
    return {};
  }

  Result<void> end(const runtime::GeneratorTotals& totals) override {
    json::Writer w;
    w.begin_object().member("event", "end");
    write_totals(w, totals);
    KERNELPATH_CHECK_OK(line(w.end_object()));
    return output().commit();
  }

 private:
  Result<void> line(json::Writer& w) {
    KERNELPATH_CHECK_OK(output().write(w.take(0) + "\n"));
    return output().flush();
  }
};

class JsonReport : public FileReport {
 public:
  using FileReport::FileReport;

  Result<void> begin(const RunStart& start) override {
    document_.begin_object();
    write_start(document_, start);
    document_.key("results").begin_array();
    return {};
  }

  Result<void> token(const runtime::TokenEvent& event) override {
    Collected& own = collected_[event.request];
    json::Writer w;
    w.begin_object();
    write_token(w, event);
    const Result<json::Document> token = json::parse(w.end_object().take(0), "token");
    if (token) own.tokens.push_back(token->root);
    own.text += event.text;
    return {};
  }

  Result<void> done(const runtime::DoneEvent& event) override {
    const auto own = collected_.extract(event.request);
    const Collected collected = own.empty() ? Collected() : own.mapped();
    document_.begin_object().member("request", event.request);
    document_.member("text", collected.text + event.text);
    document_.key("tokens").begin_array();
    for (const json::Value& token : collected.tokens) document_.value(token);
    document_.end_array();
    write_done(document_, event);
    document_.end_object();
    return {};
  }

  Result<void> failed(const FailedRequest& request) override {
    failed_.push_back(request);
    return {};
  }

  Result<void> compared(std::span<const Comparison> comparisons) override {
    comparisons_.assign(comparisons.begin(), comparisons.end());
    return {};
  }

  Result<void> end(const runtime::GeneratorTotals& totals) override {
    document_.end_array();
    if (!failed_.empty()) write_failed();
    if (!comparisons_.empty()) write_comparisons();
    write_totals(document_, totals);
    document_.end_object();
    KERNELPATH_CHECK_OK(output().write(document_.take(2) + "\n"));
    return output().commit();
  }

 private:
  struct Collected {
    std::vector<json::Value> tokens;
    std::string text;
  };

  void write_failed() {
    document_.key("failed").begin_array();
    for (const FailedRequest& request : failed_) {
      document_.begin_object().member("request", request.id);
      write_error(document_, request.error);
      document_.end_object();
    }
    document_.end_array();
  }

  void write_comparisons() {
    document_.key("comparisons").begin_array();
    for (const Comparison& comparison : comparisons_) {
      document_.begin_object();
      write_comparison(document_, comparison);
      document_.end_object();
    }
    document_.end_array();
  }

  json::Writer document_;
  std::map<std::string, Collected> collected_;
  std::vector<FailedRequest> failed_;
  std::vector<Comparison> comparisons_;
};

}  // namespace

std::unique_ptr<RunReport> make_run_report(ReportFile file) {
  if (file.format == "jsonl") return std::make_unique<JsonLinesReport>(std::move(file.output));
  if (file.format == "json") return std::make_unique<JsonReport>(std::move(file.output));
  if (file.format == "md") return std::make_unique<MarkdownReport>(std::move(file.output));
  return std::make_unique<TextReport>(std::move(file.output));
}

RunReports::RunReports(std::vector<ReportFile> files) {
  reports_.reserve(files.size());
  for (ReportFile& file : files) {
    file.output.keep_part();
    reports_.push_back(make_run_report(std::move(file)));
  }
}

// A report that cannot be written takes nothing from the others.
Result<void> RunReports::for_each(const std::function<Result<void>(RunReport&)>& call) {
  Result<void> out;
  for (const auto& report : reports_) {
    Result<void> called = call(*report);
    if (out && !called) out = std::move(called);
  }
  return out;
}

Result<void> RunReports::begin(const RunStart& start) {
  return for_each([&](RunReport& report) { return report.begin(start); });
}

Result<void> RunReports::token(const runtime::TokenEvent& event) {
  return for_each([&](RunReport& report) { return report.token(event); });
}

Result<void> RunReports::done(const runtime::DoneEvent& event) {
  return for_each([&](RunReport& report) { return report.done(event); });
}

Result<void> RunReports::failed(const FailedRequest& request) {
  return for_each([&](RunReport& report) { return report.failed(request); });
}

Result<void> RunReports::compared(std::span<const Comparison> comparisons) {
  return for_each([&](RunReport& report) { return report.compared(comparisons); });
}

Result<void> RunReports::end(const runtime::GeneratorTotals& totals) {
  return for_each([&](RunReport& report) { return report.end(totals); });
}

bool RunReports::readers_are_gone() const {
  return std::ranges::all_of(reports_, [](const auto& report) { return report->reader_is_gone(); });
}

}  // namespace kernelpath::cli
