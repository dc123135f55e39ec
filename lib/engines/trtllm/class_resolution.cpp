#include "engines/trtllm/class_resolution.h"

#include "engines/trtllm/model_registry.h"
#include "engines/trtllm/modeling_v2.h"
#include "engines/trtllm/resolve_rule_ids.h"
#include "engines/trtllm/rules_resolve.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::trtllm {
namespace {

constexpr std::string_view kEagle3Marker = "Eagle3";
constexpr std::string_view kEagle3Prefix = "EAGLE3";

// Architectures whose absence has its own message (modeling_utils.py, _GEMMA4_ARCHITECTURES).
constexpr std::array<std::string_view, 3> kGemma4Architectures = {
    "Gemma4ForCausalLM", "Gemma4ForConditionalGeneration", "Gemma4UnifiedForConditionalGeneration"};

json::Member text(std::string key, std::string value) {
  return {.key = std::move(key), .value = json::Value::string(std::move(value))};
}

json::Member texts(std::string key, std::span<const std::string> values) {
  std::vector<json::Value> items;
  for (const std::string& value : values) items.push_back(json::Value::string(value));
  return {.key = std::move(key), .value = json::Value::array(std::move(items))};
}

// Deletes every marker, exact case, and puts the prefix before what is left.
std::string eagle3_name(std::string name) {
  for (std::size_t at = name.find(kEagle3Marker); at != std::string::npos;
       at = name.find(kEagle3Marker, at)) {
    name.erase(at, kEagle3Marker.size());
  }
  return std::string(kEagle3Prefix) + name;
}

ClassAnswer raise(std::string type, std::string_view code, std::optional<std::string> subject,
                  std::string message) {
  return {.error = ClassError{.type = std::move(type),
                              .code = std::string(code),
                              .subject = std::move(subject),
                              .message = std::move(message)}};
}

// The engine's message indexes the list, so a missing list fails inside the message itself.
ClassAnswer raise_no_architectures() {
  return raise("ValueError", rule::kNoArchitectures, std::nullopt,
               "the configuration names no architecture");
}

ClassAnswer answer(registry::Found found) {
  if (found.failure) return {.error = class_error(*found.failure)};
  return {.provider = std::move(found.provider)};
}

EngineError engine_error(const ClassError& error, const ClassInput& input, const Profile& profile,
                         const registry::Registry& registry) {
  EngineError out = {
      .type = error.type, .code = error.code, .message = error.message, .near_matches = {}};
  if (error.code != rule::kUnknownArch || input.architectures.empty()) return out;
  out.near_matches = registry.near_architectures(input.architectures[0]);
  if (const OutsideRow* row = profile.find_outside(input.architectures[0])) {
    out.message += " (seen in the engine outside the index of this profile: " + row->evidence + ")";
  }
  return out;
}

void describe_class(const registry::Provider& provider, const Profile& profile,
                    ClassResolution& out) {
  out.module = provider.module;
  if (provider.name != registry::kUnestablished) out.model_class = provider.name;
  if (!profile.index.is_built_in(provider.module)) return;
  for (const ArchitectureRow& row : profile.architectures) {
    const std::string name = row.class_name.value_or(std::string(registry::kUnestablished));
    if (name == provider.name && profile.index.full_name(row.module) == provider.module) {
      out.established_by = row.established_by;
      return;
    }
  }
}

}  // namespace

ClassInput class_input(const config::ModelConfig& model) {
  ClassInput input = {.architectures = model.architectures,
                      .has_draft_vocab_size = model.draft.has_draft_vocab_size,
                      .num_hidden_layers = model.num_hidden_layers.value,
                      .hidden_size = model.hidden_size.value,
                      .num_local_experts = std::nullopt};
  if (model.moe) input.num_local_experts = model.moe->num_experts.value;
  return input;
}

ClassError class_error(const registry::Failure& failure) {
  using registry::FailureKind;
  ClassError error = {.type = "", .code = "", .message = failure.message};
  switch (failure.kind) {
    case FailureKind::kModuleNotFound:
      error.type = "ModuleNotFoundError";
      error.code = rule::kMissingDependency;
      error.missing_module = failure.name;
      break;
    case FailureKind::kAttributeError:
      error.type = "AttributeError";
      error.code = rule::kAttributeError;
      break;
    case FailureKind::kImportError:
      error.type = "ImportError";
      error.code = rule::kImportError;
      break;
    case FailureKind::kNoAttribute:
      error.type = "AttributeError";
      error.code = rule::kNoAttribute;
      break;
    case FailureKind::kRegistration:
      error.type = "ValueError";
      error.code = rule::kVisionWithoutModel;
      break;
    case FailureKind::kStartFailed:
      error.type = "RuntimeError";
      error.code = rule::kProviderStart;
      break;
  }
  return error;
}

ClassAnswer ClassResolver::resolve_class(const ClassInput& input, const ClassOptions& options,
                                         const std::optional<std::string>& target) {
  if (input.architectures.empty()) {
    registry_.note(rule::kNoArch);
    return {};
  }
  std::string architecture = input.architectures[0];
  registry_.note(rule::kArch0, {text("arch", architecture),
                                texts("ignored", std::span(input.architectures).subspan(1))});
  if (options.mm_encoder_only) {
    ClassAnswer encoder = answer(registry_.vision_encoder(architecture));
    if (encoder.error) return encoder;
    encoder.is_vision_encoder = encoder.provider.has_value();
    registry_.note(rule::kMmEncoder,
                   {{.key = "found", .value = json::Value::boolean(encoder.is_vision_encoder)}});
    return encoder;
  }
  if (input.has_draft_vocab_size) {
    std::string rewritten = eagle3_name(architecture);
    registry_.note(rule::kEagle3Rewrite, {text("from", architecture), text("to", rewritten)});
    architecture = std::move(rewritten);
  }
  if (target) {
    registry_.note(rule::kV2TargetWins, {text("target", *target)});
    architecture = *target;
  }
  return answer(registry_.model_class(architecture));
}

ClassAnswer ClassResolver::from_config(const ClassInput& input, const ClassOptions& options) {
  if (options.mm_encoder_only) return build_encoder(input);
  const ModelingV2Choice choice =
      select_modeling_v2(input, options, profile_.modeling_v2, registry_);
  if (choice.error) return {.error = choice.error};
  ClassAnswer resolved = resolve_class(input, options, choice.target);
  if (resolved.error) return resolved;
  return build(input, options, choice.target, resolved);
}

ClassAnswer ClassResolver::build_encoder(const ClassInput& input) {
  if (input.architectures.empty()) return raise_no_architectures();
  const std::string& architecture = input.architectures[0];
  ClassAnswer encoder = answer(registry_.vision_encoder(architecture));
  if (encoder.error) return encoder;
  if (!encoder.provider) {
    return raise("ValueError", rule::kUnknownMmEncoder, architecture,
                 "Unknown architecture for AutoModelForMultimodalEncoder: " + architecture);
  }
  encoder.is_vision_encoder = true;
  std::vector<json::Member> fields = {text("class", encoder.provider->name)};
  if (encoder.provider->base_class) {
    fields.push_back(text("base", *encoder.provider->base_class));
  }
  registry_.note(rule::kBuildEncoder, std::move(fields));
  return encoder;
}

ClassAnswer ClassResolver::build(const ClassInput& input, const ClassOptions& options,
                                 const std::optional<std::string>& target,
                                 const ClassAnswer& resolved) {
  if (input.architectures.empty()) return raise_no_architectures();
  // The message names what the checkpoint states, also where the rewritten name was looked up.
  const std::string& architecture = input.architectures[0];
  if (!resolved.provider) {
    return raise("ValueError", rule::kUnknownArch, architecture,
                 "Unknown architecture for AutoModelForCausalLM: " + architecture);
  }
  registry_.note(rule::kSkipWeights, {text("class", resolved.provider->name)});
  const bool is_target = target.has_value() && resolved.provider->name == *target;
  if (!options.raises_no_target || !is_target) return resolved;
  if (options.modeling_v2 == ModelingV2Mode::kRequire) {
    registry_.note(rule::kNoTargetRequireRaise, {text("target", *target)});
    return raise("NoTarget", rule::kNoTargetRequire, std::nullopt,
                 *target + " cannot serve this deployment and modeling_v2 is 'require'");
  }
  registry_.note(rule::kNoTargetAutoFallback,
                 {texts("restored_extra_attrs", options.loader_attrs)});
  ClassOptions without_target = options;
  without_target.modeling_v2 = ModelingV2Mode::kOff;
  return from_config(input, without_target);
}

ClassAnswer ClassResolver::get_model_architecture(const ClassInput& input) {
  if (input.architectures.empty()) {
    return raise("RuntimeError", rule::kArchitectureNotProvided, std::nullopt,
                 "Model architecture is not provided.");
  }
  const std::string& architecture = input.architectures[0];
  ClassAnswer found = answer(registry_.model_class(architecture));
  if (found.error || found.provider) return found;
  if (std::find(kGemma4Architectures.begin(), kGemma4Architectures.end(), architecture) !=
      kGemma4Architectures.end()) {
    return raise(
        "RuntimeError", rule::kGemma4NeedsTransformers, std::nullopt,
        "Gemma4 model support requires transformers>=5.5.0 (architecture: " + architecture + ").");
  }
  return raise("RuntimeError", rule::kUnknownModelArchitecture, architecture,
               "Unknown model architecture: " + architecture);
}

ClassResolution resolve_model_class(const config::ModelConfig& model, const ClassOptions& options,
                                    const Environment& environment, const Profile& profile) {
  ExternalModules external = external_modules(environment.external_models);
  ProfileLoader loader(profile, std::move(external.overrides));
  registry::Registry registry(profile.index, loader);
  const ClassInput input = class_input(model);
  ClassResolution out;
  ClassAnswer answer;
  for (const std::string& module : external.order) {
    if (answer.error) break;
    if (const auto failure = registry.import(module)) answer.error = class_error(*failure);
  }
  if (!answer.error) answer = ClassResolver(profile, registry).from_config(input, options);
  for (const registry::Event& event : registry.events()) out.steps.push_back(resolve_step(event));
  if (answer.provider) describe_class(*answer.provider, profile, out);
  out.is_vision_encoder = answer.is_vision_encoder;
  if (answer.is_vision_encoder) out.vision_base_class = answer.provider->base_class.value_or("");
  if (answer.error) {
    out.error = engine_error(*answer.error, input, profile, registry);
    out.steps.push_back(resolve_error_step(*out.error));
  }
  return out;
}

}  // namespace kernelpath::engines::trtllm
