#include "cli/bench.h"

#include "base/build_info.h"
#include "base/file.h"
#include "base/processors.h"
#include "base/text.h"
#include "bench/cpu_target.h"
#include "bench/cuda_target.h"
#include "bench/peers.h"
#include "bench/runner.h"
#include "cli/bench_baseline.h"
#include "cli/bench_cases.h"
#include "cli/bench_document.h"
#include "cli/bench_plot.h"
#include "cli/output.h"
#include "cli/report_files.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "kernels/cpu/isa.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <unistd.h>

namespace kernelpath::cli {
namespace {

using bench::Row;
using bench::Shape;

constexpr std::array<std::string_view, 2> kExamples = {
    "llm-bench gqa-decode --batch-size 16,64 --context 8192",
    "llm-bench bench/h200-decode.toml --format json -o now.json --baseline before.json"};
constexpr std::size_t kMostDocumentBytes = std::size_t{256} << 20;

Result<kernels::cpu::Isa> chosen_isa(const Settings& settings) {
  if (!settings.is_set(Option::kKernel)) return kernels::cpu::best_isa();
  const std::string& name = settings.text(Option::kKernel);
  const auto isa = kernels::cpu::find_isa(name);
  if (isa && kernels::cpu::has_isa(*isa)) return *isa;
  std::vector<std::string> known;
  for (const kernels::cpu::Isa one : kernels::cpu::kIsas) {
    if (kernels::cpu::has_isa(one)) known.emplace_back(kernels::cpu::isa_name(one));
  }
  return fail({.code = ErrorCode::kUnavailable,
               .message = "this processor does not have it; it has " + join_words(known),
               .where = "--kernel",
               .value = name});
}

// What was asked for and how, without where the answer goes.
std::vector<std::pair<std::string, std::vector<std::string>>> stated_options(
    const Settings& settings) {
  std::vector<std::pair<std::string, std::vector<std::string>>> out;
  for (const OptionRow& row : option_table()) {
    const bool asks = row.group == Group::kQuestion || row.group == Group::kDeployment ||
                      row.group == Group::kMeasurement || row.group == Group::kAnswer;
    if (!asks || !settings.is_set(row.id) || !is_option_of(ProgramKind::kBench, row)) continue;
    out.emplace_back(row.name, settings.list(row.id));
  }
  return out;
}

// One run of llm-bench.
class BenchRun {
 public:
  explicit BenchRun(const Invocation& invocation)
      : invocation_(invocation), settings_(invocation.settings) {}

  Result<int> run() {
    KERNELPATH_CHECK_OK(read_options());
    KERNELPATH_CHECK_OK(read_files());
    KERNELPATH_CHECK_OK(choose_target());
    note_absent_peers();
    KERNELPATH_TRY(shapes, wanted_shapes(invocation_, *target_));
    document_ = {.tool = tool_of(invocation_.program),
                 .commit = std::string(build_info().commit),
                 .arguments = invocation_.models,
                 .flags = stated_options(settings_),
                 .device = target_->facts(),
                 .options = options_,
                 .rows = {}};
    reports_ = make_reports(invocation_, {});
    for (ReportFile& report : reports_) report.output.keep_part();
    KERNELPATH_CHECK_OK(check_outputs());
    KERNELPATH_CHECK_OK(begin());
    const Result<void> measured = measure(shapes);
    note_baseline();
    // A report that cannot be written takes nothing from the others.
    KERNELPATH_CHECK_OK(finish());
    KERNELPATH_CHECK_OK(measured);
    return code_;
  }

 private:
  Result<void> read_options() {
    if (settings_.flag(Option::kCold) && settings_.flag(Option::kWarm)) {
      return fail({.code = ErrorCode::kUsageConflict,
                   .message = "--cold and --warm ask for two states of the cache",
                   .hint = "without both, shapes that fit the cache are measured both ways"});
    }
    bench::StoppingRule& rule = options_.measure.rule;
    rule.min_samples = settings_.integer(Option::kMinSamples).value_or(rule.min_samples);
    rule.max_noise = settings_.number(Option::kMaxNoise);
    rule.min_time_s = settings_.number(Option::kMinTime);
    rule.timeout_s = settings_.number(Option::kTimeout);
    options_.measure.one_launch = settings_.flag(Option::kProfile);
    options_.measure.interrupted = [] { return stop_signal() != 0; };
    options_.check = settings_.flag(Option::kCheck);
    if (settings_.flag(Option::kCold)) options_.cache = bench::CacheChoice::kCold;
    if (settings_.flag(Option::kWarm)) options_.cache = bench::CacheChoice::kWarm;
    return read_peer_option();
  }

  Result<void> read_peer_option() {
    const std::vector<std::string> known = peer_words();
    for (const std::string& name : settings_.list(Option::kPeer)) {
      if (std::ranges::find(known, name) != known.end()) continue;
      const std::vector<std::string_view> names(known.begin(), known.end());
      return fail({.code = ErrorCode::kUsageUnknown,
                   .message = "no such peer; there are " + join_words(known),
                   .where = "--peer",
                   .value = shorten(name, 64),
                   .near_matches = near_matches(name, names)});
    }
    options_.peer = join(settings_.list(Option::kPeer), ",");
    return {};
  }

  static std::vector<std::string> peer_words() {
    std::vector<std::string> out = {"none", "all"};
    for (const bench::PeerKind& kind : bench::peer_kinds()) out.push_back(kind.name);
    return out;
  }

  Result<void> read_files() {
    if (settings_.is_set(Option::kBaseline)) {
      const std::string& file = settings_.text(Option::kBaseline);
      KERNELPATH_TRY(contents, read_file(file, kMostDocumentBytes));
      KERNELPATH_TRY(baseline, BenchBaseline::read(contents.text, file));
      baseline_ = std::move(baseline);
    }
    for (const std::string& file : settings_.list(Option::kPeersFile)) {
      KERNELPATH_TRY(contents, read_file(file, kMostDocumentBytes));
      KERNELPATH_TRY(peers, read_peers(contents.text, file));
      for (auto& [shape, rows] : peers) {
        std::ranges::move(rows, std::back_inserter(peers_[shape]));
      }
    }
    return {};
  }

  Result<void> choose_target() {
    const std::string device = to_lower(settings_.text(Option::kDevice));
    const bool automatic = device == "auto";
    if (automatic || device.starts_with("cuda")) {
      KERNELPATH_TRY(index, bench::cuda_index(automatic ? "cuda" : device));
      Result<std::unique_ptr<bench::Target>> cuda = bench::make_cuda_target(index);
      if (cuda) {
        target_ = std::move(*cuda);
        return {};
      }
      if (!automatic) return fail(std::move(cuda).error());
      invocation_.log.note("no CUDA device, the CPU is measured: " + cuda.error().message);
    } else if (device != "cpu") {
      return fail({.code = ErrorCode::kUsage,
                   .message = "llm-bench computes on this machine: auto, cpu or cuda:N",
                   .where = "--device",
                   .value = shorten(settings_.text(Option::kDevice), 64)});
    }
    KERNELPATH_TRY(isa, chosen_isa(settings_));
    const auto threads = settings_.integer(Option::kThreads).value_or(usable_processors());
    target_ = bench::make_cpu_target({.threads = static_cast<int>(threads), .isa = isa});
    return {};
  }

  // What would be lost after minutes of measuring is refused before them.
  [[nodiscard]] Result<void> check_outputs() const {
    bool pictures = settings_.is_set(Option::kRoofline);
    for (const ReportFile& report : reports_) {
      pictures = pictures || report.format == "svg";
      KERNELPATH_CHECK_OK(report.output.check());
    }
    if (settings_.text(Option::kRoofline) == "-") {
      return fail({.code = ErrorCode::kUsage,
                   .message = "takes a file: standard output has the table",
                   .where = "--roofline"});
    }
    if (settings_.is_set(Option::kRoofline)) {
      KERNELPATH_CHECK_OK(Output::file(settings_.text(Option::kRoofline)).check());
    }
    return pictures ? check_gnuplot() : Result<void>();
  }

  // Rows that the baseline lacks are no regressions, but were not compared either.
  void note_baseline() const {
    if (!baseline_) return;
    const std::string& file = settings_.text(Option::kBaseline);
    if (!baseline_->device().empty() && baseline_->device() != document_.device.label) {
      invocation_.log.note(fmt::format("{} was measured on {}, this is {}", file,
                                       baseline_->device(), document_.device.label));
    }
    const auto compared = std::ranges::count_if(
        document_.rows, [](const Row& row) { return row.baseline.has_value(); });
    const auto all = std::ranges::count_if(document_.rows,
                                           [](const Row& row) { return !row.error.has_value(); });
    if (compared == all) return;
    invocation_.log.note(fmt::format(
        "{} of {} rows are compared with {}: it lacks the others, or their times were not valid",
        compared, all, file));
  }

  // Peers that were asked for by name and that no row can have.
  void note_absent_peers() const {
    const std::vector<std::string>& wanted = settings_.list(Option::kPeer);
    for (const bench::PeerKind& kind : bench::peer_kinds()) {
      if (std::ranges::find(wanted, kind.name) == wanted.end()) continue;
      if (kind.by_script && !settings_.is_set(Option::kPeersFile)) {
        invocation_.log.note(fmt::format(
            "peer {}: measured by scripts/bench-peers.py, whose file --peers-file reads",
            kind.name));
      } else if (!kind.by_script && !target_->is_cuda()) {
        invocation_.log.note(fmt::format("peer {}: it computes on CUDA devices", kind.name));
      }
    }
  }

  // jsonl is written as it comes.
  Result<void> begin() {
    for (ReportFile& report : reports_) {
      if (report.format != "jsonl") continue;
      KERNELPATH_CHECK_OK(report.output.write(bench_jsonl_header(document_)));
      KERNELPATH_CHECK_OK(report.output.flush());
    }
    return {};
  }

  // What was measured before an interruption is printed.
  Result<void> measure(const std::vector<Shape>& shapes) {
    bench::Runner runner(*target_, options_);
    const bool progress = is_terminal(STDERR_FILENO) && !settings_.flag(Option::kQuiet);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      if (stop_signal() != 0) break;
      if (progress) {
        invocation_.log.note(
            fmt::format("{}/{}  {}", i + 1, shapes.size(), bench::key_of(shapes[i])));
      }
      std::vector<Row> rows = runner.run(shapes[i]);
      for (Row& row : rows) KERNELPATH_CHECK_OK(add(std::move(row)));
    }
    document_.device = target_->facts();
    return {};
  }

  Result<void> add(Row row) {
    const bool unfinished =
        stop_signal() != 0 && row.measured.stop == bench::StopReason::kInterrupted;
    if (unfinished) return {};
    const auto found = peers_.find(row.shape.name);
    // They repeat on the same data: no comparison for rows out of memory.
    if (found != peers_.end() && !row.shape.name.empty() && !row.rotated) {
      add_peers(found->second, row);
    }
    if (baseline_) row.baseline = baseline_->compare(row, settings_.number(Option::kMaxRegression));
    judge(row);
    document_.rows.push_back(std::move(row));
    for (ReportFile& report : reports_) {
      if (report.format != "jsonl") continue;
      KERNELPATH_CHECK_OK(report.output.write(bench_jsonl_line(document_.rows.back())));
      KERNELPATH_CHECK_OK(report.output.flush());
    }
    return {};
  }

  // What the exit code and standard error say about a row.
  void judge(const Row& row) {
    const std::string name = bench::key_of(row.shape);
    if (row.error) {
      Error error = *row.error;
      error.file = error.file.empty() ? name : error.file;
      invocation_.log.error(error);
      code_ = worse(code_, error_info(error.code).exit_code);
      return;
    }
    note_missing(row);
    if (row.check && !row.check->ok()) {
      invocation_.log.finding(name + ": " + join(row.problems, "; "));
      code_ = worse(code_, kExitFinding);
    }
    if (row.baseline && row.baseline->regressed) {
      invocation_.log.finding(
          fmt::format("{}: {:.1f} % slower than the baseline", name, 100 * row.baseline->change));
      code_ = worse(code_, kExitFinding);
    }
  }

  // Why peers of a row have no time; the same reason once.
  void note_missing(const Row& row) {
    for (const bench::PeerRow& peer : row.peers) {
      if (peer.median_s || peer.reason.empty()) continue;
      const std::string text = fmt::format("peer {}: {}", peer.name, peer.reason);
      if (said_.insert(text).second) {
        invocation_.log.note(fmt::format("{}: {}", bench::key_of(row.shape), text));
      }
    }
  }

  Result<void> finish() {
    Result<void> out;
    for (ReportFile& report : reports_) {
      Result<void> completed = complete(report);
      if (out && !completed) out = std::move(completed);
    }
    if (!out || !settings_.is_set(Option::kRoofline)) return out;
    KERNELPATH_TRY(picture, roofline_svg(document_));
    return write_file(settings_.text(Option::kRoofline), picture);
  }

  [[nodiscard]] Result<void> complete(ReportFile& report) const {
    KERNELPATH_TRY(text, text_of(report));
    KERNELPATH_CHECK_OK(report.output.write(text));
    return report.output.commit();
  }

  [[nodiscard]] Result<std::string> text_of(const ReportFile& report) const {
    if (report.format == "jsonl") return std::string();
    if (report.format == "json") return bench_json(document_);
    if (report.format == "csv") return bench_csv(document_);
    if (report.format == "svg") return bench_svg(document_);
    if (report.format == "md") return bench_markdown(document_);
    if (report.format == "html") return bench_html(document_);
    return bench_text(document_, report.view);
  }

  const Invocation& invocation_;
  const Settings& settings_;
  bench::RunOptions options_;
  std::optional<BenchBaseline> baseline_;
  std::map<std::string, std::vector<bench::PeerRow>> peers_;
  std::unique_ptr<bench::Target> target_;
  BenchDocument document_;
  std::vector<ReportFile> reports_;
  std::set<std::string> said_;
  int code_ = kExitOk;
};

}  // namespace

const Program& bench_program_description() {
  static const Program kProgram = {
      .kind = ProgramKind::kBench,
      .name = "llm-bench",
      .summary = "times this project's kernels beside what limits them, measured in the same run",
      .usage = "[options] [CASE…]",
      .examples = kExamples,
      .formats = "text|json|jsonl|md|csv|svg|html"};
  return kProgram;
}

int run_benchmarks(const Invocation& invocation) {
  const Result<int> code = BenchRun(invocation).run();
  if (code) return *code;
  return report_error(invocation.log, code.error());
}

}  // namespace kernelpath::cli
