#include "cli/validate_matrix.h"

#include "base/text.h"
#include "cli/matrix_facts.h"
#include "cli/model_input.h"
#include "cli/report_files.h"
#include "cli/validate_answer.h"
#include "cli/validate_judge.h"
#include "engines/kernelpath/capability_matrix.h"
#include "features/feature_matrix.h"
#include "features/matrix.h"
#include "report/validate_matrix.h"

#include <fmt/format.h>

#include <functional>
#include <optional>

namespace kernelpath::cli {
namespace {

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

// This project's own matrix is asked of the capability table, whose every claim a test runs.
features::FeatureMatrix own_matrix(const EngineQuestion& engine, const hardware::Device& device) {
  engines::kernelpath::CapabilityMatrix table = engines::kernelpath::capability_matrix(device);
  features::FeatureMatrix out;
  out.engine = engine.engine->name();
  out.version = engine.engine->version();
  out.source = {
      .project = out.engine, .file = "lib/attention/backend_table.h", .version = out.version};
  out.features = std::move(table.features);
  for (std::vector<std::string>& row : table.refusals) {
    std::vector<features::PairCell>& cells = out.cells.emplace_back();
    cells.reserve(row.size());
    for (std::string& refusal : row) {
      const auto status = refusal.empty() ? features::PairStatus::kYes : features::PairStatus::kNo;
      cells.push_back({.status = status, .reason = std::move(refusal)});
    }
  }
  return out;
}

// The matrix of the one engine that is asked. Where several are, the one whose documentation has
// one.
Result<features::FeatureMatrix> matrix_of(const ValidateQuestion& question) {
  const std::vector<EngineQuestion>& engines = question.base.engines;
  if (engines.size() == 1 && engines.front().engine->name() == "kernelpath") {
    return own_matrix(engines.front(), question.base.device);
  }
  for (const EngineQuestion& asked : engines) {
    const features::FeatureMatrix* const found =
        features::find_feature_matrix(asked.engine->name());
    if (found != nullptr) return *found;
  }
  return fail({.code = ErrorCode::kUnavailable,
               .message = "the documentation of the engines asked has no feature matrix",
               .where = "--matrix",
               .hint = "--engine trtllm has one, and --engine kernelpath asks its own table; "
                       "--matrix=backend,kv judges values for any engine"});
}

Result<int> run_features(const Invocation& invocation, const ValidateQuestion& question) {
  if (!invocation.models.empty()) {
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = "needs no MODEL; --matrix=AXIS,… judges one",
                 .where = "--matrix",
                 .value = shorten(invocation.models.front(), 64)});
  }
  KERNELPATH_TRY(matrix, matrix_of(question));
  KERNELPATH_CHECK_OK(write_reports(invocation, [&](std::string_view format) -> std::string {
    if (format == "text") return report::feature_matrix_text(matrix);
    if (format == "md") return report::feature_matrix_markdown(matrix);
    if (format == "html") return report::feature_matrix_html(matrix);
    if (format == "json")
      return report::feature_matrix_json(tool_of(invocation.program), matrix, 2);
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

using Axes = std::vector<features::MatrixAxis>;

Result<Axes> read_axes(features::Context& context, const std::string& text) {
  Axes out;
  for (const std::string& part : split(text, ',')) {
    KERNELPATH_TRY(axis, read_axis(context, std::string(trim(part))));
    out.push_back(std::move(axis));
  }
  return out;
}

// The verdicts by the engine's own rules and by those of all engines. Nothing of the matrix but its
// error: the engine has no such axis.
Result<report::EngineMatrix> engine_matrix(const Invocation& invocation,
                                           const ValidateQuestion& question,
                                           const EngineQuestion& engine, const Judge& judge) {
  KERNELPATH_TRY(base, engine_combination(question, engine));
  const JudgedEngine judged = judge(base);
  features::Context own = features::context_of(judged.combination);
  features::Context shared = features::shared_context_of(judged.combination);
  KERNELPATH_TRY(axes, read_axes(own, invocation.settings.text(Option::kMatrix)));
  MatrixFacts facts = matrix_facts(judge, base, axes, own, shared);
  KERNELPATH_TRY(matrix,
                 features::judge_matrix(own, std::move(axes),
                                        {.facts = std::move(facts.own), .scope = question.scope}));
  features::add_rules(matrix, shared, facts.shared, question.scope);
  return report::EngineMatrix{.engine = std::string(engine.engine->name()),
                              .version = std::string(engine.engine->version()),
                              .matrix = std::move(matrix)};
}

// Engines without one of the axes are left out, and that is said; an error if none is left.
Result<report::ValueMatrices> judge_values(const Invocation& invocation,
                                           const ValidateQuestion& question,
                                           const LoadedModel* model) {
  report::ValueMatrices out{.model = model != nullptr ? model->config.name : std::string(),
                            .device = device_text(question.base.device)};
  const Judge judge(question, model);
  std::optional<Error> refused;
  for (const EngineQuestion& engine : question.base.engines) {
    Result<report::EngineMatrix> matrix = engine_matrix(invocation, question, engine, judge);
    if (matrix) {
      out.engines.push_back(std::move(*matrix));
      continue;
    }
    if (matrix.error().code != ErrorCode::kUsageUnknown) return fail(std::move(matrix).error());
    invocation.log.info(fmt::format("{}: {}", engine.engine->name(), matrix.error().message));
    if (!refused) refused = std::move(matrix).error();
  }
  if (out.engines.empty() && refused) return fail(std::move(*refused));
  return out;
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
  KERNELPATH_TRY(matrices, judge_values(invocation, question, model ? &*model : nullptr));
  KERNELPATH_CHECK_OK(write_reports(invocation, [&](std::string_view format) -> std::string {
    if (format == "text") return report::value_matrix_text(matrices);
    if (format == "md") return report::value_matrix_markdown(matrices);
    if (format == "html") return report::value_matrix_html(matrices);
    if (format == "json")
      return report::value_matrix_json(tool_of(invocation.program), matrices, 2);
    return {};
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
