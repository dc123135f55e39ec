#include "cli/validate_judge.h"

#include "base/text.h"

#include <algorithm>
#include <utility>

namespace kernelpath::cli {
namespace {

using features::CombinationQuestion;
using features::Facts;

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

}  // namespace

Result<JudgedEngine> judge_engine(const ValidateQuestion& question, const EngineQuestion& engine,
                                  const LoadedModel* model) {
  KERNELPATH_TRY(arguments, engine_arguments(question, engine));
  Resolved resolved;
  if (model != nullptr) {
    resolved.target = resolve(engine, arguments, question.base.device, model->config);
    resolve_draft(question, engine, arguments, resolved);
  }
  const Facts facts = make_facts(question, arguments, model, resolved);
  JudgedEngine out{.resolved = std::move(resolved),
                   .combination = make_combination(question, engine, arguments, facts)};
  out.own = features::judge_combination(out.combination);
  out.shared = features::judge_shared(out.combination);
  return out;
}

}  // namespace kernelpath::cli
