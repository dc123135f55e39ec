#include "cli/inspect.h"

#include "base/text.h"
#include "cli/batch.h"
#include "cli/batch_request.h"
#include "cli/inspect_diff.h"
#include "cli/model_input.h"
#include "cli/question.h"
#include "cli/report_files.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "json/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unistd.h>

namespace kernelpath::cli {
namespace {

constexpr std::array<std::string_view, 2> kExamples = {
    "llm-inspect Llama-3.1-8B --device h200 --kv fp8",
    "llm-inspect config.json --engine trtllm --backend flashinfer --lacks flashinfer --why"};

Result<void> check_batch(const Settings& settings) {
  if (settings.text(Option::kBatch) != "-" || !is_terminal(STDIN_FILENO)) return {};
  return fail(
      {.code = ErrorCode::kUsage, .message = "--batch is '-', but standard input is a terminal"});
}

Result<void> check_inputs(const std::vector<std::string>& models) {
  if (models.empty()) return fail({.code = ErrorCode::kUsage, .message = "no MODEL is given"});
  return check_models(models);
}

bool all_readers_are_gone(const std::vector<ReportFile>& reports) {
  return std::all_of(reports.begin(), reports.end(),
                     [](const ReportFile& file) { return file.output.reader_is_gone(); });
}

// Findings, and a hint for somebody who reads the text.
int conclude(const Invocation& invocation, const Question& question,
             const std::vector<report::InputAnswer>& answers) {
  int code = kExitOk;
  for (const report::InputAnswer& answer : answers) {
    for (const std::string& finding : unmet_requirements(question, answer)) {
      invocation.log.finding(finding);
      code = kExitFinding;
    }
  }
  const bool text = invocation.settings.text(Option::kFormat) == "text";
  if (text && !answers.empty() && !question.view.why) {
    invocation.log.hint("--why lists every candidate and its reasons");
  }
  return code;
}

void log_engines(const Log& log, const report::InputAnswer& answer) {
  for (const report::EngineAnswer& engine : answer.engines) {
    const engines::Resolution& resolution = engine.resolution;
    log.debug(fmt::format("{}: {} {} says {} in {} steps", answer.model.name, resolution.engine,
                          resolution.version, engines::status_name(resolution.status),
                          resolution.steps.size()));
  }
}

Result<int> answer_models(const Invocation& invocation, const Question& question) {
  const report::Tool tool = tool_of(invocation.program);
  std::vector<ReportFile> reports = make_reports(invocation, question.view);
  std::vector<report::InputAnswer> answers;
  int code = kExitOk;
  for (const std::string& path : invocation.models) {
    if (stop_signal() != 0 || all_readers_are_gone(reports)) break;
    Result<config::ModelConfig> model = load_input(path, question.load);
    // Half a configuration from an interrupted pipe is not an error of the input.
    if (stop_signal() != 0) break;
    if (!model) {
      code = worse(code, report_error(invocation.log, model.error()));
      continue;
    }
    invocation.log.info(fmt::format("read {}", path));
    Result<report::InputAnswer> answer = answer_question(question, std::move(*model));
    if (!answer) return fail(std::move(answer).error());
    log_engines(invocation.log, *answer);
    KERNELPATH_CHECK_OK(add_answer(reports, tool, *answer));
    answers.push_back(std::move(*answer));
  }
  KERNELPATH_CHECK_OK(finish_reports(reports, tool, answers));
  return worse(code, conclude(invocation, question, answers));
}

class InspectAnswers : public BatchAnswers {
 public:
  InspectAnswers(const Invocation& invocation, const ExternalModels& external)
      : invocation_(invocation), external_(external) {}

  Result<std::string> answer_in(const json::Value& request, const json::Value& in) override {
    KERNELPATH_TRY(name, batch_engine(request, invocation_.settings));
    KERNELPATH_TRY(engine, engines::find_engine(name));
    KERNELPATH_TRY(op, batch_op(request, in));
    KERNELPATH_TRY(out, engine->answer(op, in));
    return "\"out\":" + json::to_text(out);
  }

  Result<std::string> answer_model(const Settings& settings, const std::string& model,
                                   int& exit_code) override {
    if (asks_for_diff(settings)) return answer_diff_of(settings, model);
    KERNELPATH_TRY(question, make_question(settings, invocation_.environment, external_));
    Result<config::ModelConfig> config = config::load_model(model, question.load);
    if (!config) return fail(std::move(config).error());
    Result<report::InputAnswer> answer = answer_question(question, std::move(*config));
    if (!answer) return fail(std::move(answer).error());
    for (const std::string& finding : unmet_requirements(question, *answer)) {
      invocation_.log.finding(finding);
      exit_code = kExitFinding;
    }
    std::vector<report::InputAnswer> answers;
    answers.push_back(std::move(*answer));
    json::Writer w;
    report::write_inspect(w, tool_of(invocation_.program), answers, question.view);
    return w.take(0);
  }

 private:
  Result<std::string> answer_diff_of(const Settings& settings, const std::string& model) {
    KERNELPATH_TRY(both, diff_settings(settings));
    KERNELPATH_TRY(question, make_question(both, invocation_.environment, external_));
    KERNELPATH_TRY(config, config::load_model(model, question.load));
    std::vector<report::DiffAnswer> answers;
    KERNELPATH_TRY(answer, answer_diff(question, std::move(config)));
    answers.push_back(std::move(answer));
    return report::diff_json_line(tool_of(invocation_.program), answers);
  }

  const Invocation& invocation_;
  const ExternalModels& external_;
};

}  // namespace

const Program& inspect_program() {
  static const Program kProgram = {
      .kind = ProgramKind::kInspect,
      .name = "llm-inspect",
      .summary = "which attention kernel a model's config.json resolves to in each engine, and why",
      .usage = "[options] MODEL…",
      .examples = kExamples,
      .formats = "text|json|jsonl|md"};
  return kProgram;
}

int run_inspect(const Invocation& invocation) {
  const bool batch = invocation.settings.is_set(Option::kBatch);
  const Result<void> inputs =
      batch ? check_batch(invocation.settings) : check_inputs(invocation.models);
  if (!inputs) return wrong_use(invocation, inputs.error());
  const Result<ExternalModels> external = load_external_models(invocation.settings);
  if (!external) return report_error(invocation.log, external.error());
  if (batch) {
    InspectAnswers answers(invocation, *external);
    return run_batch(invocation, answers);
  }
  if (asks_for_diff(invocation.settings)) return run_diff(invocation, *external);
  const Result<Question> question =
      make_question(invocation.settings, invocation.environment, *external);
  if (!question) return report_error(invocation.log, question.error());
  if (equal_ignoring_case(invocation.settings.text(Option::kDevice), "auto")) {
    invocation.log.warn(
        fmt::format("--device auto is {} ({})", question->device.id, question->device.label));
  }
  const Result<int> code = answer_models(invocation, *question);
  return code ? *code : report_error(invocation.log, code.error());
}

}  // namespace kernelpath::cli
