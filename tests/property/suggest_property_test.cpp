// Suggestions of llm-validate over random combinations, memory among them: what they say to change
// is changed in the options, and the whole is validated again.
#include "cli/arguments.h"
#include "cli/settings.h"
#include "cli/validate.h"
#include "cli/validate_answer.h"
#include "suggestion.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace kernelpath::cli {
namespace {

using Call = std::vector<std::string>;

const LoadedModel& model_named(const std::string& name) {
  static std::map<std::string, LoadedModel> known;
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  const std::string folder = std::string(KERNELPATH_TEST_CONFIGS) + "/" + name;
  Result<config::ModelConfig> model = config::load_model(folder, {});
  RC_ASSERT(model.has_value());
  return known.emplace(name, LoadedModel{.config = std::move(*model)}).first->second;
}

// The report of TensorRT-LLM for one call; `suggest` adds the suggestions.
report::EngineFindings judged(const Call& call, const LoadedModel& model, bool suggest) {
  Call all = call;
  all.insert(all.end(), {"--engine", "trtllm"});
  if (suggest) all.emplace_back("--suggest");
  const Result<Arguments> arguments = parse_arguments(all, ProgramKind::kValidate);
  if (!arguments) RC_FAIL(arguments.error().text());
  const Result<Settings> settings = make_settings(*arguments, {}, validate_program());
  RC_ASSERT(settings.has_value());
  const Result<ValidateQuestion> question = make_validate_question(*settings, {}, {});
  RC_ASSERT(question.has_value());
  const Result<report::ValidatedInput> input = validate_input(*question, &model);
  RC_ASSERT(input.has_value());
  return input->engines.front();
}

std::size_t num_errors(const report::EngineFindings& engine) {
  return static_cast<std::size_t>(std::count_if(
      engine.findings.begin(), engine.findings.end(), [](const report::ReportedFinding& finding) {
        return finding.finding.level == features::Level::kError;
      }));
}

bool has_rule(const report::EngineFindings& engine, const std::string& id) {
  return std::any_of(
      engine.findings.begin(), engine.findings.end(),
      [&id](const report::ReportedFinding& finding) { return finding.finding.id == id; });
}

bool is_change(const std::string& suggestion) {
  return !suggestion.empty() && !suggestion.starts_with("no change") &&
         !suggestion.starts_with("nothing found");
}

// A few options, half of them often too much for the device or for each other.
Call random_call() {
  const std::vector<std::vector<std::string>> choices = {
      {"--device", "h100-sxm", "h200", "b200", "l40s"},
      {"--tp", "1", "2", "3", "8"},
      {"--kv", "auto", "fp8", "nvfp4"},
      {"--backend", "trtllm", "flashinfer", "vanilla"},
      {"--max-model-len", "8192", "131072", "4000000"},
      {"--batch-size", "1", "8", "64"},
      {"--set", "trtllm.kv_cache_config.free_gpu_memory_fraction=1.5",
       "trtllm.kv_cache_config.free_gpu_memory_fraction=0.8"},
      {"--set", "trtllm.enable_mla_skip_correction=true"},
      {"--set", "trtllm.stream_interval=0"},
      {"--speculative", "mtp", "eagle3", "ngram"}};
  Call out;
  for (const std::vector<std::string>& choice : choices) {
    if (*rc::gen::inRange(0, 2) == 0) continue;
    const auto value = *rc::gen::inRange<std::size_t>(1, choice.size());
    out.insert(out.end(), {choice.front(), choice[value]});
  }
  return out;
}

std::string random_model() {
  return *rc::gen::elementOf(std::vector<std::string>{
      "meta-llama__Meta-Llama-3.1-8B", "meta-llama__Meta-Llama-3.1-70B", "deepseek-ai__DeepSeek-V3",
      "meta-llama__Llama-4-Scout-17B-16E-Instruct"});
}

RC_GTEST_PROP(SuggestionsOfTheProgram, OfAllErrors_ValidateClean, ()) {
  const LoadedModel& model = model_named(random_model());
  const Call call = random_call();
  const report::EngineFindings before = judged(call, model, true);
  RC_CLASSIFY(num_errors(before) > 1, "several errors");
  RC_CLASSIFY(is_change(before.suggestion), "something to change");
  if (!is_change(before.suggestion)) return;
  const Call after = testing::with_suggestion(call, before.suggestion);
  RC_ASSERT(num_errors(judged(after, model, false)) == 0U);
}

RC_GTEST_PROP(SuggestionsOfTheProgram, OfOneError_RemoveItAndAddNone, ()) {
  const LoadedModel& model = model_named(random_model());
  const Call call = random_call();
  const report::EngineFindings before = judged(call, model, true);
  for (const report::ReportedFinding& finding : before.findings) {
    if (!is_change(finding.suggestion)) continue;
    const report::EngineFindings after =
        judged(testing::with_suggestion(call, finding.suggestion), model, false);
    RC_ASSERT(!has_rule(after, finding.finding.id));
    for (const report::ReportedFinding& other : after.findings) {
      const bool old =
          other.finding.level != features::Level::kError || has_rule(before, other.finding.id);
      RC_ASSERT(old);
    }
  }
}

}  // namespace
}  // namespace kernelpath::cli
