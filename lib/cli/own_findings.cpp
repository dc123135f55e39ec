#include "cli/own_findings.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>

namespace kernelpath::cli {
namespace {

using features::CommandNote;
using features::Level;
using features::Rule;
using features::Stage;

// A step of the resolution, without its engine's prefix, and the rule of the table that says the
// same of the arguments.
struct SameThing {
  std::string_view step;
  std::string_view rule;
};
constexpr std::array<SameThing, 78> kSameThings = {
    {{"ATTN-FALLBACK", "BACKEND-FALLBACK"},
     {"ATTN-SPARSE-DROPPED", "SPARSE-DROPPED"},
     {"SPARSE-NEEDS-KNOWN-BACKEND", "SPARSE-DROPPED"},
     {"CP-NOT-HELIX", "CP-TYPE"},
     {"HEADS-INDIVISIBLE", "HEADS-NOT-DIVISIBLE"},
     {"KV-FRACTION", "KV-FRACTION-ONE"},
     {"NVFP4-INDIVISIBLE", "KV-NVFP4-ALIGN"},
     {"ROPE-OFF-KV-EVICTION", "ROPE-FUSION-OFF"},
     {"L4-SEQ-CAP", "LLAMA4-CAPPED"},
     {"L4-UNCAPPED", "CASE-CHUNK-LOST"},
     {"L4-BACKEND", "CASE-CHUNK-LOST"},
     {"L4-BACKEND", "LLAMA4-CAPPED"},
     {"SKIP-CORRECTION-OFF", "SKIPCORR-OFF-SM"},
     {"KV-ESTIMATE-DIFFERS", "KV-ESTIMATE-LOW"},
     {"ARG-UNREAD", "OPTION-UNREAD"},
     {"KV-POOL-OVER-MEMORY", "MEM-WEIGHTS"},
     {"OVER-MEMORY", "MEM-KV"},
     {"OVER-MEMORY", "MEM-WEIGHTS"},
     {"NO-OPTION", "OPTION-UNREAD"},
     // vLLM
     {"BACKEND-NOT-REGISTERED", "VLLM-BACKEND-PLACEHOLDER"},
     {"BACKEND-UNKNOWN", "VLLM-ARG-CHOICE"},
     {"BATCH-INVARIANT-PREFIX", "VLLM-PREFIX-BATCH-INVARIANT"},
     {"BUILDER-FLASHINFER-WINDOW", "VLLM-FLASHINFER-SLIDING-HOPPER"},
     {"BUILDER-HPC-TOKENS", "VLLM-SPEC-HPC-TOKENS"},
     {"DCP-FLASHMLA-SPARSE", "VLLM-DCP-NO-LSE"},
     {"DCP-FLASHMLA-SPARSE-BF16", "VLLM-DCP-SPARSE-16BIT"},
     {"DCP-INTERLEAVE-SPECULATION", "VLLM-INTERLEAVE-SPECULATION"},
     {"DCP-SIZE", "VLLM-DCP-TOO-LARGE"},
     {"DCP-WINDOW", "VLLM-DCP-SLIDING"},
     {"DSV4-DTYPE", "VLLM-DSV4-KV-TYPE"},
     {"DTYPE-DEVICE", "VLLM-BF16-CAPABILITY"},
     {"DTYPE-FLOAT16", "VLLM-DTYPE-FALLS-BACK"},
     {"FLASHINFER-WINDOW", "VLLM-FLASHINFER-SLIDING-HOPPER"},
     {"FLEX-REFUSED", "VLLM-FLEX-ALIBI"},
     {"FLEX-REFUSED", "VLLM-FLEX-KV-SHARING"},
     {"FLEX-REFUSED", "VLLM-FLEX-SOFTCAP"},
     {"GRAPH-EAGER", "VLLM-GRAPHS-EAGER"},
     {"GRAPH-ENCODER-DECODER", "VLLM-GRAPHS-ENCODER-DECODER"},
     {"GRAPH-MIXED-BATCH", "VLLM-GRAPHS-FULL"},
     {"GRAPH-NEVER", "VLLM-GRAPHS-CHUNKED"},
     {"GRAPH-NOT-COMPILED", "VLLM-GRAPHS-NOT-COMPILED"},
     {"GRAPH-POOLING", "VLLM-GRAPHS-POOLING"},
     {"GRAPH-SPECULATION", "VLLM-GRAPHS-CUTLASS-SPECULATION"},
     {"GRAPH-SPECULATION", "VLLM-GRAPHS-FLASHINFER-SPECULATION"},
     {"HMA-OFF", "VLLM-HYBRID-MANAGER-OFF"},
     {"HMA-REFUSED", "VLLM-HYBRID-MANAGER-EAGLE"},
     {"HOOK-BIDIRECTIONAL", "VLLM-BIDIRECTIONAL"},
     {"HOOK-DIFFUSION-FLASHINFER", "VLLM-DIFFUSION-FLASHINFER"},
     {"HOOK-DSA-BF16", "VLLM-V32-BF16-AUTO"},
     {"HOOK-GEMMA4-FA4", "VLLM-GEMMA4-HEADS"},
     {"HOOK-GEMMA4-TRITON", "VLLM-GEMMA4-HEADS"},
     {"HOOK-GLM-FP8", "VLLM-GLM-DSA-FP8"},
     {"HOOK-OCR-OTHER", "VLLM-OCR-BACKEND"},
     {"HOOK-OCR-PREFIX", "VLLM-OCR-PREFIX-OFF"},
     {"HOOK-SSM-DTYPE", "VLLM-SSM-DTYPE"},
     {"KV-BLOCK-BATCHED-TOKENS", "VLLM-MAMBA-BLOCK-BATCHED"},
     {"KV-BLOCK-HYBRID", "PAGE-RAISED"},
     {"KV-BLOCK-HYBRID", "VLLM-BLOCK-SIZE-HYBRID"},
     {"KV-BLOCK-INTERLEAVE", "VLLM-DCP-INTERLEAVE-BLOCK"},
     {"KV-DTYPE-CHECKPOINT", "VLLM-KV-FROM-CHECKPOINT"},
     {"KV-DTYPE-SCHEME", "VLLM-KV-FROM-CHECKPOINT"},
     {"KV-E5M2-SCALES", "VLLM-E5M2-SCALES"},
     {"LAYER-FLASHINFER-DECODER-ONLY", "VLLM-ENCODER-DECODER-FLASHINFER"},
     {"LAYER-FLEX-SOFTCAP", "VLLM-FLEX-SOFTCAP"},
     {"MAMBA-BLOCK-REFUSED", "VLLM-MAMBA-BLOCK-PREFIX"},
     {"MAMBA-MODE-OFF", "VLLM-MAMBA-MODE-NONE"},
     {"MLA-NVFP4", "VLLM-KV-NVFP4-MLA"},
     {"MLA-PACKED", "VLLM-SPARSE-PACKED"},
     {"MLA-PACKED", "VLLM-SPARSE-SM120-QUANTISED"},
     {"PCP-UNSUPPORTED", "VLLM-PCP"},
     {"PREFILL-REFUSED", "VLLM-MLA-PREFILL-CAPABILITY"},
     {"SEL-PRECLUDED", "VLLM-BLOCK-PRECLUDES"},
     {"SPEC-BACKEND-DIFFERS", "VLLM-SPEC-DRAFT-BACKEND"},
     {"SPEC-DRAFT-MODEL-TP", "VLLM-SPEC-DRAFT-TP"},
     {"SPEC-TOKENS", "VLLM-SPEC-TOKENS-MISSING"},
     {"TURBOQUANT-FA", "VLLM-TURBOQUANT-BOUNDARY"},
     {"TURBOQUANT-SKIP", "VLLM-TURBOQUANT-BOUNDARY"},
     {"WEIGHTS-OVER-MEMORY", "MEM-WEIGHTS"}}};

// Rules that say of a backend, or of all, what the selector gives as its reasons: where it was
// asked, its refusal names them all in one.
constexpr std::array<std::string_view, 11> kSelectorReasons = {
    "VLLM-BLOCK-SIZE-NONE", "VLLM-BLOCK-SIZE-SPARSE",  "VLLM-ENCODER-DECODER-FLASHINFER",
    "VLLM-F32-MLA",         "VLLM-FLASHMLA-BLACKWELL", "VLLM-KV-DS-MLA-DENSE",
    "VLLM-KV-MLA-NONE",     "VLLM-KV-NVFP4-DEVICE",    "VLLM-NVFP4-FA2",
    "VLLM-SPARSE-E4M3",     "VLLM-SPARSE-CAPABILITY"};

bool is_selector_reason(std::string_view id) {
  const bool named =
      std::find(kSelectorReasons.begin(), kSelectorReasons.end(), id) != kSelectorReasons.end();
  return named || (id.starts_with("VLLM-BACKEND-") && id != "VLLM-BACKEND-TWICE");
}

std::string_view without_prefix(std::string_view id) {
  const std::size_t dash = id.find('-');
  return dash == std::string_view::npos ? id : id.substr(dash + 1);
}

bool stands_for(const report::ReportedFinding& reported, std::string_view id) {
  const features::Finding& finding = reported.finding;
  if (finding.id == id) return true;
  if (finding.rule == nullptr) return false;
  const std::vector<std::string>& steps = finding.rule->steps;
  return std::find(steps.begin(), steps.end(), id) != steps.end();
}

bool is_said(const report::EngineFindings& findings, std::string_view name) {
  const auto says = [&findings](std::string_view id) {
    return std::any_of(
        findings.findings.begin(), findings.findings.end(),
        [id](const report::ReportedFinding& reported) { return stands_for(reported, id); });
  };
  if (says(name)) return true;
  return std::any_of(kSameThings.begin(), kSameThings.end(),
                     [&](const SameThing& same) { return same.step == name && says(same.rule); });
}

// Rules of an engine's resolution in the form of the tables; made once, they live on.
const Rule* rule_of(const engines::Engine& engine, std::string_view id, Level level) {
  static std::deque<Rule> rules;
  static std::map<std::string, const Rule*, std::less<>> known;
  const std::string key = fmt::format("{}@{}/{}", engine.name(), engine.version(), id);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  for (const engines::RuleInfo& info : engine.rules()) {
    if (info.id != id) continue;
    Rule& rule = rules.emplace_back();
    rule.id = id;
    rule.level = level;
    rule.stage = Stage::kBuild;
    rule.why = info.why;
    rule.source = {.project = std::string(engine.name()),
                   .file = std::string(info.file),
                   .version = std::string(info.version)};
    known.emplace(key, &rules.back());
    return &rules.back();
  }
  return nullptr;
}

const engines::RuleInfo* find_info(const engines::Engine& engine, std::string_view id) {
  for (const engines::RuleInfo& info : engine.rules()) {
    if (info.id == id || without_prefix(info.id) == id) return &info;
  }
  return nullptr;
}

// The refusal that lists every reason of the selector.
bool is_selector_refusal(const engines::Engine& engine, std::string_view code) {
  const engines::RuleInfo* const info = find_info(engine, code);
  return code.starts_with("SEL-") || (info != nullptr && info->id == "VLLM-BACKEND-INVALID");
}

report::ReportedFinding resolution_finding(const engines::Engine& engine, std::string_view code,
                                           Level level, std::string message) {
  report::ReportedFinding out;
  const engines::RuleInfo* const info = find_info(engine, code);
  out.finding.id = info != nullptr ? std::string(info->id) : std::string(code);
  out.finding.level = level;
  out.finding.engine = engine.name();
  out.finding.message = std::move(message);
  if (info != nullptr) {
    out.finding.fix = info->remedy;
    out.finding.rule = rule_of(engine, info->id, level);
  }
  return out;
}

// What cannot be counted is worth knowing; other warnings change what runs.
Level step_level(const engines::Step& step) {
  return step.stage == engines::Stage::kMemory ? Level::kNote : Level::kWarn;
}

struct CommandRuleText {
  CommandNote::Kind kind;
  Level level;
  std::string_view id;
  std::string_view why;
  std::string_view fix;
};
constexpr std::array<CommandRuleText, 6> kCommandRules = {{
    {CommandNote::Kind::kUnknown, Level::kError, "COMMAND-UNKNOWN",
     "the program's command-line reader refuses options that it does not declare",
     "correct the name, or leave it out"},
    {CommandNote::Kind::kBadValue, Level::kError, "COMMAND-VALUE",
     "the program's command-line reader refuses a value of another type or none of its choices",
     "give a value that the option takes"},
    {CommandNote::Kind::kDeprecated, Level::kWarn, "COMMAND-DEPRECATED",
     "a deprecated option goes away in a later version", "leave it out, or use its replacement"},
    {CommandNote::Kind::kDropped, Level::kWarn, "COMMAND-DROPPED",
     "the program's reader drops it without a word: a later word states the same argument, or the "
     "form is one that it does not look at",
     "state each argument once, in the form that is read"},
    {CommandNote::Kind::kUnused, Level::kNote, "COMMAND-UNUSED",
     "options of the server itself do not reach the engine's arguments", ""},
    {CommandNote::Kind::kNotRead, Level::kNote, "COMMAND-NOT-READ",
     "launchers and wrappers before the program are not interpreted", ""},
}};

const std::array<Rule, kCommandRules.size()>& command_rule_table() {
  static const std::array<Rule, kCommandRules.size()> rules = [] {
    std::array<Rule, kCommandRules.size()> out;
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i].id = kCommandRules[i].id;
      out[i].level = kCommandRules[i].level;
      out[i].stage = Stage::kField;
      out[i].why = kCommandRules[i].why;
      out[i].source = {
          .project = "kernelpath", .file = "lib/features/command_line.h", .version = ""};
    }
    return out;
  }();
  return rules;
}

}  // namespace

void add_resolution_findings(const engines::Engine& engine, const engines::Resolution& resolution,
                             const report::EngineFindings& shared,
                             report::EngineFindings& findings) {
  if (resolution.error && is_selector_refusal(engine, resolution.error->code)) {
    std::erase_if(findings.findings, [](const report::ReportedFinding& reported) {
      return is_selector_reason(reported.finding.id);
    });
  }
  const auto said = [&](std::string_view name) {
    return is_said(findings, name) || is_said(shared, name);
  };
  for (const engines::Step& step : resolution.steps) {
    const std::string_view name = without_prefix(step.rule);
    if (step.severity != engines::Severity::kWarn || said(name) || said(step.rule)) continue;
    // An architecture that the index misses is what the refusal speaks of.
    if (resolution.error && step.stage == engines::Stage::kModelClass) continue;
    findings.findings.push_back(
        resolution_finding(engine, step.rule, step_level(step), step.reason));
  }
  if (!resolution.error) return;
  // "FMHA-ENV-UNKNOWN:name": what it is about stands behind the rule.
  const std::string_view code = resolution.error->code;
  if (said(code) || said(code.substr(0, code.find(':'))) || said(without_prefix(code))) return;
  const engines::RuleInfo* const info = find_info(engine, code);
  if (info != nullptr && said(info->id)) return;
  std::string message = resolution.error->message;
  const std::vector<std::string>& near = resolution.error->near_matches;
  if (!near.empty()) message += "; near: " + join(near, ", ");
  findings.findings.push_back(
      resolution_finding(engine, resolution.error->code, Level::kError, std::move(message)));
}

std::vector<report::ReportedFinding> command_findings(const features::CommandReading& command) {
  std::vector<report::ReportedFinding> out;
  for (const CommandNote& note : command.notes) {
    const auto* const text =
        std::find_if(kCommandRules.begin(), kCommandRules.end(),
                     [&note](const CommandRuleText& row) { return row.kind == note.kind; });
    report::ReportedFinding reported;
    features::Finding& finding = reported.finding;
    finding.rule = &command_rule_table().at(static_cast<std::size_t>(text - kCommandRules.begin()));
    finding.id = text->id;
    finding.level = text->level;
    finding.engine = command.engine;
    finding.message = fmt::format("{}: {}", note.word, note.message);
    if (!note.near_matches.empty()) {
      finding.message += "; did you mean " + join_words(note.near_matches, "or") + "?";
    }
    finding.fix = text->fix;
    reported.place = {.at = "command:" + note.word, .shown = note.word};
    out.push_back(std::move(reported));
  }
  return out;
}

std::vector<const Rule*> command_rules() {
  std::vector<const Rule*> out;
  for (const Rule& rule : command_rule_table()) out.push_back(&rule);
  return out;
}

}  // namespace kernelpath::cli
