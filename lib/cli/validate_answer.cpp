#include "cli/validate_answer.h"

#include "base/text.h"
#include "base/units.h"
#include "cli/validate_part.h"
#include "cli/validate_suggest.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::cli {
namespace {

bool holds(const report::EngineFindings& findings, const report::ReportedFinding& wanted) {
  return std::any_of(findings.findings.begin(), findings.findings.end(),
                     [&wanted](const report::ReportedFinding& finding) {
                       return finding.finding.id == wanted.finding.id &&
                              finding.finding.message == wanted.finding.message &&
                              finding.suggestion == wanted.suggestion;
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

namespace {

// An engine of a single model would refuse every other one: unless it was asked by its name, it
// says nothing of them.
bool is_of_another_model(const EngineQuestion& engine, const LoadedModel* model) {
  if (model == nullptr || engine.named) return false;
  const std::vector<engines::TableRow> models = engine.engine->table("architectures");
  return models.size() == 1 &&
         std::ranges::find(model->config.architectures, models.front().name) ==
             model->config.architectures.end();
}

const std::string* cell_of(const engines::TableRow& row, std::string_view column) {
  for (const auto& [name, value] : row.columns) {
    if (name == column) return &value;
  }
  return nullptr;
}

// Nor does one whose backends all are for other devices, or not in this build.
bool is_of_another_device(const EngineQuestion& engine, const hardware::Device& device) {
  if (engine.named) return false;
  const std::string_view platform = hardware::platform_name(device.platform);
  bool any = false;
  for (const engines::TableRow& row : engine.engine->table("backends")) {
    const std::string* const stated = cell_of(row, "platform");
    if (stated == nullptr) return false;
    any = true;
    const std::string* const missing = cell_of(row, "missing");
    const bool runs = missing == nullptr || *missing == "-";
    if (*stated == platform && runs) return false;
  }
  return any;
}

}  // namespace

Result<report::ValidatedInput> validate_input(const ValidateQuestion& question,
                                              const LoadedModel* model) {
  report::ValidatedInput out{.model = model != nullptr ? model->config.name : std::string(),
                             .device = device_text(question.base.device)};
  const Judge judge(question, model);
  std::vector<report::EngineFindings> shared;
  for (const EngineQuestion& engine : question.base.engines) {
    if (is_of_another_model(engine, model)) continue;
    if (is_of_another_device(engine, question.base.device)) continue;
    KERNELPATH_TRY(asked, question_of_version(question, engine));
    KERNELPATH_TRY(combination, engine_combination(asked, engine));
    const features::CommandReading* const command = asked.command ? &*asked.command : nullptr;
    EnginePart part = engine_part(combination, judge(combination), command, model);
    if (question.suggest) add_suggestions(asked, engine, judge, part);
    out.engines.push_back(std::move(part.own));
    shared.push_back(std::move(part.shared));
  }
  add_shared(out.engines, shared);
  return out;
}

}  // namespace kernelpath::cli
