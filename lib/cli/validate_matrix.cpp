#include "cli/validate_matrix.h"

#include "base/build_info.h"
#include "base/text.h"
#include "cli/model_input.h"
#include "cli/report_files.h"
#include "cli/validate_judge.h"
#include "features/feature_matrix.h"
#include "features/matrix.h"
#include "report/validate_matrix.h"

#include <fmt/format.h>

#include <functional>
#include <optional>

namespace kernelpath::cli {
namespace {

report::Tool tool_of(const Invocation& invocation) {
  return {std::string(invocation.program.name), std::string(build_info().version)};
}

// The text in one format; empty if the matrix has none of it.
using Print = std::function<std::string(std::string_view)>;

Result<void> write_reports(const Invocation& invocation, const Print& print) {
  for (ReportFile& report : make_reports(invocation, {})) {
    const std::string text = print(report.format);
    if (text.empty()) {
      return fail({.code = ErrorCode::kUsage,
                   .message = "this matrix has no such format",
                   .where = "--format",
                   .value = report.format});
    }
    KERNELPATH_CHECK_OK(report.output.write(text));
    KERNELPATH_CHECK_OK(report.output.commit());
  }
  return {};
}

// The one engine that is asked, of those for which `has` holds.
Result<const EngineQuestion*> one_engine(const ValidateQuestion& question,
                                         const std::function<bool(std::string_view)>& has) {
  const EngineQuestion* out = nullptr;
  std::vector<std::string> names;
  for (const EngineQuestion& asked : question.base.engines) {
    if (!has(asked.engine->name())) continue;
    out = &asked;
    names.emplace_back(asked.engine->name());
  }
  if (names.size() == 1) return out;
  if (names.empty()) {
    return fail({.code = ErrorCode::kUnavailable,
                 .message = "the documentation of the engines asked has no feature matrix",
                 .where = "--matrix"});
  }
  return fail({.code = ErrorCode::kUsage,
               .message = "is about one engine: --engine " + join_words(names, "or"),
               .where = "--matrix"});
}

Result<int> run_features(const Invocation& invocation, const ValidateQuestion& question) {
  if (!invocation.models.empty()) {
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = "needs no MODEL; --matrix=AXIS,… judges one",
                 .where = "--matrix",
                 .value = shorten(invocation.models.front(), 64)});
  }
  KERNELPATH_TRY(engine, one_engine(question, [](std::string_view name) {
                   return features::find_feature_matrix(name) != nullptr;
                 }));
  const features::FeatureMatrix& matrix = *features::find_feature_matrix(engine->engine->name());
  KERNELPATH_CHECK_OK(write_reports(invocation, [&](std::string_view format) -> std::string {
    if (format == "text") return report::feature_matrix_text(matrix);
    if (format == "md") return report::feature_matrix_markdown(matrix);
    if (format == "html") return report::feature_matrix_html(matrix);
    if (format == "json") return report::feature_matrix_json(tool_of(invocation), matrix, 2);
    return {};
  }));
  return kExitOk;
}

// "page-size=32|64" (or with colons): the name and, where they are given, the values.
Result<features::MatrixAxis> read_axis(features::Context& context, const std::string& text) {
  const std::size_t end = text.find_first_of("=:");
  if (end == std::string::npos) return features::find_axis(context.table(), text);
  std::string values = text.substr(end + 1);
  for (char& c : values) {
    if (c == ':') c = '|';
  }
  return features::make_axis(context, text.substr(0, end), split(values, '|'));
}

Result<int> run_values(const Invocation& invocation, const ValidateQuestion& question) {
  if (invocation.models.size() > 1) {
    return fail({.code = ErrorCode::kUsage,
                 .message = "judges one MODEL, not several",
                 .where = "--matrix"});
  }
  std::optional<LoadedModel> model;
  if (!invocation.models.empty()) {
    Result<LoadedModel> loaded = load_with_text(invocation.models.front(), question.base.load);
    if (!loaded) return fail(std::move(loaded).error());
    model = std::move(*loaded);
  }
  KERNELPATH_TRY(engine, one_engine(question, [](std::string_view) { return true; }));
  KERNELPATH_TRY(asked, judge_engine(question, *engine, model ? &*model : nullptr));
  features::Context context = features::context_of(asked.combination);
  std::vector<features::MatrixAxis> axes;
  for (const std::string& text : split(invocation.settings.text(Option::kMatrix), ',')) {
    KERNELPATH_TRY(axis, read_axis(context, std::string(trim(text))));
    axes.push_back(std::move(axis));
  }
  KERNELPATH_TRY(matrix, features::judge_matrix(context, std::move(axes), question.scope));
  KERNELPATH_CHECK_OK(write_reports(invocation, [&](std::string_view format) -> std::string {
    if (format == "text") return report::value_matrix_text(matrix);
    if (format == "md") return report::value_matrix_markdown(matrix);
    if (format != "json") return {};
    return report::value_matrix_json(tool_of(invocation), matrix, engine->engine->name(), 2);
  }));
  return kExitOk;
}

}  // namespace

Result<int> run_matrix(const Invocation& invocation, const ExternalModels& external_models) {
  KERNELPATH_TRY(question, make_validate_question(invocation.settings, invocation.environment,
                                                  external_models));
  if (invocation.settings.text(Option::kMatrix).empty()) return run_features(invocation, question);
  return run_values(invocation, question);
}

}  // namespace kernelpath::cli
