#include "cli/validate.h"

#include "base/file.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/report_files.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "cli/validate_answer.h"
#include "cli/validate_batch.h"
#include "cli/validate_matrix.h"
#include "cli/validate_report.h"

#include <fmt/format.h>

#include <array>
#include <unistd.h>

namespace kernelpath::cli {
namespace {

constexpr std::array<std::string_view, 2> kExamples = {
    "llm-validate DeepSeek-V3 --device h200 --kv fp8 --speculative eagle --tp 8 --suggest",
    "llm-validate --kv fp8 --backend flashinfer --yaml extra_llm_api_options.yaml"};

Result<void> check_use(const Invocation& invocation) {
  const Settings& settings = invocation.settings;
  const std::string& batch = settings.text(Option::kBatch);
  if (batch == "-" && is_terminal(STDIN_FILENO)) {
    return fail(
        {.code = ErrorCode::kUsage, .message = "--batch is '-', but standard input is a terminal"});
  }
  if (!batch.empty() && settings.is_set(Option::kMatrix)) {
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = "--batch and --matrix ask for two kinds of answers"});
  }
  KERNELPATH_CHECK_OK(check_models(invocation.models));
  const bool asked = !invocation.models.empty() || !batch.empty() ||
                     settings.is_set(Option::kMatrix) || states_a_combination(settings);
  if (asked) return {};
  return fail(
      {.code = ErrorCode::kUsage,
       .message = "there is nothing to judge: no MODEL, and no option that states anything"});
}

// The MODELs; else the one that --command names, where it is here.
std::vector<std::string> models_of(const Invocation& invocation, const ValidateQuestion& question) {
  if (!invocation.models.empty() || !question.command) return invocation.models;
  const std::string& model = question.command->model;
  if (model.empty()) return {};
  const Result<PathKind> kind = path_kind(model);
  if (kind && *kind != PathKind::kMissing) return {model};
  invocation.log.hint(fmt::format(
      "{} is not here, so only the combination is judged; give its config.json or its GGUF file as "
      "MODEL",
      escape_for_terminal(model)));
  return {};
}

Result<int> judge_all(const Invocation& invocation, const ExternalModels& external) {
  KERNELPATH_TRY(question,
                 make_validate_question(invocation.settings, invocation.environment, external));
  report::ValidateReport report{.tool = tool_of(invocation.program)};
  const std::vector<std::string> models = models_of(invocation, question);
  int code = kExitOk;
  for (const std::string& path : models) {
    if (stop_signal() != 0) break;
    const Result<LoadedModel> model = load_with_text(path, question.base.load);
    // Half a configuration from an interrupted pipe is not an error of the input.
    if (stop_signal() != 0) break;
    if (!model) {
      code = worse(code, report_error(invocation.log, model.error()));
      continue;
    }
    for (const json::Warning& warning : model->config.warnings) {
      invocation.log.info(fmt::format("{}: {}: {}", path, warning.where, warning.message));
    }
    KERNELPATH_TRY(input, validate_input(question, &*model));
    report.inputs.push_back(std::move(input));
  }
  if (models.empty()) {
    KERNELPATH_TRY(input, validate_input(question, nullptr));
    report.inputs.push_back(std::move(input));
  }
  if (report.inputs.empty()) return code;
  KERNELPATH_CHECK_OK(apply_baseline_file(invocation.settings, report));
  code = worse(code, finding_code(invocation.settings, report));
  KERNELPATH_CHECK_OK(write_validate_reports(invocation, question.base.view, report, code));
  return code;
}

Result<int> answer(const Invocation& invocation, const ExternalModels& external) {
  if (invocation.settings.is_set(Option::kBatch)) {
    ValidateAnswers answers(invocation, external);
    return run_batch(invocation, answers);
  }
  if (invocation.settings.is_set(Option::kMatrix)) return run_matrix(invocation, external);
  return judge_all(invocation, external);
}

}  // namespace

const Program& validate_program() {
  static const Program kProgram = {
      .kind = ProgramKind::kValidate,
      .name = "llm-validate",
      .summary =
          "what an engine refuses, silently changes or gets wrong in a combination of "
          "model, options and device",
      .usage = "[options] [MODEL…]",
      .examples = kExamples,
      .formats = "text|json|jsonl|md|html|sarif|junit|github"};
  return kProgram;
}

int run_validate(const Invocation& invocation) {
  const Result<void> use = check_use(invocation);
  if (!use) return wrong_use(invocation, use.error());
  const Result<ExternalModels> external = load_external_models(invocation.settings);
  if (!external) return report_error(invocation.log, external.error());
  const Result<int> code = answer(invocation, *external);
  return code ? *code : report_error(invocation.log, code.error());
}

}  // namespace kernelpath::cli
