#pragma once

#include "engines/request.h"
#include "engines/resolution.h"
#include "engines/trtllm/class_question.h"
#include "engines/trtllm/profile.h"
#include "registry/registry.h"

#include <optional>
#include <string>
#include <vector>

namespace kernelpath::engines::trtllm {

// Neither is set: no class, and that is no error at this point.
struct ClassAnswer {
  std::optional<registry::Provider> provider = {};
  bool is_vision_encoder = false;  // the provider's base_class is then the base model's class
  std::optional<ClassError> error = {};
};

// The order of decisions that turns a configuration into a class. Each decision is an event of the
// registry. Sources: modeling_auto.py 01bffee1, modeling_utils.py.
class ClassResolver {
 public:
  // Both must outlive the resolver.
  ClassResolver(const Profile& profile, registry::Registry& registry)
      : profile_(profile), registry_(registry) {}

  // _resolve_class: no error for an unknown name. `target` is a chosen modeling_v2 target.
  ClassAnswer resolve_class(const ClassInput& input, const ClassOptions& options,
                            const std::optional<std::string>& target = std::nullopt);

  // from_config with the selection of the model loader before it: builds the class or raises.
  ClassAnswer from_config(const ClassInput& input, const ClassOptions& options);

  // get_model_architecture: architectures[0] as it stands, with no rewrite and no target.
  ClassAnswer get_model_architecture(const ClassInput& input);

 private:
  ClassAnswer build_encoder(const ClassInput& input);
  ClassAnswer build(const ClassInput& input, const ClassOptions& options,
                    const std::optional<std::string>& target, const ClassAnswer& resolved);

  const Profile& profile_;
  registry::Registry& registry_;
};

// The class of a model as a Resolution needs it.
struct ClassResolution {
  std::string model_class;     // empty if there is none, or if no source settles its name
  std::string module;          // full name; empty if there is no class
  std::string established_by;  // how the class's name is known; empty for external classes
  std::string vision_base_class;
  bool is_vision_encoder = false;
  std::optional<EngineError> error;
  std::vector<Step> steps;
};

// What from_config gives for a model, with the environment's external providers imported before, in
// their order. Unknown architectures carry near matches.
ClassResolution resolve_model_class(const config::ModelConfig& model, const ClassOptions& options,
                                    const Environment& environment, const Profile& profile);

}  // namespace kernelpath::engines::trtllm
