#include "cli/inspect_diff.h"

#include "base/text.h"
#include "cli/model_input.h"
#include "cli/report_files.h"
#include "cli/signals.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace kernelpath::cli {
namespace {

Error conflict(const Settings& settings, Option option, std::string message) {
  return {.code = ErrorCode::kUsageConflict,
          .message = std::move(message),
          .where = settings.of(option).where,
          .hint = "leave it out: --diff names its two engines"};
}

Result<void> check_beside(const Settings& settings) {
  constexpr std::array kExcluded = {Option::kEngine, Option::kRequire, Option::kWhyNot};
  for (const Option option : kExcluded) {
    const bool given = settings.of(option).set_by >= SetBy::kCommandLine &&
                       settings.of(option).set_by >= settings.of(Option::kDiff).set_by;
    if (given) return fail(conflict(settings, option, "does not go with --diff"));
  }
  return {};
}

std::string report_text(const ReportFile& file, const report::Tool& tool,
                        const std::vector<report::DiffAnswer>& answers) {
  if (file.format == "json") return report::diff_json(tool, answers);
  if (file.format == "jsonl") return report::diff_jsonl(tool, answers);
  if (file.format == "md") return report::diff_markdown(answers, file.view);
  return report::diff_text(answers, file.view);
}

Result<int> diff_models(const Invocation& invocation, const Question& question) {
  std::vector<ReportFile> reports = make_reports(invocation, question.view);
  std::vector<report::DiffAnswer> answers;
  int code = kExitOk;
  for (const std::string& path : invocation.models) {
    if (stop_signal() != 0) break;
    Result<config::ModelConfig> model = load_input(path, question.load);
    if (stop_signal() != 0) break;
    if (!model) {
      code = worse(code, report_error(invocation.log, model.error()));
      continue;
    }
    KERNELPATH_TRY(answer, answer_diff(question, std::move(*model)));
    answers.push_back(std::move(answer));
  }
  if (answers.empty()) return code;
  for (ReportFile& file : reports) {
    KERNELPATH_CHECK_OK(file.output.write(report_text(file, tool_of(invocation.program), answers)));
    KERNELPATH_CHECK_OK(file.output.commit());
  }
  return code;
}

}  // namespace

bool asks_for_diff(const Settings& settings) { return settings.is_set(Option::kDiff); }

Result<Settings> diff_settings(const Settings& settings) {
  const std::vector<std::string>& names = settings.list(Option::kDiff);
  const std::string& where = settings.of(Option::kDiff).where;
  if (names.size() != 2) {
    return fail({.code = ErrorCode::kUsage,
                 .message = "takes two engine versions: ENGINE@A ENGINE@B",
                 .where = where,
                 .value = shorten(join(names, " "), 64)});
  }
  KERNELPATH_CHECK_OK(check_beside(settings));
  std::vector<const engines::Engine*> engines;
  for (const std::string& name : names) {
    Result<const engines::Engine*> engine = engines::find_engine(name);
    if (!engine) {
      Error error = std::move(engine).error();
      error.where = where;
      return fail(std::move(error));
    }
    engines.push_back(*engine);
  }
  if (engines[0] == engines[1]) {
    return fail(
        {.code = ErrorCode::kUsageConflict,
         .message = fmt::format("both are {} {}", engines[0]->name(), engines[0]->version()),
         .where = where});
  }
  Settings out = settings;
  KERNELPATH_CHECK_OK(out.set(Option::kEngine, names, SetBy::kBatchLine, where));
  return out;
}

Result<report::DiffAnswer> answer_diff(const Question& question, config::ModelConfig model) {
  KERNELPATH_TRY(answer, answer_question(question, std::move(model)));
  report::DiffAnswer out{.model = answer.model.name,
                         .path = answer.model.path,
                         .device = answer.device.id,
                         .from = std::move(answer.engines.at(0).resolution),
                         .to = std::move(answer.engines.at(1).resolution),
                         .differences = {}};
  out.differences = engines::compare(out.from, out.to);
  return out;
}

int run_diff(const Invocation& invocation, const ExternalModels& external) {
  const Result<Settings> settings = diff_settings(invocation.settings);
  if (!settings) return report_error(invocation.log, settings.error());
  const Result<Question> question = make_question(*settings, invocation.environment, external);
  if (!question) return report_error(invocation.log, question.error());
  const Result<int> code = diff_models(invocation, *question);
  return code ? *code : report_error(invocation.log, code.error());
}

}  // namespace kernelpath::cli
