#include "engines/trtllm/modeling_v2.h"

#include "base/text.h"
#include "engines/trtllm/resolve_rule_ids.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::trtllm {
namespace {

constexpr std::array<std::string_view, 3> kModeNames = {"off", "auto", "require"};

// The criteria of the routing tree in its order; the last one that a target reached is reported.
enum class Reached : std::uint8_t { kNothing, kCapability, kShape, kParallel, kMatch };
constexpr std::array<std::string_view, 4> kCriteria = {"targets", "sm", "shape", "parallel"};

Reached judge(const ModelingV2Target& target, const ClassInput& input,
              const ClassOptions& options) {
  if (options.capability != target.capability) return Reached::kCapability;
  if (input.num_hidden_layers != target.num_hidden_layers ||
      input.hidden_size != target.hidden_size ||
      input.num_local_experts != target.num_local_experts) {
    return Reached::kShape;
  }
  return options.world_size == target.world_size ? Reached::kMatch : Reached::kParallel;
}

json::Member text(std::string key, std::string_view value) {
  return {.key = std::move(key), .value = json::Value::string(std::string(value))};
}

// In auto the built-in class takes over; in require the same finding is an error.
ModelingV2Choice no_target(const ClassOptions& options, std::string_view code,
                           std::string message) {
  if (options.modeling_v2 != ModelingV2Mode::kRequire) return {};
  return {.error = ClassError{.type = "ValueError",
                              .code = std::string(code),
                              .message = "modeling_v2='require', but " + std::move(message)}};
}

ModelingV2Choice accept(const ModelingV2Target& target, registry::Registry& registry) {
  if (const auto failure = registry.import(target.module)) {
    return {.error = class_error(*failure)};
  }
  registry.note(rule::kV2Target, {text("target", target.name)});
  return {.target = target.name};
}

}  // namespace

Result<ModelingV2Mode> parse_modeling_v2(std::string_view text) {
  const std::string name = to_lower(trim(text));
  if (name.empty()) return ModelingV2Mode::kOff;
  const auto* const found = std::find(kModeNames.begin(), kModeNames.end(), name);
  if (found != kModeNames.end()) {
    return static_cast<ModelingV2Mode>(std::distance(kModeNames.begin(), found));
  }
  return fail({.code = ErrorCode::kUsageUnknown,
               .message = "not a modeling_v2 mode; the engine knows off, auto and require",
               .value = escape_for_terminal(text),
               .near_matches = near_matches(name, kModeNames)});
}

ModelingV2Choice select_modeling_v2(const ClassInput& input, const ClassOptions& options,
                                    const ModelingV2Table& table, registry::Registry& registry) {
  if (options.modeling_v2 == ModelingV2Mode::kOff) {
    registry.note(rule::kV2Off);
    return {};
  }
  if (input.architectures.empty()) {
    registry.note(rule::kV2NoArch);
    return {};
  }
  const std::string& architecture = input.architectures[0];
  if (table.routers.find(architecture) == nullptr) {
    registry.note(rule::kV2NoRouter, {text("arch", architecture)});
    return no_target(options, rule::kV2RequireNoRouter,
                     "no target exists for architecture '" + architecture + "'");
  }
  Reached best = Reached::kNothing;
  const ModelingV2Target* match = nullptr;
  for (const ModelingV2Target& target : table.targets) {
    if (target.architecture != architecture || match != nullptr) continue;
    const Reached reached = judge(target, input, options);
    best = std::max(best, reached);
    if (reached == Reached::kMatch) match = &target;
  }
  if (match == nullptr) {
    const std::string_view criterion = kCriteria[static_cast<std::size_t>(best)];
    registry.note(rule::kV2NoTarget, {text("criterion", criterion)});
    return no_target(options, rule::kV2RequireNoTarget,
                     "no target matched architecture '" + architecture +
                         "'; the decision tree stopped at: " + std::string(criterion));
  }
  if (!options.within_bounds) {
    registry.note(rule::kV2OutOfBounds, {text("target", match->name)});
    return no_target(options, rule::kV2RequireOutOfBounds,
                     match->name + " claims architecture '" + architecture +
                         "' and this deployment is outside its bounds");
  }
  return accept(*match, registry);
}

}  // namespace kernelpath::engines::trtllm
