#include "cli/run.h"

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/logits_file.h"
#include "cli/model_input.h"
#include "cli/output.h"
#include "cli/question.h"
#include "cli/report_files.h"
#include "cli/run_memory.h"
#include "cli/run_progress.h"
#include "cli/run_ranks.h"
#include "cli/run_report.h"
#include "cli/run_requests.h"
#include "cli/run_session.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "engines/engine.h"
#include "runtime/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <unistd.h>

namespace kernelpath::cli {
namespace {

using runtime::Prompt;
using runtime::SessionOptions;

constexpr std::string_view kEngine = "kernelpath";
constexpr std::array<std::string_view, 2> kExamples = {
    "llm-run Llama-3.2-1B -p 'The capital of France is' -n 32",
    "llm-run Qwen3-0.6B --chat -p @question.txt --temperature 0.7 --seed 1"};

// The question of this machine's own engine.
Result<Question> own_question(const Invocation& invocation, Settings& settings) {
  KERNELPATH_CHECK_OK(
      settings.set(Option::kEngine, {std::string(kEngine)}, SetBy::kBatchLine, "llm-run"));
  const std::string device = to_lower(settings.text(Option::kDevice));
  if (device != "cpu" && device != "auto") {
    const bool is_cuda = device.starts_with("cuda");
    return fail({.code = is_cuda ? ErrorCode::kUnavailable : ErrorCode::kUsage,
                 .message = is_cuda ? "llm-run computes on the CPU only; llm-bench has the CUDA "
                                      "kernels"
                                    : "llm-run computes on this machine: cpu or auto",
                 .where = "--device",
                 .value = shorten(settings.text(Option::kDevice), 64),
                 .hint = "say --device cpu"});
  }
  KERNELPATH_CHECK_OK(settings.set(Option::kDevice, {"cpu"}, SetBy::kBatchLine, "llm-run"));
  KERNELPATH_TRY(external_models, load_external_models(settings));
  KERNELPATH_TRY(question, make_question(settings, invocation.environment, external_models));
  if (settings.text(Option::kFallback) == "warn") {
    question.engines.front().deployment.settings.emplace_back("fallback", "warn");
  }
  if (settings.is_set(Option::kKernel)) {
    question.engines.front().deployment.settings.emplace_back("kernel",
                                                              settings.text(Option::kKernel));
  }
  return std::move(question);
}

// An engine's refusal as this program's error: a run that is not possible here.
Result<void> check_resolution(const engines::Resolution& resolution, const std::string& model) {
  const bool runs =
      resolution.status == engines::Status::kOk || resolution.status == engines::Status::kFallback;
  if (runs) return {};
  Error error{.code = ErrorCode::kUnavailable, .message = "cannot be run", .file = model};
  if (resolution.error) {
    error.message = resolution.error->message;
    error.near_matches = resolution.error->near_matches;
  }
  error.hint = "--why has every step";
  for (const engines::Step& step : resolution.steps) {
    if (step.verdict != engines::Verdict::kRejected || step.reason == error.message) continue;
    error.hint = fmt::format("{}: {}; {}", step.candidate, step.reason, error.hint);
    break;
  }
  return fail(std::move(error));
}

// One run of llm-run, from the command line to the last token.
class GenerationRun {
 public:
  GenerationRun(const Invocation& invocation, RunRanks& ranks)
      : invocation_(invocation), settings_(invocation.settings), ranks_(ranks) {}

  Result<int> run() {
    KERNELPATH_TRY(question, own_question(invocation_, settings_));
    const engines::Deployment& asked = question.engines.front().deployment;
    if (settings_.flag(Option::kWhy) || settings_.flag(Option::kDryRun)) {
      ranks_.plan(asked.tp, asked.dcp);
    } else {
      KERNELPATH_CHECK_OK(ranks_.open(asked.tp, asked.dcp));
    }
    KERNELPATH_CHECK_OK(ranks_.agree_on(answer_own(question)));
    if (settings_.flag(Option::kWhy)) return print_resolution(question);
    const engines::Resolution& resolution = answer_->engines.front().resolution;
    KERNELPATH_CHECK_OK(check_resolution(resolution, folder_));
    request_ = {.model = answer_->model,
                .device = question.device,
                .deployment = question.engines.front().deployment,
                .environment = question.engines.front().environment};
    if (resolution.status == engines::Status::kFallback) {
      invocation_.log.warn(resolution.fallback_reason);
      request_.deployment.backend.reset();  // what runs instead is the first that can
    }
    return generate(resolution);
  }

 private:
  Result<void> answer_own(const Question& question) {
    KERNELPATH_CHECK_OK(check_models());
    KERNELPATH_TRY(model, load_input(folder_, question.load));
    KERNELPATH_TRY(answer, answer_question(question, std::move(model)));
    answer_ = std::move(answer);
    return {};
  }

  Result<void> check_models() {
    if (invocation_.models.size() != 1 || invocation_.models.front() == "-") {
      return fail({.code = ErrorCode::kUsage,
                   .message = "takes one MODEL: a folder with config.json and weights, or a GGUF "
                              "file"});
    }
    folder_ = invocation_.models.front();
    KERNELPATH_TRY(kind, path_kind(folder_));
    if (kind == PathKind::kFile && folder_.ends_with(".safetensors")) {
      return fail({.code = ErrorCode::kInputKind,
                   .message = "weights alone are no model: give the folder that has config.json",
                   .file = folder_});
    }
    // Weights and tokenizer lie beside config.json.
    const bool is_config = kind == PathKind::kFile && folder_.ends_with(".json");
    weights_ = is_config ? parent_path(folder_) : folder_;
    beside_ = kind == PathKind::kFolder ? folder_ : parent_path(folder_);
    return {};
  }

  Result<int> print_resolution(const Question& question) {
    report::View view = question.view;
    view.why = true;
    std::vector<ReportFile> reports = make_reports(invocation_, view);
    KERNELPATH_CHECK_OK(add_answer(reports, tool_of(invocation_.program), *answer_));
    KERNELPATH_CHECK_OK(finish_reports(reports, tool_of(invocation_.program), {*answer_}));
    return kExitOk;
  }

  // Files that cannot be written are an error before anything is computed for them.
  [[nodiscard]] Result<void> check_outputs() const {
    for (const ReportFile& report : own_reports()) {
      KERNELPATH_CHECK_OK(report.output.check());
    }
    const std::string logits = settings_.text(Option::kDumpLogits);
    return logits.empty() || !ranks_.is_first() ? Result<void>() : Output::file(logits).check();
  }

  struct Work {
    RunRequests requests;
    RunTokenizer tokenizer;
    std::vector<Prompt> prompts;
    SessionOptions options;
  };
  Result<Work> prepare(const engines::Resolution& resolution) {
    Work out;
    KERNELPATH_CHECK_OK(check_outputs());
    KERNELPATH_TRY(requests, read_requests(settings_));
    out.requests = std::move(requests);
    if (const auto ignored = ignored_sampling(settings_); !ignored.empty()) {
      invocation_.log.warn(join(ignored, ", ") +
                           " without --temperature above 0: the likeliest token is taken, and "
                           "nothing is drawn");
    }
    KERNELPATH_TRY(loaded, load_tokenizer(beside_, out.requests));
    out.tokenizer = std::move(loaded);
    if (out.tokenizer.missing) {
      invocation_.log.warn(fmt::format("no tokenizer ({}): token ids take the place of text",
                                       out.tokenizer.missing->text()));
    }
    KERNELPATH_TRY(prompts, encode_requests(out.requests, beside_, out.tokenizer.tokenizer.get()));
    out.prompts = std::move(prompts);
    if (out.prompts.empty()) return out;
    KERNELPATH_CHECK_OK(match_expected(out.requests, out.prompts));
    KERNELPATH_TRY(options, session_options({.settings = settings_,
                                             .request = request_,
                                             .resolution = resolution,
                                             .ranks = ranks_,
                                             .weights = weights_},
                                            out.prompts));
    out.options = std::move(options);
    return out;
  }

  Result<int> generate(const engines::Resolution& resolution) {
    KERNELPATH_CHECK_OK(ranks_.share_input(reads_standard_input(settings_)));
    KERNELPATH_TRY(work, ranks_.agree_on(prepare(resolution)));
    RunRequests& requests = work.requests;
    std::vector<Prompt>& prompts = work.prompts;
    const SessionOptions& options = work.options;
    const tokenizer::Tokenizer* const tokenizer = work.tokenizer.tokenizer.get();
    if (prompts.empty()) {
      log_failures(requests);
      return code_;
    }
    if (settings_.flag(Option::kDryRun)) {
      return dry_run(options, requests, static_cast<std::int64_t>(prompts.size()));
    }
    KERNELPATH_TRY(session, runtime::Session::open(request_, options, tokenizer,
                                                   end_tokens(tokenizer, answer_->model)));
    KERNELPATH_CHECK_OK(warn(session->model().warnings()));
    announce(session->plan(), options);
    if (const auto warning = length_warning(request_)) invocation_.log.warn(*warning);
    KERNELPATH_CHECK_OK(check_texts(requests, tokenizer));
    return execute(*session, options, requests, std::move(prompts));
  }

  // Each rank has read its part of the weights.
  Result<void> warn(std::span<const json::Warning> warnings) {
    std::vector<std::string> own;
    own.reserve(warnings.size());
    for (const json::Warning& warning : warnings) {
      own.push_back(fmt::format("{}: {}", warning.where, warning.message));
    }
    KERNELPATH_TRY(lines, ranks_.lines_of_all(own));
    for (const std::string& line : lines) invocation_.log.warn(line);
    return {};
  }

  // What one wants to know before the first token.
  void announce(const runtime::SessionPlan& plan, const SessionOptions& options) const {
    for (const std::string& line : plan_lines(*answer_, plan, options)) invocation_.log.note(line);
  }

  // The plan as a table, or as the document of a run that answered nothing.
  [[nodiscard]] Result<int> dry_run(const SessionOptions& options, const RunRequests& requests,
                                    std::int64_t prompts) {
    KERNELPATH_TRY(plan, runtime::plan_session(request_, options));
    announce(plan, options);
    std::vector<ReportFile> files = own_reports();
    const auto is_table = [](const ReportFile& file) {
      return file.format == "text" || file.format == "md";
    };
    for (ReportFile& file : files) {
      if (!is_table(file)) continue;
      const std::vector<report::Block> blocks = {plan_table(plan, options.ranks)};
      KERNELPATH_CHECK_OK(file.output.write(file.format == "md"
                                                ? report::render_markdown(blocks)
                                                : report::render_text(blocks, file.view)));
      KERNELPATH_CHECK_OK(file.output.commit());
    }
    std::erase_if(files, is_table);
    RunReports reports(std::move(files));
    const runtime::SessionMemory nothing_measured;
    KERNELPATH_CHECK_OK(reports.begin({.tool = tool_of(invocation_.program),
                                       .answer = *answer_,
                                       .plan = plan,
                                       .requests = prompts + std::ssize(requests.failed),
                                       .threads = options.threads,
                                       .kernels = kernels::cpu::isa_name(options.isa),
                                       .memory = nothing_measured}));
    KERNELPATH_CHECK_OK(reports.end({}));
    log_failures(requests);
    return code_;
  }

  // One rank writes.
  [[nodiscard]] std::vector<ReportFile> own_reports() const {
    return ranks_.is_first() ? make_reports(invocation_, {}) : std::vector<ReportFile>();
  }

  // Of a batch: what could not be answered makes a finding of the run.
  void log_failures(const RunRequests& requests) {
    for (const FailedRequest& request : requests.failed) invocation_.log.error(request.error);
    if (!requests.failed.empty()) code_ = kExitFinding;
  }

  // A golden's texts must give its tokens.
  Result<void> check_texts(const RunRequests& requests, const tokenizer::Tokenizer* tokenizer) {
    for (const runtime::ExpectedRun& run : requests.expected) {
      if (!run.text || tokenizer == nullptr) continue;
      KERNELPATH_TRY(tokens, tokenizer->encode(*run.text));
      if (tokens == run.prompt_ids) continue;
      invocation_.log.finding(
          fmt::format("prompt {}: its text gives other tokens than prompt_ids", run.id));
      code_ = kExitFinding;
    }
    return {};
  }

  // Prompts that cannot be run here; of a batch the others are.
  Result<void> add_prompts(runtime::Generator& generator, std::vector<Prompt> prompts,
                           RunRequests& requests) const {
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const std::string id = prompts[i].id;
      Result<void> added = generator.add(std::move(prompts[i]));
      if (added) continue;
      Error error = std::move(added).error();
      if (requests.answers_each) {
        error.file = settings_.text(Option::kPrompts);
        requests.failed.push_back({id, std::move(error)});
        continue;
      }
      const bool from_golden = !requests.expected.empty() && !requests.picks_expected;
      if (from_golden) {
        error.code = ErrorCode::kInputSchema;
        error.file = settings_.text(Option::kExpect);
        error.where = fmt::format("/prompts/{}/prompt_ids", i);
      }
      return fail(std::move(error));
    }
    return {};
  }

  Result<int> execute(runtime::Session& session, const SessionOptions& options,
                      RunRequests& requests, std::vector<Prompt> prompts) {
    const auto count = static_cast<std::int64_t>(prompts.size() + requests.failed.size());
    KERNELPATH_CHECK_OK(add_prompts(session.generator(), std::move(prompts), requests));
    const std::string logits_file = ranks_.is_first() ? settings_.text(Option::kDumpLogits) : "";
    KERNELPATH_TRY(logits, ranks_.agree_on(LogitsFile::open(logits_file, count)));
    // With --expect the comparison is the answer.
    const bool compares = !requests.expected.empty();
    RunReports reports(own_reports());
    Progress progress(shows_progress(settings_, invocation_.environment, count), count);
    Sink sink({reports, logits, progress}, compares);
    Result<void> begun = reports.begin({.tool = tool_of(invocation_.program),
                                        .answer = *answer_,
                                        .plan = session.plan(),
                                        .requests = count,
                                        .has_text = session.has_text(),
                                        .compares = compares,
                                        .threads = options.threads,
                                        .kernels = kernels::cpu::isa_name(options.isa),
                                        .huge_pages = session.huge_pages(),
                                        .memory = session.memory()});
    for (const FailedRequest& request : requests.failed) {
      if (begun) begun = reports.failed(request);
      progress.count_done();
    }
    Result<void> ran = steps(session.generator(), sink, std::move(begun));
    progress.hide();
    // Whatever went wrong, what was generated until then is kept.
    if (!ran) std::ignore = session.generator().cancel(sink);
    if (compares && ran) ran = reports.compared(comparisons(requests, sink));
    Result<void> ended = reports.end(session.generator().totals());
    Result<void> kept = logits.commit();
    KERNELPATH_CHECK_OK(ran);
    KERNELPATH_CHECK_OK(ended);
    KERNELPATH_CHECK_OK(kept);
    if (settings_.flag(Option::kStats)) print_stats(session);
    requests.failed.insert(requests.failed.end(), sink.failed().begin(), sink.failed().end());
    if (!requests.answers_each && !requests.failed.empty()) {
      return fail(requests.failed.front().error);
    }
    log_failures(requests);
    return code_;
  }

  struct Sinks {
    RunReports& reports;
    LogitsFile& logits;
    Progress& progress;
  };

  class Sink : public runtime::EventSink {
   public:
    Sink(const Sinks& to, bool keeps_tokens) : to_(to), keeps_tokens_(keeps_tokens) {}

    Result<void> token(const runtime::TokenEvent& event) override {
      if (keeps_tokens_) tokens_[event.request].push_back(event.sampled.token);
      checksum_ = (checksum_ ^ static_cast<std::uint64_t>(event.sampled.token)) * kPrime;
      to_.progress.count_token();
      KERNELPATH_CHECK_OK(to_.logits.append(event.logits));
      return to_.reports.token(event);
    }

    Result<void> done(const runtime::DoneEvent& event) override {
      if (event.error) failed_.push_back({event.request, *event.error});
      if (event.reason != runtime::FinishReason::kCancelled) finished_.insert(event.request);
      to_.progress.count_done();
      if (shares_terminal_) to_.progress.hide();
      return to_.reports.done(event);
    }

    [[nodiscard]] std::vector<std::int32_t> tokens(const std::string& request) const {
      const auto found = tokens_.find(request);
      return found == tokens_.end() ? std::vector<std::int32_t>() : found->second;
    }
    [[nodiscard]] bool has_finished(const std::string& request) const {
      return finished_.contains(request);
    }
    [[nodiscard]] const std::vector<FailedRequest>& failed() const { return failed_; }
    [[nodiscard]] std::uint64_t checksum() const { return checksum_; }  // of all tokens (FNV)
    void draw_progress() { to_.progress.draw(); }
    [[nodiscard]] bool readers_are_gone() const {
      return !keeps_tokens_ && to_.reports.readers_are_gone();
    }

   private:
    static constexpr std::uint64_t kPrime = 1099511628211U;

    Sinks to_;
    bool keeps_tokens_;
    std::uint64_t checksum_ = 14695981039346656037U;
    bool shares_terminal_ = is_terminal(STDOUT_FILENO);
    std::map<std::string, std::vector<std::int32_t>> tokens_;
    std::set<std::string, std::less<>> finished_;
    std::vector<FailedRequest> failed_;
  };

  // What was finished before an interruption stays printed; what was not is printed as far as it
  // is.
  Result<void> steps(runtime::Generator& generator, Sink& sink, Result<void> fared) {
    for (bool goes_on = true;;) {
      KERNELPATH_TRY(next, ranks_.next_step({.fared = std::move(fared),
                                             .stopped = stop_signal() != 0,
                                             .unread = ranks_.is_first() && sink.readers_are_gone(),
                                             .tokens = sink.checksum()}));
      if (next == NextStep::kCancel) return generator.cancel(sink);
      if (next == NextStep::kEnd || !goes_on) return {};
      sink.draw_progress();
      const Result<bool> worked = generator.step(sink);
      goes_on = worked && *worked;
      fared = worked ? Result<void>() : Result<void>(fail(worked.error()));
    }
  }

  void print_stats(const runtime::Session& session) const {
    const runtime::GeneratorTotals& totals = session.totals();
    const auto rate = [](std::int64_t tokens, double seconds) {
      return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
    };
    invocation_.log.note(fmt::format(
        "{} steps; steps with prompts: {} tokens in {:.3f} s, {:.1f} a second; decoding: {} "
        "tokens in {:.3f} s, {:.1f} a second",
        totals.steps, totals.prefill_tokens, totals.prefill_s,
        rate(totals.prefill_tokens, totals.prefill_s), totals.decode_tokens, totals.decode_s,
        rate(totals.decode_tokens, totals.decode_s)));
    const std::string memory = memory_line(session.plan(), session.memory());
    if (!memory.empty()) invocation_.log.note(memory);
  }

  // What the golden's runs gave; a difference is a finding.
  std::vector<Comparison> comparisons(const RunRequests& requests, const Sink& sink) {
    std::vector<Comparison> out;
    out.reserve(requests.expected.size());
    for (std::size_t i = 0; i < requests.expected.size(); ++i) {
      const std::string& id =
          requests.picks_expected ? requests.requests.front().id : requests.requests[i].id;
      out.push_back(compare_run(requests.expected[i], id, sink.tokens(id), sink.has_finished(id)));
      if (out.back().difference) code_ = kExitFinding;
    }
    return out;
  }

  const Invocation& invocation_;
  Settings settings_;
  RunRanks& ranks_;
  std::string folder_;   // MODEL
  std::string weights_;  // folder or GGUF file
  std::string beside_;   // folder of the tokenizer
  std::optional<report::InputAnswer> answer_;
  engines::Request request_;
  int code_ = kExitOk;
};

}  // namespace

const Program& run_program_description() {
  static const Program kProgram = {
      .kind = ProgramKind::kRun,
      .name = "llm-run",
      .summary = "runs a Hugging Face checkpoint: paged KV cache, continuous batching, on the CPU",
      .usage = "[options] MODEL",
      .examples = kExamples,
      .formats = "text|json|jsonl|md"};
  return kProgram;
}

int run_generation(const Invocation& invocation) {
  RunRanks ranks(invocation);
  const Result<int> code = ranks.run([&] { return GenerationRun(invocation, ranks).run(); });
  if (code) return *code;
  return report_error(invocation.log, code.error());
}

}  // namespace kernelpath::cli
