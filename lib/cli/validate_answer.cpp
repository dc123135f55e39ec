#include "cli/validate_answer.h"

#include "base/text.h"
#include "base/units.h"
#include "cli/own_findings.h"
#include "cli/validate_judge.h"
#include "cli/validate_suggest.h"
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
    return features::to_display(context.value(i));
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

// The engine's part of the report; `shared` gets what the rules of all engines found.
Result<report::EngineFindings> engine_part(const ValidateQuestion& question,
                                           const EngineQuestion& engine, const LoadedModel* model,
                                           report::EngineFindings& shared) {
  KERNELPATH_TRY(judged, judge_engine(question, engine, model));
  if (question.suggest) complete_suggestions(question, engine, model, judged);
  const report::PlaceSources sources{
      .arguments = &judged.combination.arguments,
      .model = model != nullptr ? &model->config : nullptr,
      .model_document = model != nullptr && model->document ? &*model->document : nullptr};
  report::EngineFindings out =
      report::engine_findings(engine.engine->name(), engine.engine->version(), judged.own, sources);
  shared = report::engine_findings("all", "", judged.shared, sources);
  drop_said(out, shared);
  if (judged.resolved.target) {
    const std::size_t own = out.findings.size();
    add_resolution_findings(*engine.engine, *judged.resolved.target, shared, out);
    for (std::size_t i = own; question.suggest && i < out.findings.size(); ++i) {
      if (out.findings[i].finding.level != features::Level::kError) continue;
      out.findings[i].suggestion = suggestion_for_refusal(question, engine, model);
    }
  }
  if (question.command) {
    for (report::ReportedFinding& finding : command_findings(*question.command)) {
      out.findings.push_back(std::move(finding));
    }
  }
  std::erase_if(out.findings, [&](const report::ReportedFinding& finding) {
    return !counts(question.scope, finding.finding.id);
  });
  out.summary = summary_of(judged);
  return out;
}

bool holds(const report::EngineFindings& findings, const report::ReportedFinding& wanted) {
  return std::any_of(findings.findings.begin(), findings.findings.end(),
                     [&wanted](const report::ReportedFinding& finding) {
                       return finding.finding.id == wanted.finding.id &&
                              finding.finding.message == wanted.finding.message;
                     });
}

// What the shared rules find alike in every engine is said once, of "all"; what depends on what an
// engine does stands under its name.
void add_shared(std::vector<report::EngineFindings>& engines,
                const std::vector<report::EngineFindings>& shared) {
  report::EngineFindings all{.engine = "all"};
  for (std::size_t i = 0; i < shared.size(); ++i) {
    for (const report::ReportedFinding& finding : shared[i].findings) {
      const bool everywhere = std::all_of(
          shared.begin(), shared.end(),
          [&finding](const report::EngineFindings& other) { return holds(other, finding); });
      if (!everywhere || shared.size() == 1) {
        engines[i].findings.push_back(finding);
      } else if (i == 0) {
        all.findings.push_back(finding);
      }
    }
  }
  if (!all.findings.empty()) engines.push_back(std::move(all));
}

}  // namespace

std::string device_text(const hardware::Device& device) {
  std::vector<std::string> facts;
  if (device.capability) facts.push_back(hardware::capability_text(*device.capability));
  if (device.memory_bytes) facts.push_back(format_bytes(*device.memory_bytes));
  return facts.empty() ? device.id : fmt::format("{} ({})", device.id, join(facts, ", "));
}

Result<report::ValidatedInput> validate_input(const ValidateQuestion& question,
                                              const LoadedModel* model) {
  report::ValidatedInput out{.model = model != nullptr ? model->config.name : std::string(),
                             .device = device_text(question.base.device)};
  std::vector<report::EngineFindings> shared;
  for (const EngineQuestion& engine : question.base.engines) {
    report::EngineFindings of_all;
    KERNELPATH_TRY(findings, engine_part(question, engine, model, of_all));
    out.engines.push_back(std::move(findings));
    shared.push_back(std::move(of_all));
  }
  add_shared(out.engines, shared);
  return out;
}

}  // namespace kernelpath::cli
