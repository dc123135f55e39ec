#include "cli/validate_answer.h"

#include "base/text.h"
#include "base/units.h"
#include "cli/own_findings.h"
#include "report/validate_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace kernelpath::cli {
namespace {

using features::CombinationQuestion;
using features::Facts;

// What an engine makes of one model; nothing of it without a model.
struct Resolved {
  std::optional<engines::Resolution> target = {};
  std::optional<engines::Resolution> draft = {};
  std::optional<std::string> draft_architecture = {};
};

engines::Resolution resolve(const EngineQuestion& engine, const EngineArguments& arguments,
                            const hardware::Device& device, const config::ModelConfig& model) {
  return engine.engine->resolve({.model = model,
                                 .device = device,
                                 .deployment = arguments.deployment,
                                 .environment = arguments.environment});
}

// A draft that is no folder of this machine (a repository's name) stays unknown.
void resolve_draft(const ValidateQuestion& question, const EngineQuestion& engine,
                   const EngineArguments& arguments, Resolved& out) {
  if (!arguments.deployment.draft_model) return;
  const Result<config::ModelConfig> draft =
      config::load_model(*arguments.deployment.draft_model, question.base.load);
  if (!draft) return;
  if (!draft->architectures.empty()) out.draft_architecture = draft->architectures.front();
  EngineArguments alone = arguments;
  alone.deployment.speculative.reset();
  alone.deployment.draft_model.reset();
  alone.deployment.draft_tokens.reset();
  std::erase_if(alone.deployment.settings, [](const auto& setting) {
    return setting.first.starts_with("speculative_config.");
  });
  out.draft = resolve(engine, alone, question.base.device, *draft);
}

bool has_step(const engines::Resolution& resolution, std::string_view rule) {
  return std::any_of(resolution.steps.begin(), resolution.steps.end(),
                     [rule](const engines::Step& step) { return step.rule == rule; });
}

// Llama 4 loses its chunks on the way through TensorRT-LLM; other models keep them or are refused.
std::optional<bool> honours_chunk(const engines::Resolution& resolution) {
  if (has_step(resolution, "TRT-L4-BACKEND") || has_step(resolution, "TRT-L4-PREBLACKWELL-SPEC")) {
    return false;
  }
  return resolution.error ? std::nullopt : std::optional(true);
}

Facts make_facts(const ValidateQuestion& question, const EngineArguments& arguments,
                 const LoadedModel* model, const Resolved& resolved) {
  Facts out;
  out.device = features::facts_of(question.base.device);
  out.lacks = question.base.lacks;
  if (model == nullptr || !resolved.target) return out;
  const engines::Resolution& target = *resolved.target;
  out.model = features::facts_of(model->config);
  const bool no_class = target.error && target.error->code == "UNKNOWN-ARCH";
  if (no_class || !target.model_class.empty()) out.model.model_class = target.model_class;
  out.resolved = features::facts_of(target);
  out.resolved.context_length = target.memory.sequence_tokens;
  if (!out.resolved.context_length) {
    out.resolved.context_length = arguments.deployment.max_model_len;
  }
  out.resolved.honours_chunk = honours_chunk(target);
  out.resolved.sequences = arguments.deployment.batch_size;
  out.draft_architecture = resolved.draft_architecture;
  if (resolved.draft && !resolved.draft->error && !resolved.draft->selected_backend.empty()) {
    out.resolved.draft_backend = resolved.draft->selected_backend;
  }
  return out;
}

std::vector<features::DeviceChoice> device_choices() {
  std::vector<features::DeviceChoice> out;
  for (const hardware::Device& device : hardware::known_devices()) {
    if (!device.capability) continue;
    out.push_back(
        {.id = device.id, .sm = device.capability->sm(), .memory_bytes = device.usable_bytes()});
  }
  return out;
}

CombinationQuestion make_combination(const ValidateQuestion& question, const EngineQuestion& engine,
                                     const EngineArguments& arguments, const Facts& facts) {
  CombinationQuestion out{.table = features::find_rule_table(engine.engine->name()),
                          .arguments = arguments.stated,
                          .facts = facts,
                          .scope = question.scope,
                          .suggest = question.suggest};
  if (question.suggest) out.search.devices = device_choices();
  return out;
}

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
std::string summary_of(const CombinationQuestion& combination, const Resolved& resolved) {
  if (!resolved.target) {
    const features::Context context = features::context_of(combination);
    return fmt::format("{}; KV {}", to_upper(field_text(context, "--backend")),
                       field_text(context, "--kv"));
  }
  const engines::Resolution& target = *resolved.target;
  if (target.error) return fmt::format("{}: {}", target.error->code, target.error->message);
  std::string out = target.selected_backend;
  const auto& kv = combination.facts.resolved.kv_dtype;
  if (kv) out += "; KV " + *kv;
  if (combination.facts.resolved.draft_backend) {
    out += "; draft on " + *combination.facts.resolved.draft_backend;
  }
  return out;
}

bool counts(const features::Scope& scope, std::string_view id) {
  const auto names = [id](const std::vector<std::string>& ids) {
    return std::any_of(ids.begin(), ids.end(),
                       [id](const std::string& name) { return equal_ignoring_case(name, id); });
  };
  return !names(scope.skip) && (scope.only.empty() || names(scope.only));
}

void append(report::EngineFindings& out, report::EngineFindings more) {
  std::move(more.findings.begin(), more.findings.end(), std::back_inserter(out.findings));
}

// The engine's part of the report; `shared` gets what no engine is alone with.
Result<report::EngineFindings> judge_engine(const ValidateQuestion& question,
                                            const EngineQuestion& engine, const LoadedModel* model,
                                            report::EngineFindings& shared) {
  KERNELPATH_TRY(arguments, engine_arguments(question, engine));
  Resolved resolved;
  if (model != nullptr) {
    resolved.target = resolve(engine, arguments, question.base.device, model->config);
    resolve_draft(question, engine, arguments, resolved);
  }
  const Facts facts = make_facts(question, arguments, model, resolved);
  const CombinationQuestion combination = make_combination(question, engine, arguments, facts);
  const report::PlaceSources sources{
      .arguments = &arguments.stated,
      .model = model != nullptr ? &model->config : nullptr,
      .model_document = model != nullptr && model->document ? &*model->document : nullptr};
  report::EngineFindings out =
      report::engine_findings(engine.engine->name(), engine.engine->version(),
                              features::judge_combination(combination), sources);
  shared = report::engine_findings("all", "", features::judge_shared(combination), sources);
  if (resolved.target) {
    const std::size_t own = out.findings.size();
    append(out, shared);  // what they say need not be said again
    add_resolution_findings(*engine.engine, *resolved.target, out);
    out.findings.erase(
        out.findings.begin() + static_cast<std::ptrdiff_t>(own),
        out.findings.begin() + static_cast<std::ptrdiff_t>(own + shared.findings.size()));
  }
  if (question.command) {
    for (report::ReportedFinding& finding : command_findings(*question.command)) {
      out.findings.push_back(std::move(finding));
    }
  }
  std::erase_if(out.findings, [&](const report::ReportedFinding& finding) {
    return !counts(question.scope, finding.finding.id);
  });
  out.summary = summary_of(combination, resolved);
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

Result<features::CombinationQuestion> rules_question(const ValidateQuestion& question,
                                                     const EngineQuestion& engine,
                                                     const LoadedModel* model) {
  KERNELPATH_TRY(arguments, engine_arguments(question, engine));
  Resolved resolved;
  if (model != nullptr) {
    resolved.target = resolve(engine, arguments, question.base.device, model->config);
  }
  return make_combination(question, engine, arguments,
                          make_facts(question, arguments, model, resolved));
}

Result<report::ValidatedInput> validate_input(const ValidateQuestion& question,
                                              const LoadedModel* model) {
  report::ValidatedInput out{.model = model != nullptr ? model->config.name : std::string(),
                             .device = device_text(question.base.device)};
  std::vector<report::EngineFindings> shared;
  for (const EngineQuestion& engine : question.base.engines) {
    report::EngineFindings of_all;
    KERNELPATH_TRY(findings, judge_engine(question, engine, model, of_all));
    out.engines.push_back(std::move(findings));
    shared.push_back(std::move(of_all));
  }
  add_shared(out.engines, shared);
  return out;
}

}  // namespace kernelpath::cli
