#include "cli/run.h"

#include "base/file.h"
#include "base/rounding.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/logits_file.h"
#include "cli/model_input.h"
#include "cli/output.h"
#include "cli/question.h"
#include "cli/report_files.h"
#include "cli/run_memory.h"
#include "cli/run_progress.h"
#include "cli/run_report.h"
#include "cli/run_requests.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "engines/engine.h"
#include "runtime/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <thread>
#include <tuple>
#include <unistd.h>

namespace kernelpath::cli {
namespace {

using runtime::Prompt;
using runtime::SessionOptions;

constexpr std::string_view kEngine = "kernelpath";
constexpr std::int64_t kMostSequences = 16;   // that run at one time, unless --batch-size says
constexpr std::int64_t kBatchedTokens = 512;  // of one step: prompts come in chunks of it
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
                 .message = is_cuda ? "this build has no CUDA kernels"
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
  explicit GenerationRun(const Invocation& invocation)
      : invocation_(invocation), settings_(invocation.settings) {}

  Result<int> run() {
    KERNELPATH_CHECK_OK(check_models());
    KERNELPATH_TRY(question, own_question(invocation_, settings_));
    KERNELPATH_TRY(model, load_input(folder_, question.load));
    KERNELPATH_TRY(answer, answer_question(question, std::move(model)));
    answer_ = std::move(answer);
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
  Result<void> check_models() {
    if (invocation_.models.size() != 1 || invocation_.models.front() == "-") {
      return fail({.code = ErrorCode::kUsage,
                   .message = "takes one MODEL: a folder with config.json and weights, or a GGUF "
                              "file"});
    }
    folder_ = invocation_.models.front();
    KERNELPATH_TRY(kind, path_kind(folder_));
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

  [[nodiscard]] Result<SessionOptions> session_options(const engines::Resolution& resolution,
                                                       const std::vector<Prompt>& prompts) const {
    SessionOptions out{.weights = weights_, .model_class = resolution.model_class};
    const unsigned cores = std::max(std::thread::hardware_concurrency(), 1U);
    out.threads = static_cast<int>(settings_.integer(Option::kThreads).value_or(cores));
    const auto requests = static_cast<std::int64_t>(prompts.size());
    out.limits.max_sequences =
        settings_.integer(Option::kBatchSize).value_or(std::min(requests, kMostSequences));
    out.limits.max_batched_tokens = std::max(kBatchedTokens, 2 * out.limits.max_sequences);
    out.kv_bytes = settings_.integer(Option::kKvMemory);
    out.kv_tokens = needed_tokens(prompts, out.limits.max_sequences);
    out.ngrams = request_.deployment.speculative.has_value();
    out.draft_tokens = request_.deployment.draft_tokens.value_or(out.draft_tokens);
    out.max_model_len = request_.deployment.max_model_len;
    KERNELPATH_TRY(isa, chosen_kernels(resolution));
    out.isa = isa;
    return out;
  }

  // VANILLA is the reference; the others take the fastest set, or the one that --kernel names.
  [[nodiscard]] Result<kernels::cpu::Isa> chosen_kernels(
      const engines::Resolution& resolution) const {
    const bool vanilla = resolution.selected_backend == "VANILLA";
    if (!settings_.is_set(Option::kKernel)) {
      return vanilla ? kernels::cpu::Isa::kReference : kernels::cpu::best_isa();
    }
    const std::string& name = settings_.text(Option::kKernel);
    const auto isa = kernels::cpu::find_isa(name).value_or(kernels::cpu::Isa::kReference);
    if (vanilla && isa != kernels::cpu::Isa::kReference) {
      return fail({.code = ErrorCode::kUsageConflict,
                   .message = "backend VANILLA has the kernels 'reference' alone",
                   .where = "--kernel",
                   .value = name});
    }
    if (kernels::cpu::has_isa(isa)) return isa;
    std::vector<std::string> known;
    for (const kernels::cpu::Isa one : kernels::cpu::kIsas) {
      if (kernels::cpu::has_isa(one)) known.emplace_back(kernels::cpu::isa_name(one));
    }
    return fail({.code = ErrorCode::kUnavailable,
                 .message = "this processor does not have it; it has " + join_words(known),
                 .where = "--kernel",
                 .value = name});
  }

  // Room for the longest requests that can run at the same time, each in whole pages and one more
  // for the copy of a shared one.
  [[nodiscard]] std::int64_t needed_tokens(const std::vector<Prompt>& prompts,
                                           std::int64_t sequences) const {
    const std::int64_t page = request_.deployment.page_size.value_or(16);
    std::vector<std::int64_t> sizes;
    sizes.reserve(prompts.size());
    for (const Prompt& prompt : prompts) {
      const auto tokens =
          std::min(static_cast<std::int64_t>(prompt.tokens.size()) + prompt.max_tokens, longest());
      sizes.push_back(round_up(tokens, page) + page);
    }
    std::ranges::sort(sizes, std::greater());
    std::int64_t out = 0;
    for (std::size_t i = 0; i < sizes.size() && static_cast<std::int64_t>(i) < sequences; ++i) {
      out += sizes[i];
    }
    return out;
  }

  // No sequence is longer, whatever a request says.
  [[nodiscard]] std::int64_t longest() const {
    constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max() / 2;
    return request_.deployment.max_model_len.value_or(
        request_.model.max_position_embeddings.value_or(kUnknown));
  }

  Result<int> generate(const engines::Resolution& resolution) {
    KERNELPATH_TRY(requests, read_requests(settings_));
    KERNELPATH_TRY(loaded, load_tokenizer(beside_, requests));
    const tokenizer::Tokenizer* const tokenizer = loaded.tokenizer.get();
    if (loaded.missing) {
      invocation_.log.warn(fmt::format("no tokenizer ({}): token ids take the place of text",
                                       loaded.missing->text()));
    }
    KERNELPATH_TRY(prompts, encode_requests(requests, beside_, tokenizer));
    if (prompts.empty()) {
      log_failures(requests);
      return code_;
    }
    KERNELPATH_CHECK_OK(match_expected(requests, prompts));
    KERNELPATH_TRY(options, session_options(resolution, prompts));
    if (settings_.flag(Option::kDryRun)) {
      return dry_run(options, requests, static_cast<std::int64_t>(prompts.size()));
    }
    KERNELPATH_TRY(session, runtime::Session::open(request_, options, tokenizer,
                                                   end_tokens(tokenizer, answer_->model)));
    for (const json::Warning& warning : session->model().warnings()) {
      invocation_.log.warn(fmt::format("{}: {}", warning.where, warning.message));
    }
    announce(session->plan(), options);
    KERNELPATH_CHECK_OK(check_texts(requests, tokenizer));
    return execute(*session, options, requests, std::move(prompts));
  }

  // model, parameters, size, backend, cache: what one wants to know before the first token.
  void announce(const runtime::SessionPlan& plan, const SessionOptions& options) const {
    const engines::Resolution& resolution = answer_->engines.front().resolution;
    invocation_.log.note(fmt::format("{}  {}  weights {}  {} ({}, {} threads)  KV {} in {} pages",
                                     answer_->model.name, resolution.model_class,
                                     format_bytes(plan.weight_bytes), resolution.selected_backend,
                                     kernels::cpu::isa_name(options.isa), options.threads,
                                     format_bytes(plan.kv_bytes), plan.kv_blocks));
  }

  // The plan as a table, or as the document of a run that answered nothing.
  [[nodiscard]] Result<int> dry_run(const SessionOptions& options, const RunRequests& requests,
                                    std::int64_t prompts) {
    KERNELPATH_TRY(plan, runtime::plan_session(request_, options));
    announce(plan, options);
    std::vector<ReportFile> files = make_reports(invocation_, {});
    for (ReportFile& file : files) {
      if (file.format != "text") continue;
      KERNELPATH_CHECK_OK(file.output.write(plan_table(plan)));
      KERNELPATH_CHECK_OK(file.output.commit());
    }
    std::erase_if(files, [](const ReportFile& file) { return file.format == "text"; });
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
  static Result<void> add_prompts(runtime::Generator& generator, std::vector<Prompt> prompts,
                                  RunRequests& requests) {
    for (Prompt& prompt : prompts) {
      const std::string id = prompt.id;
      Result<void> added = generator.add(std::move(prompt));
      if (added) continue;
      if (!requests.answers_each) return added;
      requests.failed.push_back({id, std::move(added).error()});
    }
    return {};
  }

  Result<int> execute(runtime::Session& session, const SessionOptions& options,
                      RunRequests& requests, std::vector<Prompt> prompts) {
    const auto count = static_cast<std::int64_t>(prompts.size() + requests.failed.size());
    KERNELPATH_CHECK_OK(add_prompts(session.generator(), std::move(prompts), requests));
    KERNELPATH_TRY(logits, LogitsFile::open(settings_.text(Option::kDumpLogits), count));
    // With --expect the comparison is the answer.
    const bool compares = !requests.expected.empty();
    RunReports reports(compares ? std::vector<ReportFile>() : make_reports(invocation_, {}));
    Progress progress(shows_progress(settings_, invocation_.environment, count), count);
    Sink sink({reports, logits, progress}, compares);
    KERNELPATH_CHECK_OK(reports.begin({.tool = tool_of(invocation_.program),
                                       .answer = *answer_,
                                       .plan = session.plan(),
                                       .requests = count,
                                       .has_text = session.has_text(),
                                       .threads = options.threads,
                                       .kernels = kernels::cpu::isa_name(options.isa),
                                       .huge_pages = session.huge_pages(),
                                       .memory = session.memory()}));
    for (const FailedRequest& request : requests.failed) {
      KERNELPATH_CHECK_OK(reports.failed(request));
      progress.count_done();
    }
    Result<void> ran = steps(session.generator(), sink);
    progress.hide();
    // Whatever went wrong, what was generated until then is kept.
    if (!ran) std::ignore = session.generator().cancel(sink);
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
    if (compares) KERNELPATH_CHECK_OK(compare(requests, sink));
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
      to_.progress.count_token();
      KERNELPATH_CHECK_OK(to_.logits.append(event.logits));
      return to_.reports.token(event);
    }

    Result<void> done(const runtime::DoneEvent& event) override {
      if (event.error) failed_.push_back({event.request, *event.error});
      to_.progress.count_done();
      if (shares_terminal_) to_.progress.hide();
      return to_.reports.done(event);
    }

    [[nodiscard]] std::vector<std::int32_t> tokens(const std::string& request) const {
      const auto found = tokens_.find(request);
      return found == tokens_.end() ? std::vector<std::int32_t>() : found->second;
    }
    [[nodiscard]] const std::vector<FailedRequest>& failed() const { return failed_; }
    void draw_progress() { to_.progress.draw(); }
    [[nodiscard]] bool readers_are_gone() const {
      return !keeps_tokens_ && to_.reports.readers_are_gone();
    }

   private:
    Sinks to_;
    bool keeps_tokens_;
    bool shares_terminal_ = is_terminal(STDOUT_FILENO);
    std::map<std::string, std::vector<std::int32_t>> tokens_;
    std::vector<FailedRequest> failed_;
  };

  // What was finished before an interruption stays printed; what was not is printed as far as it
  // is.
  static Result<void> steps(runtime::Generator& generator, Sink& sink) {
    for (;;) {
      if (stop_signal() != 0) return generator.cancel(sink);
      if (sink.readers_are_gone()) return {};
      sink.draw_progress();
      KERNELPATH_TRY(worked, generator.step(sink));
      if (!worked) return {};
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

  Result<void> compare(const RunRequests& requests, const Sink& sink) {
    std::string text;
    for (std::size_t i = 0; i < requests.expected.size(); ++i) {
      const runtime::ExpectedRun& run = requests.expected[i];
      const std::string& id =
          requests.picks_expected ? requests.requests.front().id : requests.requests[i].id;
      const auto difference = runtime::first_difference(run, sink.tokens(id));
      if (!difference) {
        text += fmt::format("prompt {}: as expected\n", run.id);
        continue;
      }
      code_ = kExitFinding;
      text += fmt::format("prompt {}: step {}: expected token {}, found {} (gap {:.3g})\n", run.id,
                          difference->step, difference->expected,
                          difference->found ? std::to_string(*difference->found) : "the end",
                          difference->gap);
    }
    Output out = Output::standard_output();
    KERNELPATH_CHECK_OK(out.write(text));
    return out.commit();
  }

  const Invocation& invocation_;
  Settings settings_;
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
      .formats = "text|json|jsonl"};
  return kProgram;
}

int run_generation(const Invocation& invocation) {
  const Result<int> code = GenerationRun(invocation).run();
  if (code) return *code;
  invocation.log.error(code.error());
  return error_info(code.error().code).exit_code;
}

}  // namespace kernelpath::cli
