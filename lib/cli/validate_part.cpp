#include "cli/validate_part.h"

#include "base/text.h"
#include "cli/own_findings.h"
#include "report/validate_build.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::cli {
namespace {

std::string field_text(const features::Context& context, std::string_view option) {
  const features::Schema& schema = context.table().schema;
  for (std::uint32_t i = 0; i < schema.size(); ++i) {
    const features::FieldInfo& field = schema.field(i);
    if (field.kind != features::FieldKind::kArgument || field.option != option) continue;
    // Null: the engine chooses.
    return context.value(i).is_null() ? "auto" : features::to_display(context.value(i));
  }
  return {};
}

// "TRTLLM; KV fp8": of the resolution, else as the arguments ask for it.
std::string summary_of(const JudgedEngine& judged) {
  if (!judged.resolved.target) {
    const features::Context context = features::context_of(judged.combination);
    return fmt::format("{}; KV {}", to_upper(field_text(context, "--backend")),
                       field_text(context, "--kv"));
  }
  const engines::Resolution& target = *judged.resolved.target;
  if (target.error) return fmt::format("{}: {}", target.error->code, target.error->message);
  const features::ResolvedFacts& facts = judged.combination.facts.resolved;
  std::string out = target.selected_backend;
  if (facts.kv_dtype) out += "; KV " + *facts.kv_dtype;
  if (facts.draft_backend) out += "; draft on " + *facts.draft_backend;
  return out;
}

// An engine's own rule that knows the cause speaks instead of the shared one that sees the effect.
void drop_said(const report::EngineFindings& own, report::EngineFindings& shared) {
  const bool chunk_lost = std::any_of(own.findings.begin(), own.findings.end(),
                                      [](const report::ReportedFinding& finding) {
                                        return finding.finding.id == "CASE-CHUNK-LOST" ||
                                               finding.finding.id == "LLAMA4-CHUNK-IGNORED";
                                      });
  if (!chunk_lost) return;
  std::erase_if(shared.findings, [](const report::ReportedFinding& finding) {
    return finding.finding.id == "CHUNK-IGNORED";
  });
}

bool counts(const features::Scope& scope, std::string_view id) {
  const auto names = [id](const std::vector<std::string>& ids) {
    return std::any_of(ids.begin(), ids.end(),
                       [id](const std::string& name) { return equal_ignoring_case(name, id); });
  };
  return !names(scope.skip) && (scope.only.empty() || names(scope.only));
}

}  // namespace

EnginePart engine_part(const EngineCombination& combination, const JudgedEngine& judged,
                       const features::CommandReading* command, const LoadedModel* model) {
  const engines::Engine& engine = *combination.engine;
  const report::PlaceSources sources{
      .arguments = &judged.combination.arguments,
      .model = model != nullptr ? &model->config : nullptr,
      .model_document = model != nullptr && model->document ? &*model->document : nullptr};
  EnginePart out{
      .own = report::engine_findings(engine.name(), engine.version(),
                                     features::judge_combination(judged.combination), sources),
      .shared =
          report::engine_findings("all", "", features::judge_shared(judged.combination), sources)};
  drop_said(out.own, out.shared);
  if (judged.resolved.target) {
    add_resolution_findings(engine, *judged.resolved.target, out.shared, out.own);
  }
  if (command != nullptr) {
    for (report::ReportedFinding& finding : command_findings(*command)) {
      out.own.findings.push_back(std::move(finding));
    }
  }
  std::erase_if(out.own.findings, [&](const report::ReportedFinding& finding) {
    return !counts(judged.combination.scope, finding.finding.id);
  });
  out.own.summary = summary_of(judged);
  return out;
}

}  // namespace kernelpath::cli
