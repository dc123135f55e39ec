#include "cli/validate_batch.h"

#include "base/text.h"
#include "cli/batch_request.h"
#include "cli/report_files.h"
#include "cli/validate_answer.h"
#include "cli/validate_report.h"
#include "features/answer.h"
#include "json/writer.h"
#include "report/validate_document.h"

#include <fmt/format.h>

namespace kernelpath::cli {

Result<std::string> ValidateAnswers::answer_in(const json::Value& request, const json::Value& in) {
  KERNELPATH_TRY(name, batch_engine(request, invocation_.settings));
  KERNELPATH_TRY(engine, engines::find_engine(name));
  // Only `in` may name another op; without one it holds arguments.
  const json::Value* const op = request.find_non_null("op");
  const bool validates = op == nullptr || (op->is_string() && op->as_string() == "validate");
  if (!validates && in.find("op") == nullptr) {
    return fail({.code = ErrorCode::kBatchRequest,
                 .message = "llm-validate answers the op \"validate\"; llm-inspect has the others",
                 .value = op->brief()});
  }
  KERNELPATH_TRY(answer, features::answer_validate(engine->name(), in));
  return fmt::format(R"("out":{},"rule":{})", json::to_text(answer.out),
                     json::to_text(json::Value::string(answer.rule)));
}

Result<std::string> ValidateAnswers::answer_model(const Settings& settings,
                                                  const std::string& model, int& exit_code) {
  KERNELPATH_TRY(question, make_validate_question(settings, invocation_.environment, external_));
  KERNELPATH_TRY(loaded, load_with_text(model, question.base.load));
  KERNELPATH_TRY(input, validate_input(question, &loaded));
  report::ValidateReport report{.tool = tool_of(invocation_.program)};
  report.inputs.push_back(std::move(input));
  KERNELPATH_CHECK_OK(apply_baseline_file(settings, report));
  exit_code = finding_code(settings, report);
  return std::string(trim(report::validate_json(report, 0)));
}

}  // namespace kernelpath::cli
