#include "cli/validate_judge.h"

#include "cli/draft_input.h"
#include "engines/gguf_input.h"
#include "engines/kernelpath/deployment_facts.h"

#include <algorithm>
#include <utility>

namespace kernelpath::cli {
namespace {

using features::Facts;

engines::Resolution resolve(const EngineCombination& combination,
                            const engines::Deployment& deployment, const config::ModelConfig& model,
                            std::shared_ptr<const config::ModelConfig> draft) {
  return engines::resolve_input(*combination.engine,
                                {.model = model,
                                 .device = combination.device,
                                 .deployment = deployment,
                                 .environment = combination.arguments.environment,
                                 .draft = std::move(draft)});
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

Facts make_facts(const EngineCombination& combination, const LoadedModel* model,
                 const Resolved& resolved) {
  const engines::Deployment& deployment = combination.arguments.deployment;
  Facts out;
  out.device = features::facts_of(combination.device);
  out.engine_named = combination.named;
  out.device.stated = combination.device_stated;
  out.lacks = combination.arguments.environment.lacks;
  out.variables = combination.arguments.environment.variables;
  const auto& judged = combination.arguments.judged_variables;
  out.variables.insert(out.variables.end(), judged.begin(), judged.end());
  if (combination.engine->name() == "kernelpath") {
    out.own = engines::kernelpath::deployment_facts(combination.device, deployment);
  }
  if (model == nullptr || !resolved.target) return out;
  const engines::Resolution& target = *resolved.target;
  out.model = features::facts_of(model->config);
  const bool no_class = target.error && target.error->code == "UNKNOWN-ARCH";
  if (no_class || !target.model_class.empty()) out.model.model_class = target.model_class;
  out.resolved = features::facts_of(target);
  out.own.insert(out.own.end(), target.facts.begin(), target.facts.end());
  // Only states of layers raise a block; a backend's own block is no surprise.
  if (out.model.has_state_layers != true) out.resolved.raised_page_size.reset();
  out.resolved.context_length = target.memory.sequence_tokens;
  if (!out.resolved.context_length) out.resolved.context_length = deployment.max_model_len;
  out.resolved.honours_chunk = honours_chunk(target);
  out.resolved.sequences = deployment.batch_size;
  out.draft = resolved.draft_facts;
  if (resolved.draft && !resolved.draft->error && !resolved.draft->selected_backend.empty()) {
    out.resolved.draft_backend = resolved.draft->selected_backend;
  }
  return out;
}

}  // namespace

Result<EngineCombination> engine_combination(const ValidateQuestion& question,
                                             const EngineQuestion& engine) {
  KERNELPATH_TRY(arguments, engine_arguments(question, engine));
  return EngineCombination{.engine = engine.engine,
                           .arguments = std::move(arguments),
                           .device = question.base.device,
                           .named = engine.named,
                           .device_stated = question.base.device_stated};
}

// A draft that is no folder of this machine (a repository's name), or that cannot be read, stays
// unknown.
std::shared_ptr<const config::ModelConfig> Judge::draft_of(
    const EngineCombination& combination) const {
  const auto path = combination.engine->draft_model(combination.arguments.deployment);
  if (!path) return nullptr;
  const auto known = drafts_.find(*path);
  if (known != drafts_.end()) return known->second;
  auto read =
      load_draft(*combination.engine, combination.arguments.deployment, question_.base.load);
  auto draft = read ? std::move(*read) : nullptr;
  drafts_.emplace(*path, draft);
  return draft;
}

// What the draft would resolve to, were it served alone.
void Judge::resolve_draft(const EngineCombination& combination, const config::ModelConfig& draft,
                          Resolved& out) {
  out.draft_facts = features::draft_facts_of(draft);
  engines::Deployment alone = combination.arguments.deployment;
  alone.speculative.reset();
  alone.draft_model.reset();
  alone.draft_tokens.reset();
  std::erase_if(alone.settings, [](const auto& setting) {
    return setting.first.starts_with("speculative_config");
  });
  out.draft = resolve(combination, alone, draft, nullptr);
}

JudgedEngine Judge::operator()(const EngineCombination& combination) const {
  JudgedEngine out;
  if (model_ != nullptr) {
    const auto draft = draft_of(combination);
    out.resolved.target =
        resolve(combination, combination.arguments.deployment, model_->config, draft);
    if (draft != nullptr) resolve_draft(combination, *draft, out.resolved);
  }
  out.combination = {
      .table = features::find_rule_table(combination.engine->name(), combination.engine->version()),
      .arguments = combination.arguments.stated,
      .facts = make_facts(combination, model_, out.resolved),
      .scope = question_.scope};
  return out;
}

}  // namespace kernelpath::cli
