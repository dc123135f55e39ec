// The rules of SGLang against every recorded launch: what the engine started holds no error, and
// what it refused holds the rule that says so, but for refusals that only the resolution knows.

#include "config/load.h"
#include "engines/sglang/profile.h"
#include "engines/sglang/resolve.h"
#include "equality.h"
#include "features/question.h"
#include "features/rule_table.h"
#include "json/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::features {
namespace {

// Rules of checks that the recorder did not run: of the final arguments, of packages, and of
// classes that break where they are built or at their first step.
constexpr auto kNotRecorded = std::to_array<std::string_view>(
    {"SGL-BUILD-AITER", "SGL-BUILD-ASCEND", "SGL-BUILD-DSA-MODEL", "SGL-BUILD-FLASHINFER",
     "SGL-BUILD-FLASHMLA-MODEL", "SGL-BUILD-GPU", "SGL-BUILD-HPC-OPS", "SGL-LORA-SHAPES",
     "SGL-MINDSPORE", "SGL-RUN-FA-DCP", "SGL-RUN-FLASHMLA-DCP", "SGL-TWO-BATCH"});

// Refusals of what only the resolution knows: what a family's rule set, head sizes that differ by
// layer, what a checkpoint's own description makes of a method. With MODEL they are findings, too.
constexpr auto kOnlyResolved = std::to_array<std::string_view>(
    {"SGL-ACCEPT-EXAONE", "SGL-DETERMINISTIC-CHOICE", "SGL-DSA-SINKS", "SGL-MEGA-MOE-BUDGET",
     "SGL-MODEL-HEAD-DIM", "SGL-MODEL-QUANT-MISMATCH", "SGL-MODEL-QUANT-UNKNOWN",
     "SGL-NVFP4-PREFILL", "SGL-TRTLLM-MLA-KV"});

template <std::size_t Size>
bool is_one_of(const std::array<std::string_view, Size>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string text_of(const json::Value& object, std::string_view key, std::string otherwise) {
  const json::Value* const found = object.find(key);
  return found != nullptr && found->is_string() ? found->as_string() : otherwise;
}

hardware::Device device_of(const json::Value& in) {
  const std::string platform = text_of(in, "platform", "cuda");
  const json::Value* const sm = in.find("sm");
  const std::int64_t number = sm != nullptr && sm->is_integer() ? sm->as_integer() : 0;
  hardware::Device out;
  if (platform == "cuda") {
    out = hardware::device_from_capability(
        {.major = static_cast<int>(number / 10), .minor = static_cast<int>(number % 10)});
  } else if (platform == "cpu") {
    out.platform = hardware::Platform::kCpu;
  } else {
    out.platform = hardware::Platform::kRocm;
    out.gfx_target = "gfx" + std::to_string(number);
  }
  if (const json::Value* const memory = in.find_non_null("gpu_mem_mib")) {
    out.memory_bytes = memory->as_integer() << 20;
  }
  return out;
}

engines::Environment environment_of(const json::Value& in) {
  engines::Environment out;
  for (const std::string_view package : {"flashinfer", "amx"}) {
    const json::Value* const installed = in.find(package);
    if (installed != nullptr && installed->is_bool() && !installed->as_bool()) {
      out.lacks.emplace_back(package);
    }
  }
  const json::Value* const variables = in.find_non_null("env");
  if (variables == nullptr) return out;
  for (const json::Member& member : variables->members()) {
    out.variables.emplace_back(
        member.key, member.value.is_string() ? member.value.as_string() : member.value.brief());
  }
  return out;
}

// Nothing where the question holds what a request of this program does not.
std::optional<engines::Request> request_of(const json::Value& in) {
  if (in.find_non_null("hf_quant_config") != nullptr) return std::nullopt;
  const config::LoadOptions options{.partial = true, .read_siblings = false};
  const auto model = config::from_value(*in.find("config"), options);
  if (!model) return std::nullopt;
  engines::Request out{.model = *model,
                       .device = device_of(in),
                       .deployment = {},
                       .environment = environment_of(in)};
  for (const json::Member& flag : in.find("flags")->members()) {
    if (flag.value.is_null()) continue;
    out.deployment.settings.emplace_back(
        flag.key, flag.value.is_string() ? flag.value.as_string() : json::to_text(flag.value));
  }
  if (const json::Value* const draft = in.find_non_null("draft_config")) {
    auto read = config::from_value(*draft, options);
    if (!read) return std::nullopt;
    out.draft = std::make_shared<const config::ModelConfig>(std::move(*read));
    out.deployment.settings.emplace_back("speculative_draft_model_path", "DRAFT");
  }
  return out;
}

CombinationQuestion question_of(const RuleTable& table, const engines::Request& request,
                                const engines::Resolution& resolution, const json::Value& in) {
  CombinationQuestion out{.table = &table, .arguments = {}, .facts = {}, .scope = {}};
  out.scope.all_arguments_known = true;
  for (const json::Member& flag : in.find("flags")->members()) {
    if (flag.key == "device" || flag.value.is_null()) continue;
    out.arguments.set(flag.key, flag.value, {.shown = flag.key});
  }
  if (request.draft != nullptr) {
    out.arguments.set("speculative_draft_model_path", json::Value::string("DRAFT"),
                      {.shown = "speculative_draft_model_path"});
    out.facts.draft = draft_facts_of(*request.draft);
  }
  out.facts.device = facts_of(request.device);
  out.facts.lacks = request.environment.lacks;
  out.facts.variables = request.environment.variables;
  out.facts.model = facts_of(request.model);
  out.facts.resolved = facts_of(resolution);
  out.facts.own = resolution.facts;
  return out;
}

bool says(const Finding& finding, const std::string& id) {
  if (finding.id == id) return true;
  const std::vector<std::string>& steps = finding.rule->steps;
  return std::find(steps.begin(), steps.end(), id) != steps.end();
}

struct Counts {
  std::size_t asked = 0;
  std::size_t refused = 0;
  std::size_t said = 0;
  std::map<std::string, std::size_t> wrong = {};   // rule → launches that start all the same
  std::map<std::string, std::size_t> missed = {};  // refusal → launches without a rule
};

void compare(const RuleTable& table, const golden::Case& recorded, Counts& counts) {
  const json::Value& in = recorded.in();
  const std::optional<engines::Request> request = request_of(in);
  if (!request) return;
  ++counts.asked;
  const engines::Resolution resolution =
      engines::sglang::resolve(*request, engines::sglang::built_in_profile());
  const CombinationAnswer answer = judge_combination(question_of(table, *request, resolution, in));
  std::vector<Finding> errors;
  for (const Finding& finding : answer.findings) {
    if (finding.level == Level::kError) errors.push_back(finding);
  }
  const bool refuses = recorded.out().find_non_null("error") != nullptr;
  if (!refuses) {
    for (const Finding& error : errors) {
      if (is_one_of(kNotRecorded, error.id) || ++counts.wrong[error.id] > 1) continue;
      ADD_FAILURE() << error.id << " refuses a launch that starts: " << json::to_text(in);
    }
    return;
  }
  ++counts.refused;
  const std::string id = resolution.error ? "SGL-" + resolution.error->code : "none";
  const bool said = std::any_of(errors.begin(), errors.end(),
                                [&id](const Finding& error) { return says(error, id); });
  if (said) {
    ++counts.said;
  } else if (!is_one_of(kOnlyResolved, id) && ++counts.missed[id] == 1) {
    std::string others;
    for (const Finding& error : errors) others += ' ' + error.id;
    ADD_FAILURE() << "no rule says " << id << ':' << others << ' ' << json::to_text(in) << ' '
                  << json::to_text(*recorded.out().find("error"));
  }
}

TEST(SglangRules, EveryRecordedLaunch_IsJudgedAsTheEngineDid) {
  const RuleTable& table = *find_rule_table("sglang", "0.5.23");
  Counts counts;
  for (const std::string_view file : {"select.jsonl", "select-2.jsonl"}) {
    for (const golden::Case& recorded : golden::read_cases("sglang-0.5.23/" + std::string(file))) {
      compare(table, recorded, counts);
    }
  }
  EXPECT_GE(counts.asked, 2700U);
  EXPECT_GE(counts.said, 500U);
}

}  // namespace
}  // namespace kernelpath::features
