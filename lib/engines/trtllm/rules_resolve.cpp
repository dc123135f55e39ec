#include "engines/trtllm/rules_resolve.h"

#include "base/assert.h"
#include "base/text.h"
#include "engines/trtllm/resolve_rule_ids.h"
#include "engines/trtllm/rules_backend.h"
#include "registry/rule_ids.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace kernelpath::engines::trtllm {
namespace {

constexpr std::string_view kPrefix = "TRT-";

// The engine's files; versions differ, since they are not one commit.
struct SourceFile {
  std::string_view file;
  std::string_view version;
};
constexpr SourceFile kArchIndex = {"tensorrt_llm/_torch/models/_arch_index.py",
                                   "later than 065ff9e9, commit not recorded"};
constexpr SourceFile kModelingUtils = {"tensorrt_llm/_torch/models/modeling_utils.py",
                                       "later than 065ff9e9, commit not recorded"};
constexpr SourceFile kModelingAuto = {"tensorrt_llm/_torch/models/modeling_auto.py", "01bffee1"};
constexpr SourceFile kModelingAutoHook = {"tensorrt_llm/_torch/models/modeling_auto.py",
                                          "2026-11-01 (the hook is newer than 01bffee1)"};
constexpr SourceFile kPackageInit = {"tensorrt_llm/_torch/models/__init__.py",
                                     "later than 065ff9e9, commit not recorded"};
constexpr SourceFile kRouterIndex = {
    "tensorrt_llm/_torch/_experimental/modeling_v2/_router_index.py",
    "later than 35410e78, commit not recorded"};
constexpr SourceFile kRouting = {
    "tensorrt_llm/_torch/_experimental/modeling_v2/models/gpt_oss/routing.py", "09ea2edf"};

// A rule and how a decision by it becomes a step. In `sentence`, {name} stands for that field of
// the event; an empty list or field that is not there gives nothing.
struct Row {
  RuleInfo info;
  Verdict verdict;
  Severity severity;
  std::string_view candidate;  // field that the step is about; may be empty
  std::string_view sentence;
};

struct Decision {
  Verdict verdict;
  Severity severity;
  std::string_view candidate;
};

struct Text {
  std::string_view sentence;
  std::string_view summary;
  std::string_view why;
  std::string_view remedy = {};
};

constexpr Row row(std::string_view id, SourceFile source, Decision decision, Text text) {
  return {.info = {.id = id,
                   .summary = text.summary,
                   .why = text.why,
                   .remedy = text.remedy,
                   .file = source.file,
                   .version = source.version},
          .verdict = decision.verdict,
          .severity = decision.severity,
          .candidate = decision.candidate,
          .sentence = text.sentence};
}

constexpr auto kRows = std::to_array<Row>({
    // Architecture → class.
    row("TRT-R0-NO-ARCH", kModelingAuto, {Verdict::kRejected, Severity::kWarn, ""},
        {"The configuration names no architecture, so no class is looked up.",
         "Without architectures there is no class.",
         "Only architectures[0] says which class serves a checkpoint.",
         "Add \"architectures\" to config.json."}),
    row("TRT-R1-ARCH0", kModelingAuto, {Verdict::kNoted, Severity::kInfo, "arch"},
        {"architectures[0] is {arch}.", "Only architectures[0] is read; further names are ignored.",
         "The class look-up takes one name."}),
    row("TRT-R2-MM-ENCODER", kModelingAuto, {Verdict::kApplied, Severity::kInfo, ""},
        {"Encoder-only mode: the vision encoder's registry answers, and nothing else is tried.",
         "In encoder-only mode the vision encoder of the architecture is the class.",
         "A deployment of the encoder alone needs no decoder class."}),
    row("TRT-R3-EAGLE3-REWRITE", kModelingAuto, {Verdict::kApplied, Severity::kInfo, "to"},
        {"The configuration has a draft_vocab_size, so {from} is looked up as {to}.",
         "A draft_vocab_size, whatever its value, turns the name into EAGLE3 and the name without "
         "\"Eagle3\".",
         "EAGLE-3 checkpoints carry the target's architecture name; the field is the only mark of "
         "a draft.",
         "Remove draft_vocab_size from a configuration that is no EAGLE-3 draft; a draft for "
         "another base than Llama needs an external class under the rewritten name."}),
    row("TRT-R4-V2-TARGET-WINS", kModelingAutoHook, {Verdict::kSelected, Severity::kInfo, "target"},
        {"The modeling_v2 target {target} takes the place of the class.",
         "A chosen modeling_v2 target replaces the name, also a rewritten one.",
         "The target was chosen for exactly this checkpoint, device and layout."}),
    // Look-up.
    row("TRT-REGISTRY-HIT", kModelingUtils, {Verdict::kSelected, Severity::kInfo, "arch"},
        {"{arch} is registered already; nothing is imported.",
         "A registered class is returned without importing anything.",
         "The slot's owner was decided when it was registered."}),
    row("TRT-REGISTRY-HIT-VISION", kModelingUtils, {Verdict::kSelected, Severity::kInfo, "arch"},
        {"The vision encoder of {arch} is registered already; nothing is imported.",
         "A registered vision encoder is returned without importing anything.",
         "Each look-up asks its own registry only."}),
    row("TRT-EXTERNAL-DECLARED", kModelingUtils, {Verdict::kApplied, Severity::kInfo, "arch"},
        {"{arch} is declared to come from the external module {module}.",
         "A declared external module is asked before the static index.",
         "The worker must find the class that the driver registered."}),
    row("TRT-INDEX-HIT", kArchIndex, {Verdict::kApplied, Severity::kInfo, "arch"},
        {"The static index names {module} for {arch}.",
         "The static index says which module to import for an architecture.",
         "The model zoo is imported lazily, so a look-up must find the module first."}),
    row("TRT-INDEX-MISS", kArchIndex, {Verdict::kRejected, Severity::kWarn, "arch"},
        {"Neither an external declaration nor the static index knows {arch}.",
         "An architecture that no table knows has no provider.",
         "Only modules that a table names are imported.",
         "Check the spelling of architectures[0], or give a provider with --custom-module-dirs."}),
    row("TRT-SPEC-HIT", kModelingUtils, {Verdict::kSelected, Severity::kInfo, "mode"},
        {"A draft builder for {mode} is registered already; nothing is imported.",
         "A registered draft builder is returned without importing anything.",
         "The slot's owner was decided when it was registered."}),
    row("TRT-SPEC-INDEX-MISS", kArchIndex, {Verdict::kNoted, Severity::kInfo, "mode"},
        {"The static index has no module with a draft builder for {mode}.",
         "Some speculative modes have no one-engine draft model.",
         "Two-model and draft-loop modes build nothing inside the target's engine."}),
    // Importing modules.
    row("TRT-IMPORT", kModelingUtils, {Verdict::kApplied, Severity::kInfo, "module"},
        {"{module} is imported, and its decorators run.",
         "Importing a module registers its classes.",
         "Registration is a side effect of the import."}),
    row("TRT-IMPORT-CACHED", kModelingUtils, {Verdict::kNoted, Severity::kInfo, "module"},
        {"{module} was imported before; its decorators do not run again.",
         "A second import of a module registers nothing.", "Python runs a module once a process."}),
    row("TRT-IMPORT-MISSING-WARN", kModelingUtils, {Verdict::kSkipped, Severity::kWarn, "module"},
        {"{module} is not there at all: a warning, and the look-up goes on without it.",
         "A module that a table names but that is not there is only warned of.",
         "A stale table row must not hide an external class; an error inside a module that is "
         "there is never swallowed.",
         "Install the engine version that has the module, or correct the declaration."}),
    // One registration.
    row("TRT-REG-SET", kModelingUtils, {Verdict::kApplied, Severity::kInfo, "arch"},
        {"The {registry} of {arch} is {value}.",
         "An empty slot is filled, and an equal value is set again.",
         "The first registration of an architecture wins among built-in modules."}),
    row("TRT-REG-KEEP", kModelingUtils, {Verdict::kSkipped, Severity::kInfo, "arch"},
        {"The {registry} of {arch} stays {kept}; the built-in {rejected} does not take it.",
         "A built-in registration never replaces another one.",
         "The zoo is imported lazily, so a built-in decorator may run after an external one and "
         "must not undo it."}),
    row("TRT-REG-OVERWRITE", kModelingUtils, {Verdict::kApplied, Severity::kWarn, "arch"},
        {"The {registry} of {arch} is replaced by the external {value}.",
         "An external registration replaces what is there; the last one wins.",
         "External modules exist to replace built-in classes.",
         "Load one external provider only for an architecture."}),
    row("TRT-SPEC-SET", kModelingUtils, {Verdict::kApplied, Severity::kInfo, "mode"},
        {"The draft builder of {mode} is {value}.",
         "A draft builder fills its mode's slot; an external one also replaces another.",
         "The rules are those of the model classes."}),
    row("TRT-SPEC-KEEP", kModelingUtils, {Verdict::kSkipped, Severity::kInfo, "mode"},
        {"The draft builder of {mode} stays {kept}; the built-in {rejected} does not take it.",
         "A built-in draft builder never replaces another one.",
         "A built-in module may be imported after an external drafter."}),
    // Declared external providers.
    row("TRT-DECLARE", kModelingUtils, {Verdict::kApplied, Severity::kInfo, ""},
        {"The declaration of external providers is replaced.",
         "A declaration is the whole set of external providers in effect.",
         "A worker must hold what a process built from the declaration alone would hold."}),
    row("TRT-DECLARE-NOOP", kModelingUtils, {Verdict::kNoted, Severity::kInfo, ""},
        {"The declaration of external providers is the one in effect; nothing changes.",
         "Declaring the same again changes nothing.",
         "External classes that registered themselves before an empty declaration stay."}),
    row("TRT-REBUILD-CLEAR", kModelingUtils, {Verdict::kApplied, Severity::kInfo, ""},
        {"The registries of classes and vision encoders are emptied.",
         "A new declaration rebuilds the registries from the log.",
         "Providers of the earlier declaration give their slots back."}),
    row("TRT-REPLAY", kModelingUtils, {Verdict::kApplied, Severity::kInfo, "arch"},
        {"The {registry} of {arch} is registered again as {module} did.",
         "The log of a module is replayed, also what lost its slot before.",
         "Importing the module again would not run its decorators."}),
    row("TRT-REPLAY-SKIP", kModelingUtils, {Verdict::kSkipped, Severity::kInfo, "arch"},
        {"The {registry} of {arch} by {module} is left out: {owner} is declared for it.",
         "A replay leaves out an architecture that is declared for another module.",
         "The owner of an architecture owns its vision slot as well."}),
    // Attributes of the package.
    row("TRT-P0-CACHED", kPackageInit, {Verdict::kSelected, Severity::kInfo, "name"},
        {"{name} was found on the package before; nothing is imported.",
         "An attribute that was found once is remembered.",
         "The package caches it in its globals."}),
    row("TRT-P2-CACHE-GLOBAL", kPackageInit, {Verdict::kSelected, Severity::kInfo, "name"},
        {"{name} is a public class; it is remembered on the package.",
         "A public class is found through the class index and remembered.",
         "The package resolves attributes lazily."}),
    row("TRT-P4-SUBMODULE", kPackageInit, {Verdict::kSelected, Severity::kInfo, "module"},
        {"The attribute is the submodule {module}.",
         "A name that is no public class may be a submodule.",
         "Callers of the eager package used submodules as attributes."}),
    // Selection of a modeling_v2 target.
    row("TRT-V2-OFF", kRouterIndex, {Verdict::kNoted, Severity::kInfo, ""},
        {"modeling_v2 is off.", "Without modeling_v2 no target is looked for.",
         "Off is the default."}),
    row("TRT-V2-NO-ARCH", kRouterIndex, {Verdict::kNoted, Severity::kInfo, ""},
        {"modeling_v2 looks for no target: the configuration names no architecture.",
         "A configuration without architectures has no modeling_v2 target, also with require.",
         "The router is found by architectures[0]."}),
    row("TRT-V2-NO-ROUTER", kRouterIndex, {Verdict::kNoted, Severity::kInfo, "arch"},
        {"modeling_v2 has no router for {arch}.",
         "modeling_v2 serves the architectures that have a router only.",
         "Targets are written by hand, one architecture family at a time."}),
    row("TRT-V2-NO-TARGET", kRouting, {Verdict::kNoted, Severity::kInfo, "criterion"},
        {"No modeling_v2 target fits; the decision tree stopped at: {criterion}.",
         "No target has this device, checkpoint shape and parallel layout.",
         "A target is one forward for one checkpoint, GPU architecture and layout."}),
    row("TRT-V2-OUT-OF-BOUNDS", kRouterIndex, {Verdict::kNoted, Severity::kWarn, "target"},
        {"{target} fits the checkpoint, but the deployment is outside its bounds.",
         "A target that fits may still refuse the deployment's arguments.",
         "A target is certified for a range of arguments."}),
    row("TRT-V2-TARGET", kRouterIndex, {Verdict::kSelected, Severity::kInfo, "target"},
        {"modeling_v2 chooses {target}.",
         "The modeling_v2 target that fits is chosen, and its module is imported.",
         "The synthetic name is only a registry key; importing the module puts the class behind "
         "it."}),
    // Construction.
    row("TRT-F1-BUILD-ENCODER", kModelingAuto, {Verdict::kSelected, Severity::kInfo, "class"},
        {"The vision encoder {class} is built alone.",
         "In encoder-only mode the encoder is built with its base class.",
         "The registry entry holds both."}),
    row("TRT-F2-SKIP-WEIGHTS-IN-INIT", kModelingAuto, {Verdict::kApplied, Severity::kInfo, "class"},
        {"{class} is built without weights if it is a decoder model; they are created after "
         "quantisation is settled.",
         "Decoder models create no weights in their constructor.",
         "Quantisation per layer must be known before weights are created."}),
    row("TRT-F3-NOTARGET-REQUIRE-RAISE", kModelingAutoHook,
        {Verdict::kRejected, Severity::kError, "target"},
        {"{target} cannot serve this deployment, and modeling_v2 is \"require\".",
         "With require, a target that cannot serve fails the start.",
         "Measuring another implementation by mistake is what require prevents.",
         "Use modeling_v2=auto, or a deployment that the target serves."}),
    row("TRT-F4-NOTARGET-AUTO-FALLBACK", kModelingAutoHook,
        {Verdict::kApplied, Severity::kWarn, ""},
        {"The target cannot serve this deployment; the built-in class is built instead. Restored "
         "extra attributes: {restored_extra_attrs}.",
         "With auto, a target that cannot serve gives way to the built-in class.",
         "The configuration is copied without the target; the loader's extra attributes would be "
         "lost by the copy and are put back.",
         "Use modeling_v2=require to fail instead."}),
    // What the engine raises.
    row("TRT-UNKNOWN-ARCH", kModelingAuto, {Verdict::kRejected, Severity::kError, ""},
        {"",
         "No class serves the architecture; the message names architectures[0], not a rewritten "
         "name.",
         "No provider registered the name that was looked up.",
         "Check the spelling of architectures[0], use an engine version that knows it, or give a "
         "provider with --custom-module-dirs."}),
    row("TRT-UNKNOWN-MM-ENCODER", kModelingAuto, {Verdict::kRejected, Severity::kError, ""},
        {"", "The architecture has no vision encoder.",
         "Encoder-only mode looks in the vision encoder's registry only.",
         "Leave encoder-only mode off for this model."}),
    row("TRT-NO-ARCHITECTURES", kModelingAuto, {Verdict::kRejected, Severity::kError, ""},
        {"",
         "The configuration names no architecture. The engine's own message indexes the empty "
         "list, so a user sees a TypeError (null) or an IndexError ([]).",
         "Only architectures[0] says which class serves a checkpoint.",
         "Add \"architectures\" to config.json."}),
    row("TRT-V2-REQUIRE-NO-ROUTER", kRouterIndex, {Verdict::kRejected, Severity::kError, ""},
        {"", "modeling_v2=require, but the architecture has no router.",
         "Targets exist for few architectures.", "Use modeling_v2=auto."}),
    row("TRT-V2-REQUIRE-NO-TARGET", kRouterIndex, {Verdict::kRejected, Severity::kError, ""},
        {"", "modeling_v2=require, but no target fits this checkpoint, device and layout.",
         "A target is one forward for one checkpoint, GPU architecture and layout.",
         "Use modeling_v2=auto, or the device and layout that a target is written for."}),
    row("TRT-V2-REQUIRE-OUT-OF-BOUNDS", kRouterIndex, {Verdict::kRejected, Severity::kError, ""},
        {"", "modeling_v2=require, but the deployment is outside the target's bounds.",
         "A target is certified for a range of arguments.",
         "Use modeling_v2=auto, or arguments within the target's bounds."}),
    row("TRT-NOTARGET-REQUIRE", kModelingAutoHook, {Verdict::kRejected, Severity::kError, ""},
        {"", "modeling_v2=require, but the target found that it cannot serve.",
         "Measuring another implementation by mistake is what require prevents.",
         "Use modeling_v2=auto, or a deployment that the target serves."}),
    row("TRT-ARCHITECTURE-NOT-PROVIDED", kModelingUtils, {Verdict::kRejected, Severity::kError, ""},
        {"", "The raw configuration names no architecture.",
         "The second entry point reads architectures[0] as it stands.",
         "Add \"architectures\" to config.json."}),
    row("TRT-UNKNOWN-MODEL-ARCHITECTURE", kModelingUtils,
        {Verdict::kRejected, Severity::kError, ""},
        {"", "The second entry point knows no class for architectures[0].",
         "It looks the name up as it stands, without the EAGLE-3 rewrite.",
         "Check the spelling of architectures[0]."}),
    row("TRT-GEMMA4-NEEDS-NEWER-TRANSFORMERS", kModelingUtils,
        {Verdict::kRejected, Severity::kError, ""},
        {"", "Gemma 4 needs transformers 5.5 or newer.",
         "Its module imports classes that older versions lack.",
         "Install transformers 5.5 or newer."}),
    row("TRT-MISSING-DEPENDENCY", kModelingUtils, {Verdict::kRejected, Severity::kError, ""},
        {"", "A module is there, but something that it imports is not.",
         "Only the absence of the module itself counts as an unknown architecture.",
         "Install the missing package."}),
    row("TRT-ATTRIBUTE-ERROR", kModelingUtils, {Verdict::kRejected, Severity::kError, ""},
        {"", "A module is there, but fails on an attribute while it is imported.",
         "An error inside a module is never taken for an unknown architecture.",
         "Mend the module, or install the versions that it was written for."}),
    row("TRT-P1-ATTRIBUTEERROR-BECOMES-IMPORTERROR", kPackageInit,
        {Verdict::kRejected, Severity::kError, ""},
        {"",
         "An AttributeError inside a module that is reached as an attribute is shown as an "
         "ImportError.",
         "Python's attribute protocol would take it for a missing attribute.",
         "Mend the module, or install the versions that it was written for."}),
    row("TRT-P3-NO-ATTRIBUTE", kPackageInit, {Verdict::kRejected, Severity::kError, ""},
        {"", "The package has no such public class and no such submodule.",
         "Architecture names are not class names.", "Ask for the class's own name."}),
    row("TRT-VISION-ENCODER-WITHOUT-MODEL", kModelingUtils,
        {Verdict::kRejected, Severity::kError, ""},
        {"", "A vision encoder was registered for a class that is not registered before it.",
         "The encoder's decorator takes the architectures from the class.",
         "Register the class first."}),
    row("TRT-PROVIDER-START-FAILED", kModelingUtils, {Verdict::kRejected, Severity::kError, ""},
        {"", "A provider reported an error while it was loaded.",
         "A provider that is there and fails is never taken for an unknown architecture.",
         "See the provider's own message."}),
});

constexpr auto kInfos = [] {
  std::array<RuleInfo, kRows.size()> infos = {};
  for (std::size_t i = 0; i < kRows.size(); ++i) infos[i] = kRows[i].info;
  return infos;
}();

const Row* find_row(std::string_view id) {
  if (id.starts_with(kPrefix)) id.remove_prefix(kPrefix.size());
  const auto* const found = std::find_if(kRows.begin(), kRows.end(), [&](const Row& candidate) {
    return candidate.info.id.substr(kPrefix.size()) == id;
  });
  return found == kRows.end() ? nullptr : &*found;
}

// A field of an event as text: strings as they are, lists joined by commas.
std::string field_text(const json::Value& fields, std::string_view name) {
  const json::Value* value = fields.find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return value->as_string();
  if (!value->is_array()) return value->brief();
  std::vector<std::string> parts;
  for (const json::Value& item : value->items()) parts.push_back(item.as_string());
  return parts.empty() ? "none" : join(parts, ", ");
}

std::string fill(std::string_view sentence, const json::Value& fields) {
  std::string out;
  while (true) {
    const std::size_t open = sentence.find('{');
    if (open == std::string_view::npos) return out + std::string(sentence);
    const std::size_t close = sentence.find('}', open);
    out += sentence.substr(0, open);
    out += field_text(fields, sentence.substr(open + 1, close - open - 1));
    sentence.remove_prefix(close + 1);
  }
}

// What a template cannot say: names that were passed over, and whether an encoder was found.
std::string extra(const registry::Event& event) {
  if (event.rule == rule::kArch0) {
    const json::Value* ignored = event.fields.find("ignored");
    if (ignored == nullptr || ignored->items().empty()) return {};
    return " Ignored: " + field_text(event.fields, "ignored") + ".";
  }
  if (event.rule == rule::kMmEncoder) {
    const json::Value* found = event.fields.find("found");
    return found != nullptr && found->as_bool() ? " It has one." : " It has none.";
  }
  return {};
}

Step step_of(const Row& row) {
  Step step;
  step.rule = row.info.id;
  step.verdict = row.verdict;
  step.severity = row.severity;
  step.source = {.project = std::string(kProject),
                 .file = std::string(row.info.file),
                 .version = std::string(row.info.version)};
  step.stage = Stage::kModelClass;
  return step;
}

}  // namespace

std::span<const RuleInfo> resolve_rules() { return kInfos; }

const RuleInfo* find_resolve_rule(std::string_view id) {
  const Row* row = find_row(id);
  return row == nullptr ? nullptr : &kInfos[static_cast<std::size_t>(row - kRows.data())];
}

Step resolve_step(const registry::Event& event) {
  const Row* row = find_row(event.rule);
  KERNELPATH_ASSERT(row != nullptr);
  Step step = step_of(*row);
  if (!row->candidate.empty()) step.candidate = field_text(event.fields, row->candidate);
  step.reason = fill(row->sentence, event.fields) + extra(event);
  return step;
}

Step resolve_error_step(const EngineError& error) {
  const Row* row = find_row(error.code);
  KERNELPATH_ASSERT(row != nullptr);
  Step step = step_of(*row);
  step.reason = error.type + ": " + error.message;
  return step;
}

}  // namespace kernelpath::engines::trtllm
